#include "tools/compare/html.h"

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

std::string Files(const std::vector<LoadedResult>& results) {
  std::vector<std::vector<std::string>> rows;
  for (const LoadedResult& loaded : results) {
    const SystemRecord& system = loaded.result.system;
    const std::string commit = system.Get("build", "commit");
    rows.push_back({loaded.label, loaded.result.created, system.Get("cpu", "name"),
                    system.Get("cpu", "hypervisor") == "yes" ? "virtual machine" : "",
                    Cat({system.Get("build", "pozor"), commit.empty() ? "" : " (", commit,
                         commit.empty() ? "" : ")"}),
                    system.Get("build", "compiler"), loaded.result.model.name});
  }
  return Card("", HtmlTable({"file", "measured", "CPU", "", "Pozor", "compiler", "model"}, rows));
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

// One column a file, one row a fact that is not the same in all of them.
std::string Differences(const std::vector<LoadedResult>& results,
                        const std::vector<Comparison>& comparisons) {
  std::vector<std::string> head = {"what"};
  for (const LoadedResult& loaded : results) head.push_back(loaded.label);
  std::vector<std::vector<std::string>> rows;
  for (size_t c = 0; c < comparisons.size(); ++c) {
    for (const Difference& difference : comparisons[c].differences) {
      const std::string what = Cat({difference.section, ": ", difference.key});
      std::vector<std::string>* row = nullptr;
      for (std::vector<std::string>& known : rows) {
        if (known[0] == what) row = &known;
      }
      if (row == nullptr) {
        rows.emplace_back(results.size() + 1, difference.base);
        rows.back()[0] = what;
        row = &rows.back();
      }
      (*row)[c + 2] = difference.other;
    }
  }
  if (rows.empty()) return Card("", "<p>Nothing that was recorded differs.</p>");
  return Card("", HtmlTable(head, rows));
}

std::string RoofTable(const std::vector<LoadedResult>& results) {
  std::vector<std::vector<std::string>> rows;
  std::set<std::string> done;  // engines of one file share its roof
  for (const LoadedResult& loaded : results) {
    if (!done.insert(loaded.path).second) continue;
    for (const ComputeRoof& roof : loaded.result.compute_roofs) {
      rows.push_back(
          {loaded.label, roof.name, std::to_string(roof.threads), Short(roof.gflops), "GFLOP/s"});
    }
    for (const BandwidthRoof& roof : loaded.result.bandwidth_roofs) {
      rows.push_back({loaded.label, roof.level + " read", std::to_string(roof.threads),
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
    for (const StartRecord& start : loaded.result.starts) {
      const auto ms = [](const std::vector<double>& seconds) {
        return seconds.empty() ? std::string("–") : Short(1e3 * Median(seconds));
      };
      rows.push_back({loaded.label, start.engine, start.precision, start.tier,
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

std::string VerdictTable(const Comparison& comparison) {
  std::string html =
      Cat({"<table><thead><tr><th>row</th><th class=\"n\">speed</th><th class=\"n\">",
           "interval</th><th class=\"n\">wall clock</th><th class=\"n\">below this "
           "none</th><th>verdict</th></tr>",
           "</thead><tbody>\n"});
  for (const RowComparison& row : comparison.rows) {
    const RowKey& key = row.base != nullptr ? row.base->key : row.other->key;
    std::string style(VerdictName(row.verdict));
    if (style == "not comparable") style = "not-comparable";
    html += Cat({"<tr><td>", Escape(DescribeKey(key)), "</td>"});
    if (row.verdict == Verdict::kNotComparable) {
      for (int i = 0; i < 4; ++i) html += "<td class=\"n\">–</td>";
    } else {
      html += Cat({"<td class=\"n\">", Fixed(row.speed.value, 3), "</td><td class=\"n\">",
                   Fixed(row.speed.interval.low, 3), " – ", Fixed(row.speed.interval.high, 3),
                   "</td><td class=\"n\">", Fixed(row.plain_speed.value, 3),
                   "</td><td class=\"n\">", Fixed(100 * row.resolution, 1), " %</td>"});
    }
    html += Cat({"<td class=\"", style, "\">", VerdictName(row.verdict),
                 row.why.empty() ? "" : ": ", Escape(row.why), "</td></tr>\n"});
  }
  return html + "</tbody></table>\n";
}

std::string Verdicts(const std::vector<Comparison>& comparisons) {
  std::string html;
  for (const Comparison& comparison : comparisons) {
    html += Card(
        "", Cat({"<h3>", Escape(comparison.other->label), " against ",
                 Escape(comparison.base->label), "</h3><p>",
                 Escape(DescribeTogether(comparison.rows)), "</p>", VerdictTable(comparison)}));
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
