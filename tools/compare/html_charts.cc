#include "tools/compare/html_charts.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "tools/bench/text.h"
#include "tools/compare/compare_rows.h"
#include "tools/compare/svg.h"

namespace pozor::tools {
namespace {

using Table = std::vector<std::vector<std::string>>;

// Work a second of a row, in tokens; in runs where tokens are not known.
double RateOf(const Row& row, double seconds) {
  return (row.tokens > 0 ? static_cast<double>(row.tokens) : 1) / seconds;
}

struct Measured {
  const Row* row = nullptr;
  size_t series = 0;
  Estimate rate;
};

Measured Measure(const Row& row, size_t series) {
  BootstrapOptions options;
  options.draws = 500;
  const Estimate seconds = BootstrapQuantile(VisitSeconds(row, Timing::kQuiet), options);
  Measured measured;
  measured.row = &row;
  measured.series = series;
  measured.rate = {RateOf(row, seconds.value),
                   {RateOf(row, seconds.interval.high), RateOf(row, seconds.interval.low)}};
  return measured;
}

// Every row with samples that `keep` wants, with its series.
template <class Keep>
std::vector<Measured> Collect(const std::vector<LoadedResult>& results,
                              const std::vector<Series>& series, Keep keep) {
  std::vector<Measured> rows;
  for (const LoadedResult& loaded : results) {
    for (const Row& row : loaded.result.rows) {
      if (row.samples.size() == 0 || !keep(row)) continue;
      for (size_t s = 0; s < series.size(); ++s) {
        if (series[s].Holds(loaded, row.key)) rows.push_back(Measure(row, s));
      }
    }
  }
  return rows;
}

// Workloads in the order in which the files have them.
std::vector<std::string> WorkloadsOf(const std::vector<Measured>& rows) {
  std::vector<std::string> names;
  for (const Measured& measured : rows) {
    const std::string& name = measured.row->key.workload;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

std::string UnitOf(const std::vector<Measured>& rows) {
  return !rows.empty() && rows[0].row->tokens > 0 ? "tokens/s" : "runs/s";
}

std::string LeaderBoardOf(size_t threads, const std::vector<Measured>& rows,
                          const std::vector<Series>& series) {
  std::vector<BarGroup> groups;
  Table table;
  for (const std::string& workload : WorkloadsOf(rows)) {
    std::vector<Measured> here;
    for (const Measured& measured : rows) {
      if (measured.row->key.workload == workload) here.push_back(measured);
    }
    std::stable_sort(here.begin(), here.end(), [](const Measured& a, const Measured& b) {
      return a.rate.value > b.rate.value;
    });
    BarGroup group;
    group.label = workload;
    for (const Measured& measured : here) {
      const Series& one = series[measured.series];
      group.bars.push_back({measured.series, one.name, measured.rate.value,
                            measured.rate.interval.low, measured.rate.interval.high});
      const RowSummary& summary = measured.row->summary;
      table.push_back({workload, one.name, Short(measured.rate.value),
                       Short(measured.rate.interval.low), Short(measured.rate.interval.high),
                       Fixed(measured.rate.value / here[0].rate.value, 3),
                       summary.roof_share > 0 ? Fixed(100 * summary.roof_share, 1) : "–"});
    }
    groups.push_back(std::move(group));
  }
  const std::string unit = UnitOf(rows);
  return Card(
      Cat({std::to_string(threads), threads == 1 ? " thread" : " threads"}),
      BarChart(groups, unit, series.size() > kSeriesColours) +
          NumbersBelow({"workload", "what", unit, "low", "high", "of the best", "% of its roof"},
                       table));
}

std::vector<Line> Sorted(std::map<size_t, Line> lines) {
  std::vector<Line> sorted;
  for (auto& [series, line] : lines) {
    std::sort(line.points.begin(), line.points.end(),
              [](const Point& a, const Point& b) { return a.x < b.x; });
    sorted.push_back(std::move(line));
  }
  return sorted;
}

std::string ScalingOf(const std::string& workload, const std::vector<Measured>& rows,
                      const std::vector<Series>& series) {
  std::map<size_t, Line> lines;
  std::set<double> counts;
  Table table;
  for (const Measured& measured : rows) {
    if (measured.row->key.workload != workload) continue;
    Line& line = lines[measured.series];
    const double threads = static_cast<double>(measured.row->key.threads);
    line.series = measured.series;
    line.name = series[measured.series].name;
    line.points.push_back(
        {threads, measured.rate.value, measured.rate.interval.low, measured.rate.interval.high,
         Cat({line.name, ", ", Short(threads), " threads: ", Short(measured.rate.value)})});
    counts.insert(threads);
  }
  if (counts.size() < 2) return "";
  LineChart chart;
  double best_alone = 0;
  for (Line& line : Sorted(std::move(lines))) {
    const Point& first = line.points.front();
    if (first.x == 1) best_alone = std::max(best_alone, first.y);
    for (const Point& point : line.points) {
      table.push_back({line.name, Short(point.x), Short(point.y),
                       first.x == 1 ? Fixed(point.y / first.y, 2) : "–"});
    }
    chart.lines.push_back(std::move(line));
  }
  if (best_alone > 0) {
    Line ideal;
    ideal.series = 7;
    ideal.name = "one thread's speed times threads";
    ideal.dashed = true;
    ideal.dots = false;
    for (const double count : counts) ideal.points.push_back({count, best_alone * count, 0, 0, ""});
    chart.lines.push_back(std::move(ideal));
  }
  chart.x = {"threads",
             counts.size() > 3,
             *counts.begin() * (counts.size() > 3 ? 0.9 : 1),
             *counts.rbegin() * 1.03,
             {counts.begin(), counts.end()}};
  if (counts.size() <= 3)
    chart.x.low = *counts.begin() - 0.1 * (*counts.rbegin() - *counts.begin());
  chart.y = {UnitOf(rows), false, 0, 0, {}};
  return Card(
      workload,
      Draw(chart) + NumbersBelow({"what", "threads", UnitOf(rows), "times one thread"}, table));
}

std::string DistributionOf(const std::string& workload, size_t threads,
                           const std::vector<Measured>& rows, const std::vector<Series>& series) {
  LineChart chart;
  Table table;
  double low = HUGE_VAL, high = 0;
  for (const Measured& measured : rows) {
    const Row& row = *measured.row;
    if (row.key.workload != workload || row.key.threads != threads) continue;
    Line line;
    line.series = measured.series;
    line.name = series[measured.series].name;
    line.dots = false;
    const std::vector<double>& seconds = row.samples.seconds;
    for (int step = 0; step <= 200; ++step) {
      const double q = 0.999 * step / 200;
      line.points.push_back({1e3 * Quantile(seconds, q), q, 0, 0, ""});
    }
    low = std::min(low, line.points.front().x);
    high = std::max(high, line.points.back().x);
    const auto at = [&seconds](double q) { return Short(1e3 * Quantile(seconds, q)); };
    table.push_back({line.name, std::to_string(seconds.size()), at(0), at(0.5), at(0.9), at(0.99),
                     seconds.size() < 1000 ? "–" : at(0.999), at(1)});
    chart.lines.push_back(std::move(line));
  }
  if (chart.lines.empty()) return "";
  chart.x = {"ms a call", true, low / 1.05, high * 1.05, {}};
  chart.y = {"share of calls", false, 0, 1.0, {0, 0.25, 0.5, 0.75, 0.9, 1}};
  return Card(
      Cat({workload, ", ", std::to_string(threads), threads == 1 ? " thread" : " threads"}),
      Draw(chart) +
          NumbersBelow({"what", "calls", "least ms", "p50", "p90", "p99", "p99.9", "most"}, table));
}

}  // namespace

std::string LeaderBoard(const std::vector<LoadedResult>& results,
                        const std::vector<Series>& series) {
  const std::vector<Measured> rows =
      Collect(results, series, [](const Row& row) { return !row.latency; });
  std::map<size_t, std::vector<Measured>> by_threads;
  for (const Measured& measured : rows) by_threads[measured.row->key.threads].push_back(measured);
  std::string html;
  for (const auto& [threads, part] : by_threads) html += LeaderBoardOf(threads, part, series);
  return html;
}

std::string ThreadScaling(const std::vector<LoadedResult>& results,
                          const std::vector<Series>& series) {
  const std::vector<Measured> rows =
      Collect(results, series, [](const Row& row) { return !row.latency; });
  std::string html;
  for (const std::string& workload : WorkloadsOf(rows)) html += ScalingOf(workload, rows, series);
  return InGrid(html);
}

std::string LatencyDistribution(const std::vector<LoadedResult>& results,
                                const std::vector<Series>& series) {
  const std::vector<Measured> rows =
      Collect(results, series, [](const Row& row) { return row.latency; });
  std::set<size_t> threads;
  for (const Measured& measured : rows) threads.insert(measured.row->key.threads);
  std::string html;
  for (const std::string& workload : WorkloadsOf(rows)) {
    for (const size_t count : threads) html += DistributionOf(workload, count, rows, series);
  }
  return InGrid(html);
}

}  // namespace pozor::tools
