#include "tools/compare/html.h"

#include <algorithm>
#include <set>

#include "tools/bench/text.h"
#include "tools/compare/html_charts.h"
#include "tools/compare/html_parts.h"
#include "tools/compare/svg.h"

namespace pozor::tools {
namespace {

std::string Section(const std::string& title, const std::string& words, const std::string& inside) {
  if (inside.empty()) return "";
  return Cat({"<h2>", Escape(title), "</h2>\n<p class=\"soft\">", words, "</p>\n", inside});
}

// What is known of a file before any speed; behind the number that stands for it, if they are many.
std::string Files(const std::vector<LoadedResult>& results) {
  std::vector<std::string> head = {"file", "measured", "CPU", "", "Pozor", "compiler", "model"};
  const bool numbered = results.size() > kFewFiles;
  if (numbered) head.insert(head.begin(), "#");
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < results.size(); ++i) {
    const LoadedResult& loaded = results[i];
    const SystemRecord& system = loaded.result.system;
    const std::string commit = system.Get("build", "commit");
    rows.push_back({loaded.label, loaded.result.created, system.Get("cpu", "name"),
                    system.Get("cpu", "hypervisor") == "yes" ? "virtual machine" : "",
                    Cat({system.Get("build", "pozor"), commit.empty() ? "" : " (", commit,
                         commit.empty() ? "" : ")"}),
                    system.Get("build", "compiler"), loaded.result.model.name});
    if (numbered) rows.back().insert(rows.back().begin(), FileNumber(i));
  }
  return Card("", HtmlTable(head, rows, "files"));
}

std::string Warnings(const std::vector<LoadedResult>& results) {
  std::string items;
  for (const LoadedResult& loaded : results) {
    for (const std::string& warning : loaded.result.warnings) {
      items += Cat({"<li>", Escape(loaded.label), ": ", Escape(warning), "</li>"});
    }
  }
  return items.empty() ? "" : Card("", Cat({"<h3>Warnings</h3><ul>", items, "</ul>"}));
}

// A fact that is not the same in all files, and what each of them says.
struct Fact {
  std::string what;
  std::vector<std::string> values;
};

std::vector<Fact> DifferingFacts(size_t files, const std::vector<Comparison>& comparisons) {
  std::vector<Fact> facts;
  for (size_t c = 0; c < comparisons.size(); ++c) {
    for (const Difference& difference : comparisons[c].differences) {
      const std::string what = Cat({difference.section, ": ", difference.key});
      auto fact = std::find_if(facts.begin(), facts.end(),
                               [&](const Fact& known) { return known.what == what; });
      if (fact == facts.end()) {
        facts.push_back({what, std::vector<std::string>(files, difference.base)});
        fact = facts.end() - 1;
      }
      fact->values[c + 1] = difference.other;
    }
  }
  return facts;
}

// A row for each value of the fact: which files have it.
void AddValues(const Fact& fact, std::vector<std::vector<std::string>>* rows) {
  std::vector<std::string> values;
  std::vector<std::vector<size_t>> files;
  for (size_t i = 0; i < fact.values.size(); ++i) {
    const auto known = std::find(values.begin(), values.end(), fact.values[i]);
    const auto at = static_cast<size_t>(known - values.begin());
    if (known == values.end()) {
      values.push_back(fact.values[i]);
      files.emplace_back();
    }
    files[at].push_back(i);
  }
  for (size_t v = 0; v < values.size(); ++v) {
    rows->push_back({v == 0 ? fact.what : "", FileNumbers(files[v]), values[v]});
  }
}

// One column a file; of many files, which of them share a value.
std::string Differences(const std::vector<LoadedResult>& results,
                        const std::vector<Comparison>& comparisons) {
  const std::vector<Fact> facts = DifferingFacts(results.size(), comparisons);
  if (facts.empty()) return Card("", "<p>Nothing that was recorded differs.</p>");
  const bool by_value = results.size() > kFewFiles;
  std::vector<std::string> head = {"what"};
  if (by_value) {
    head.insert(head.end(), {"files", "value"});
  } else {
    for (const LoadedResult& loaded : results) head.push_back(loaded.label);
  }
  std::vector<std::vector<std::string>> rows;
  for (const Fact& fact : facts) {
    if (by_value) {
      AddValues(fact, &rows);
      continue;
    }
    rows.push_back(fact.values);
    rows.back().insert(rows.back().begin(), fact.what);
  }
  return Card("", HtmlTable(head, rows, "facts"));
}

std::string RoofTable(const std::vector<LoadedResult>& results) {
  std::vector<std::vector<std::string>> rows;
  std::set<std::string> done;  // engines of one file share its roof
  for (const LoadedResult& loaded : results) {
    if (!done.insert(loaded.path).second) continue;
    const std::string label = ShortLabel(loaded, results);
    for (const ComputeRoof& roof : loaded.result.compute_roofs) {
      rows.push_back(
          {label, roof.name, std::to_string(roof.threads), Short(roof.gflops), "GFLOP/s"});
    }
    for (const BandwidthRoof& roof : loaded.result.bandwidth_roofs) {
      rows.push_back({label, roof.level + " read", std::to_string(roof.threads),
                      Short(roof.gb_per_second), "GB/s"});
    }
  }
  if (rows.empty()) return "";
  return Card("", Cat({"<h3>Measured roofs</h3>",
                       HtmlTable({"file", "roof", "threads", "rate", "unit"}, rows)}));
}

std::string Starts(const std::vector<LoadedResult>& results) {
  std::vector<std::vector<std::string>> rows;
  for (const LoadedResult& loaded : results) {
    const std::string label = ShortLabel(loaded, results);
    for (const StartRecord& start : loaded.result.starts) {
      const auto ms = [](const std::vector<double>& seconds) {
        return seconds.empty() ? std::string("–") : Short(1e3 * Median(seconds));
      };
      rows.push_back({label, start.engine, start.precision, start.tier,
                      std::to_string(start.threads), ms(start.ready_seconds),
                      ms(start.load_seconds), ms(start.first_vector_seconds),
                      start.min_cosine == 0 ? "–" : Fixed(start.min_cosine, 6)});
    }
  }
  if (rows.empty()) return "";
  return Card("", HtmlTable({"file", "engine", "precision", "tier", "threads", "start to ready ms",
                             "load ms", "first vector ms", "least cosine to f32"},
                            rows));
}

// Rows without a verdict, and why: folded away, since of other machines and engines they are most.
std::string WithoutVerdict(const Comparison& comparison) {
  std::vector<std::vector<std::string>> rows;
  for (const RowComparison& row : comparison.rows) {
    if (row.verdict != Verdict::kNotComparable) continue;
    rows.push_back({DescribeKey(row.base != nullptr ? row.base->key : row.other->key), row.why});
  }
  if (rows.empty()) return "";
  const std::string count = std::to_string(rows.size());
  return Folded(Cat({count, rows.size() == 1 ? " row" : " rows", " not comparable"}),
                HtmlTable({"row", "why"}, rows, "rows"));
}

std::string VerdictTable(const Comparison& comparison) {
  const VerdictCounts counts = CountVerdicts(comparison.rows);
  if (counts.not_comparable == comparison.rows.size()) return WithoutVerdict(comparison);
  std::string html = Cat(
      {"<table class=\"rows\"><thead><tr><th>row</th><th class=\"n\">speed</th><th class=\"n\">",
       "interval</th><th class=\"n\">wall clock</th><th class=\"n\">below this "
       "none</th><th>verdict</th></tr>",
       "</thead><tbody>\n"});
  for (const RowComparison& row : comparison.rows) {
    if (row.verdict == Verdict::kNotComparable) continue;
    const std::string_view verdict = VerdictName(row.verdict);
    html += Cat({"<tr><td>", Escape(DescribeKey(row.base->key)), "</td><td class=\"n\">",
                 Fixed(row.speed.value, 3), "</td><td class=\"n\">",
                 Fixed(row.speed.interval.low, 3), " – ", Fixed(row.speed.interval.high, 3),
                 "</td><td class=\"n\">", Fixed(row.plain_speed.value, 3), "</td><td class=\"n\">",
                 Fixed(100 * row.resolution, 1), " %</td><td class=\"", verdict, "\">", verdict,
                 row.why.empty() ? "" : ": ", Escape(row.why), "</td></tr>\n"});
  }
  return html + "</tbody></table>\n" + WithoutVerdict(comparison);
}

std::string Against(const Comparison& comparison) {
  return Cat({comparison.other->label, " against ", comparison.base->label});
}

// One row a comparison, and its own rows folded away below.
std::string ManyVerdicts(const std::vector<Comparison>& comparisons) {
  std::vector<std::vector<std::string>> rows;
  std::string tables;
  for (size_t c = 0; c < comparisons.size(); ++c) {
    const Comparison& comparison = comparisons[c];
    const VerdictCounts counts = CountVerdicts(comparison.rows);
    const Overall overall = JudgeTogether(comparison.rows);
    const bool judged = overall.verdict != Verdict::kNotComparable;
    rows.push_back({FileNumber(c + 1), comparison.other->label, std::to_string(counts.faster),
                    std::to_string(counts.slower), std::to_string(counts.same),
                    std::to_string(counts.not_comparable),
                    judged ? DescribeEstimate(overall.speed) : "–",
                    judged ? std::string(VerdictName(overall.verdict)) : "–"});
    tables += Folded(Cat({FileNumber(c + 1), ": ", Against(comparison)}), VerdictTable(comparison));
  }
  const std::string base = Cat({FileNumber(0), ", ", comparisons[0].base->label});
  return Card("Against " + base, HtmlTable({"#", "file", "faster", "slower", "no difference",
                                            "not comparable", "speed of all rows", "verdict"},
                                           rows, "overview")) +
         Card("Row by row", tables);
}

std::string Verdicts(const std::vector<Comparison>& comparisons) {
  if (comparisons.size() >= kFewFiles) return ManyVerdicts(comparisons);
  std::string html;
  for (const Comparison& comparison : comparisons) {
    html += Card(Against(comparison), Cat({"<p>", Escape(DescribeTogether(comparison.rows)), "</p>",
                                           VerdictTable(comparison)}));
  }
  return html;
}

}  // namespace

std::string ToHtml(const std::vector<LoadedResult>& results,
                   const std::vector<Comparison>& comparisons) {
  const std::vector<Series> series = FindSeries(results);
  const std::string title =
      results.size() == 1 ? results[0].label : Cat({std::to_string(results.size()), " results"});
  std::string html =
      Cat({"<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\n",
           "<meta name=\"viewport\" content=\"width=device-width\">\n<title>Pozor: ", Escape(title),
           "</title>\n<style>", StyleSheet(), "</style></head><body>\n",
           "<h1>Pozor benchmark report</h1>\n"});
  html += Files(results) + Warnings(results);
  if (!comparisons.empty()) {
    html += Section("What differs", "Systems, builds and models, before any speed.",
                    Differences(results, comparisons));
    html += Section("Verdicts",
                    "Speed of a row over the same row of the base; above 1 is faster. The interval "
                    "is a seeded bootstrap over processes and blocks of neighbouring rounds, wide "
                    "enough for all rows together. The time that threads waited for a CPU held by "
                    "other programs is taken off each round, and on one machine the rest is "
                    "divided by the roof that was probed around it; the wall clock as it came "
                    "stands beside it. A difference below the resolution counts as none; it is "
                    "coarser for a disturbed row.",
                    Verdicts(comparisons));
  }
  const std::string legend = Legend(series);
  const auto with_legend = [&legend](const std::string& charts) {
    return charts.empty() ? "" : legend + charts;
  };
  html += Section("Leader board",
                  "Lower quartile of the rounds; the bars of a workload are sorted, error bars are "
                  "95 % bootstrap intervals. Tokens are true ones, padding is not counted.",
                  with_legend(LeaderBoard(results, series)));
  html +=
      Section("Thread scaling", "The dashed line is the best one-thread speed times the threads.",
              with_legend(ThreadScaling(results, series)));
  html += Section("Latency of one text", "Share of calls that took at most so long, up to p99.9.",
                  with_legend(LatencyDistribution(results, series)));
  html +=
      Section("Roofline",
              "Ceilings measured in the same run; each dot is one matrix product of the model's "
              "shapes with hot weights. Point at a dot for its name.",
              Rooflines(results));
  html += Section("Length and batch", "Tokens a second; darker is faster.", HeatMaps(series));
  html += Section("Start", "Medians over the starts of each engine.",
                  Starts(results) + RoofTable(results));
  return html + "</body></html>\n";
}

}  // namespace pozor::tools
