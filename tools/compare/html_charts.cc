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

std::string Card(const std::string& title, const std::string& inside) {
  return Cat({"<section class=\"card\">", title.empty() ? "" : "<h3>", Escape(title),
              title.empty() ? "" : "</h3>", inside, "</section>\n"});
}

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
  const Estimate seconds = BootstrapQuantile(VisitSeconds(row, false), options);
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
  return Card(Cat({std::to_string(threads), threads == 1 ? " thread" : " threads"}),
              BarChart(groups, unit) + NumbersBelow({"workload", "what", unit, "low", "high",
                                                     "of the best", "% of its roof"},
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

// A ceiling: flat for arithmetic, rising with intensity for bandwidth.
Line Ceiling(size_t series, std::string name, double from, double to, double flat, double slope) {
  Line line;
  line.series = series;
  line.name = std::move(name);
  line.dots = false;
  for (int step = 0; step <= 60; ++step) {
    const double x = from * std::pow(to / from, step / 60.0);
    const double y = slope > 0 ? std::min(flat, slope * x) : flat;
    line.points.push_back({x, y, 0, 0, ""});
  }
  return line;
}

std::string RooflineOf(const LoadedResult& loaded) {
  const BenchResult& result = loaded.result;
  double top = 0;
  std::string top_name;
  for (const ComputeRoof& roof : result.compute_roofs) {
    if (roof.threads == 1 && roof.name.ends_with("-f32") && roof.gflops > top) {
      top = roof.gflops;
      top_name = roof.name;
    }
  }
  if (top == 0 || result.kernels.empty()) return "";
  constexpr double kFrom = 0.1, kTo = 200;
  LineChart chart;
  chart.width = 900;
  chart.height = 400;
  chart.name_lines = true;
  Table table;
  for (const ComputeRoof& roof : result.compute_roofs) {
    if (roof.threads != 1) continue;
    table.push_back({roof.name, Short(roof.gflops), "–", "–"});
    chart.lines.push_back(Ceiling(7, roof.name, kFrom, kTo, roof.gflops, 0));
  }
  size_t colour = 1;
  for (const BandwidthRoof& roof : result.bandwidth_roofs) {
    if (roof.threads != 1) continue;
    table.push_back({roof.level + " read", "–", Short(roof.gb_per_second), "–"});
    Line line =
        Ceiling(colour++, roof.level, kFrom, top / roof.gb_per_second, top, roof.gb_per_second);
    line.dashed = true;
    line.name = "";
    chart.lines.push_back(std::move(line));
  }
  Line dots;
  dots.strokes = false;
  for (const KernelRecord& kernel : result.kernels) {
    const double flops = 2 * static_cast<double>(kernel.m) * static_cast<double>(kernel.n) *
                         static_cast<double>(kernel.k);
    const std::string name = Cat({kernel.name, ", ", std::to_string(kernel.m), " x ",
                                  std::to_string(kernel.n), " x ", std::to_string(kernel.k)});
    dots.points.push_back({flops / kernel.bytes, kernel.gflops, 0, 0,
                           Cat({name, ": ", Short(kernel.gflops), " GFLOP/s"})});
    table.push_back({name, Short(kernel.gflops), Short(flops / kernel.bytes),
                     Fixed(100 * kernel.gflops / top, 1)});
  }
  chart.lines.push_back(std::move(dots));
  chart.x = {"operations a byte (weights, input and output once)", true, kFrom, kTo, {}};
  double least = top;
  for (const Point& point : chart.lines.back().points) least = std::min(least, point.y);
  double most = top;
  for (const ComputeRoof& roof : result.compute_roofs) {
    if (roof.threads == 1) most = std::max(most, roof.gflops);
  }
  chart.y = {"GFLOP/s, one thread", true, std::min(least, top / 30) / 1.2, most * 1.3, {}};
  std::string legend = "<div class=\"legend\"><span><i class=\"s0\"></i>matrix products</span>";
  colour = 1;
  for (const BandwidthRoof& roof : result.bandwidth_roofs) {
    if (roof.threads != 1) continue;
    legend += Cat({"<span><i class=\"s", std::to_string(colour++), "\"></i>", roof.level, " ",
                   Short(roof.gb_per_second), " GB/s</span>"});
  }
  return Card(loaded.label, legend + "</div>" + Draw(chart) +
                                NumbersBelow({"what", "GFLOP/s", "GB/s or operations a byte",
                                              Cat({"% of ", top_name})},
                                             table));
}

size_t LengthOf(const std::string& workload) {
  return workload.starts_with("fixed-") ? std::strtoul(workload.c_str() + 6, nullptr, 10) : 0;
}

std::string HeatMapOf(const LoadedResult& loaded, const std::string& engine,
                      const std::string& precision, const std::string& title) {
  std::set<size_t> lengths, batches, threads;
  std::map<std::pair<size_t, size_t>, double> by_batch, by_threads;
  for (const Row& row : loaded.result.rows) {
    const size_t length = LengthOf(row.key.workload);
    if (length == 0 || row.key.engine != engine || row.key.precision != precision) continue;
    lengths.insert(length);
    batches.insert(row.key.batch);
    threads.insert(row.key.threads);
    const double rate = row.summary.tokens_per_second;
    if (row.key.threads == *threads.begin()) by_batch[{length, row.key.batch}] = rate;
    by_threads[{length, row.key.threads}] = rate;
  }
  const bool use_batches = batches.size() > 1;
  const std::set<size_t>& columns = use_batches ? batches : threads;
  if (lengths.size() < 2) return "";
  HeatMap map;
  map.row_title = "tokens a text";
  map.column_title = use_batches ? "tokens of a micro-batch" : "threads";
  Table table;
  std::vector<std::string> head = {"tokens a text"};
  for (const size_t column : columns) {
    map.columns.push_back(use_batches && column == 0 ? "auto" : std::to_string(column));
    head.push_back(Cat({map.column_title, " ", map.columns.back()}));
  }
  for (const size_t length : lengths) {
    map.rows.push_back(std::to_string(length));
    map.values.emplace_back();
    table.push_back({map.rows.back()});
    for (const size_t column : columns) {
      const auto& cells = use_batches ? by_batch : by_threads;
      const auto cell = cells.find({length, column});
      map.values.back().push_back(cell == cells.end() ? std::nan("") : cell->second);
      table.back().push_back(cell == cells.end() ? "–" : Short(cell->second));
    }
  }
  return Card(title, Draw(map) + NumbersBelow(head, table));
}

std::string InGrid(const std::string& cards) {
  return cards.empty() ? "" : Cat({"<div class=\"grid-of-charts\">", cards, "</div>\n"});
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

std::string Rooflines(const std::vector<LoadedResult>& results) {
  std::string html;
  for (const LoadedResult& loaded : results) html += RooflineOf(loaded);
  return html;
}

std::string HeatMaps(const std::vector<LoadedResult>& results, const std::vector<Series>& series) {
  std::string html;
  std::set<std::string> done;
  for (const Series& one : series) {
    const std::string title = Cat({one.file->label, " · ", one.engine, " · ", one.precision});
    if (done.insert(title).second) html += HeatMapOf(*one.file, one.engine, one.precision, title);
  }
  static_cast<void>(results);
  return InGrid(html);
}

}  // namespace pozor::tools
