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
  std::set<std::string> done;
  for (const Series& one : series) {
    const std::string title =
        Cat({one.file->label, one.engine.empty() ? "" : " · ", one.engine, " · ", one.precision});
    if (done.insert(title).second) html += HeatMapOf(*one.file, one.engine, one.precision, title);
  }
  return InGrid(html);
}

}  // namespace pozor::tools
