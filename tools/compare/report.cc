#include "tools/compare/report.h"

#include <algorithm>

#include "tools/bench/markdown.h"
#include "tools/bench/text.h"

namespace pozor::tools {
namespace {

std::string Rate(const Row* row) {
  if (row == nullptr || row->samples.size() == 0) return "–";
  if (row->latency) return Short(1e3 * row->summary.seconds) + " ms";
  if (row->tokens == 0) return Short(1e3 * row->summary.seconds) + " ms";
  return Short(row->summary.tokens_per_second) + " tokens/s";
}

}  // namespace

VerdictCounts CountVerdicts(const std::vector<RowComparison>& rows) {
  VerdictCounts counts;
  for (const RowComparison& row : rows) {
    counts.faster += row.verdict == Verdict::kFaster;
    counts.slower += row.verdict == Verdict::kSlower;
    counts.same += row.verdict == Verdict::kNoDifference;
    counts.not_comparable += row.verdict == Verdict::kNotComparable;
  }
  return counts;
}

std::string DescribeTogether(const std::vector<RowComparison>& rows) {
  const VerdictCounts counts = CountVerdicts(rows);
  const Overall overall = JudgeTogether(rows);
  std::string text = Cat({std::to_string(counts.faster), " faster, ", std::to_string(counts.slower),
                          " slower, ", std::to_string(counts.same), " no difference, ",
                          std::to_string(counts.not_comparable), " not comparable"});
  if (overall.verdict == Verdict::kNotComparable) return text;
  return Cat({text, "; all rows together: speed x ", DescribeEstimate(overall.speed), ", ",
              VerdictName(overall.verdict)});
}

std::string DescribeEstimate(const Estimate& estimate) {
  return Cat({Fixed(estimate.value, 3), " (", Fixed(estimate.interval.low, 3), " – ",
              Fixed(estimate.interval.high, 3), ")"});
}

std::string ToMarkdown(const Comparison& comparison) {
  const std::string& base = comparison.base->label;
  const std::string& other = comparison.other->label;
  std::string text = Cat({"### ", other, " against ", base, "\n\n"});
  std::vector<std::vector<std::string>> cells;
  cells.reserve(std::max(comparison.differences.size(), comparison.rows.size()));
  for (const Difference& difference : comparison.differences) {
    cells.push_back(
        {Cat({difference.section, ": ", difference.key}), difference.base, difference.other});
  }
  text += cells.empty() ? "Systems and builds: no difference.\n\n"
                        : MarkdownTable({"what differs", base, other}, cells) + "\n";
  cells.clear();
  for (const RowComparison& row : comparison.rows) {
    const RowKey& key = row.base != nullptr ? row.base->key : row.other->key;
    const bool comparable = row.verdict != Verdict::kNotComparable;
    cells.push_back({DescribeKey(key), Rate(row.base), Rate(row.other),
                     comparable ? DescribeEstimate(row.speed) : "–",
                     comparable ? Fixed(row.plain_speed.value, 3) : "–",
                     comparable ? Fixed(100 * row.resolution, 1) + " %" : "–",
                     comparable ? std::string(VerdictName(row.verdict))
                                : Cat({VerdictName(row.verdict), ": ", row.why})});
  }
  text += MarkdownTable(
      {"row", base, other, "speed (interval)", "wall clock", "resolution", "verdict"}, cells);
  return text + "\n" + DescribeTogether(comparison.rows) + "\n";
}

std::string WarningsToMarkdown(const std::vector<LoadedResult>& results) {
  std::string text;
  for (const LoadedResult& loaded : results) {
    for (const std::string& warning : loaded.result.warnings) {
      text += Cat({"**Warning**: ", loaded.label, ": ", warning, "\n\n"});
    }
  }
  return text;
}

std::string ToMarkdown(const LoadedResult& loaded) {
  if (loaded.is_pozor) return ToMarkdown(loaded.result);
  std::vector<std::vector<std::string>> cells;
  cells.reserve(loaded.result.rows.size());
  for (const Row& row : loaded.result.rows) cells.push_back({DescribeKey(row.key), Rate(&row)});
  return Cat({"### ", loaded.label, "\n\n", MarkdownTable({"row", "measured"}, cells)});
}

}  // namespace pozor::tools
