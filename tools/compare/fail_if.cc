#include "tools/compare/fail_if.h"

#include <algorithm>
#include <charconv>

#include "tools/bench/text.h"

namespace pozor::tools {
namespace {

Result<FailCondition> ParseOne(const std::string& text) {
  const auto wrong = [&text] {
    return InvalidArgument(Cat({"--fail-if ", text,
                                ": not understood; give slower, slower>5%, faster>5% or "
                                "not-comparable, several after commas"}));
  };
  FailCondition condition;
  const size_t more = text.find('>');
  const std::string what = text.substr(0, more);
  if (what == "faster")
    condition.verdict = Verdict::kFaster;
  else if (what == "not-comparable")
    condition.verdict = Verdict::kNotComparable;
  else if (what != "slower")
    return wrong();
  if (more == std::string::npos) return condition;
  if (condition.verdict == Verdict::kNotComparable || !text.ends_with('%')) return wrong();
  const char* begin = text.data() + more + 1;
  const char* end = text.data() + text.size() - 1;
  double percent = 0;
  const auto parsed = std::from_chars(begin, end, percent);
  if (parsed.ec != std::errc() || parsed.ptr != end || !(percent >= 0)) return wrong();
  condition.margin = percent / 100;
  return condition;
}

}  // namespace

Result<std::vector<FailCondition>> ParseFailIf(const std::string& text) {
  std::vector<FailCondition> conditions;
  for (std::string part : SplitText(text, ',')) {
    part.erase(std::remove(part.begin(), part.end(), ' '), part.end());
    POZOR_TRY(const FailCondition condition, ParseOne(part));
    conditions.push_back(condition);
  }
  return conditions;
}

bool Fails(const RowComparison& row, const std::vector<FailCondition>& conditions) {
  for (const FailCondition& condition : conditions) {
    if (row.verdict != condition.verdict) continue;
    if (row.verdict == Verdict::kNotComparable) return true;
    const double change = row.verdict == Verdict::kSlower ? 1 / row.speed.value : row.speed.value;
    if (change > 1 + condition.margin) return true;
  }
  return false;
}

}  // namespace pozor::tools
