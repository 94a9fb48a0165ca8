// Rooflines and heat maps.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "tools/bench/text.h"
#include "tools/compare/html_charts.h"
#include "tools/compare/svg.h"

namespace pozor::tools {
namespace {

using Table = std::vector<std::vector<std::string>>;

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

// Tokens a second by length and one more setting of the rows.
struct Rates {
  std::string column_title;
  std::set<size_t> lengths, columns;
  std::map<std::pair<size_t, size_t>, double> cells;

  void Add(size_t length, size_t column, double rate) {
    lengths.insert(length);
    columns.insert(column);
    cells[{length, column}] = rate;
  }
};

std::string HeatMapOf(const Rates& rates, const std::string& title) {
  if (rates.lengths.size() < 2) return "";
  HeatMap map;
  map.row_title = "tokens a text";
  map.column_title = rates.column_title;
  Table table;
  std::vector<std::string> head = {"tokens a text"};
  for (const size_t column : rates.columns) {
    map.columns.push_back(column == 0 ? "auto" : std::to_string(column));
    head.push_back(Cat({map.column_title, " ", map.columns.back()}));
  }
  for (const size_t length : rates.lengths) {
    map.rows.push_back(std::to_string(length));
    map.values.emplace_back();
    table.push_back({map.rows.back()});
    for (const size_t column : rates.columns) {
      const auto cell = rates.cells.find({length, column});
      map.values.back().push_back(cell == rates.cells.end() ? std::nan("") : cell->second);
      table.back().push_back(cell == rates.cells.end() ? "–" : Short(cell->second));
    }
  }
  return Card(title, Draw(map) + NumbersBelow(head, table));
}

// Length against batch for each number of threads; where all rows have one batch, against threads.
std::string HeatMapsOf(const Series& series, const std::string& title) {
  const LoadedResult& loaded = *series.file;
  std::map<size_t, Rates> by_threads;
  Rates threads_alone;
  threads_alone.column_title = "threads";
  const std::string& engine = series.engine.empty() ? loaded.label : series.engine;
  std::set<size_t> batches;
  for (const Row& row : loaded.every_batch.empty() ? loaded.result.rows : loaded.every_batch) {
    const RowKey& key = row.key;
    const size_t length = LengthOf(key.workload);
    if (length == 0 || key.engine != series.engine || key.precision != series.precision ||
        key.tier != series.tier) {
      continue;
    }
    batches.insert(key.batch);
    Rates& rates = by_threads[key.threads];
    rates.column_title = engine == "pozor" ? "tokens of a micro-batch" : "texts of a batch";
    rates.Add(length, key.batch, row.summary.tokens_per_second);
    threads_alone.Add(length, key.threads, row.summary.tokens_per_second);
  }
  if (batches.size() < 2) return HeatMapOf(threads_alone, title);
  std::string html;
  for (const auto& [threads, rates] : by_threads) {
    html += HeatMapOf(
        rates, Cat({title, ", ", std::to_string(threads), threads == 1 ? " thread" : " threads"}));
  }
  return html;
}

}  // namespace

std::string Rooflines(const std::vector<LoadedResult>& results) {
  std::string html;
  std::set<std::string> done;  // engines of one file share its roof
  for (const LoadedResult& loaded : results) {
    if (done.insert(loaded.path).second) html += RooflineOf(loaded);
  }
  return html;
}

std::string HeatMaps(const std::vector<Series>& series) {
  std::string html;
  std::set<std::string> done;  // series that differ in their batch share maps
  for (const Series& one : series) {
    const std::string title =
        Cat({one.file->label, one.engine.empty() ? "" : " · ", one.engine, " · ", one.precision,
             one.tier == "auto" ? "" : " · ", one.tier == "auto" ? "" : one.tier});
    if (done.insert(title).second) html += HeatMapsOf(one, title);
  }
  return InGrid(html);
}

}  // namespace pozor::tools
