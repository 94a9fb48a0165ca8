#include "tools/bench/markdown.h"

#include <algorithm>

#include "tools/bench/text.h"

namespace pozor::tools {
namespace {

// Display width of UTF-8 text: code points, which is right for what stands in these tables.
size_t WidthOf(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

std::string Milliseconds(double seconds) { return Short(1e3 * seconds); }

std::string Count(size_t value) { return std::to_string(value); }

std::string Roofs(const BenchResult& result) {
  std::vector<std::vector<std::string>> rows;
  rows.reserve(result.compute_roofs.size());
  for (const ComputeRoof& roof : result.compute_roofs) {
    rows.push_back({roof.name, Count(roof.threads), Short(roof.gflops) + " GFLOP/s"});
  }
  for (const BandwidthRoof& roof : result.bandwidth_roofs) {
    rows.push_back({Cat({roof.level, " read, ", Count(roof.bytes >> 10), " KiB a thread"}),
                    Count(roof.threads), Short(roof.gb_per_second) + " GB/s"});
  }
  return MarkdownTable({"roof", "threads", "measured"}, rows);
}

std::string Starts(const BenchResult& result) {
  std::vector<std::vector<std::string>> rows;
  for (const StartRecord& start : result.starts) {
    if (start.ready_seconds.empty()) continue;  // it was left out
    rows.push_back(
        {start.engine, start.precision, start.tier, Count(start.threads),
         Milliseconds(Median(start.ready_seconds)), Milliseconds(Median(start.load_seconds)),
         Milliseconds(Median(start.first_vector_seconds)), Short(Median(start.warm_up_seconds)),
         start.mean_cosine == 0 ? "–" : Fixed(start.min_cosine, 6)});
  }
  return MarkdownTable({"engine", "precision", "tier", "threads", "start to first vector ms",
                        "load ms", "first vector ms", "warm-up s", "min cosine to first f32"},
                       rows);
}

std::string Batch(const Row& row) { return row.key.batch == 0 ? "auto" : Count(row.key.batch); }

std::string Throughput(const BenchResult& result) {
  std::vector<std::vector<std::string>> rows;
  for (const Row& row : result.rows) {
    if (row.latency || row.samples.size() == 0) continue;
    const RowSummary& s = row.summary;
    rows.push_back({row.key.workload, row.key.engine, row.key.precision, row.active_tier,
                    Count(row.key.threads), Batch(row), Count(row.texts), Short(s.texts_per_second),
                    Short(s.tokens_per_second), Milliseconds(s.p50), Milliseconds(s.p99),
                    Short(s.cpu_seconds_per_1000_texts), Short(s.gflops),
                    s.roof_share > 0 ? Fixed(100 * s.roof_share, 1) + " %" : "–",
                    Fixed(row.peak_memory_bytes / 1048576, 0)});
  }
  if (rows.empty()) return "";
  return MarkdownTable(
      {"workload", "engine", "precision", "tier", "threads", "batch", "texts", "texts/s",
       "tokens/s", "p50 ms", "p99 ms", "CPU s / 1000 texts", "GFLOP/s", "of roof", "peak MiB"},
      rows);
}

std::string Latency(const BenchResult& result) {
  std::vector<std::vector<std::string>> rows;
  for (const Row& row : result.rows) {
    if (!row.latency || row.samples.size() == 0) continue;
    const RowSummary& s = row.summary;
    rows.push_back({row.key.workload, row.key.engine, row.key.precision, row.active_tier,
                    Count(row.key.threads), Count(row.samples.size()), Milliseconds(s.seconds),
                    Milliseconds(s.p50), Milliseconds(s.p90),
                    row.samples.size() < 100 ? "–" : Milliseconds(s.p99),
                    row.samples.size() < 1000 ? "–" : Milliseconds(s.p999),
                    Milliseconds(s.cpu_seconds_per_1000_texts / 1000)});
  }
  if (rows.empty()) return "";
  return MarkdownTable({"one text at a time", "engine", "precision", "tier", "threads", "calls",
                        "quiet ms", "p50 ms", "p90 ms", "p99 ms", "p99.9 ms", "CPU ms"},
                       rows);
}

}  // namespace

std::string MarkdownTable(const std::vector<std::string>& head,
                          const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  widths.reserve(head.size());
  for (const std::string& cell : head) widths.push_back(WidthOf(cell));
  for (const std::vector<std::string>& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], WidthOf(row[i]));
  }
  const auto line = [&widths](const std::vector<std::string>& cells) {
    std::string text = "|";
    for (size_t i = 0; i < cells.size(); ++i) {
      text += Cat({" ", cells[i], std::string(widths[i] - WidthOf(cells[i]), ' '), " |"});
    }
    return text + "\n";
  };
  std::string table = line(head) + "|";
  for (const size_t width : widths) table += std::string(width + 2, '-') + "|";
  table += "\n";
  for (const std::vector<std::string>& row : rows) table += line(row);
  return table;
}

std::string ToMarkdown(const BenchResult& result) {
  const SystemRecord& system = result.system;
  std::string text = Cat({"### ", result.model.name, " on ", system.Get("cpu", "name"), "\n\n"});
  text += Cat({result.created, ", Pozor ", system.Get("build", "pozor"), " (",
               system.Get("build", "commit"), "), ", system.Get("build", "compiler"), ", ",
               system.Get("os", "kernel"),
               system.Get("cpu", "hypervisor") == "yes" ? ", virtual machine" : "", ", ",
               system.Get("limits", "allowed CPUs"), " allowed CPUs, tiers ",
               system.Get("cpu", "tiers"), "\n\n"});
  for (const std::string& part :
       {Roofs(result), Starts(result), Throughput(result), Latency(result)}) {
    if (!part.empty()) text += part + "\n";
  }
  text +=
      "texts/s, tokens/s and GFLOP/s are of the lower quartile of the rounds, less the time that "
      "the "
      "engine's threads waited for a CPU which another program held; p50 to p99.9 are as they "
      "came. "
      "Tokens and operations are true ones, padding is never counted.\n";
  for (const std::string& warning : result.warnings)
    text += Cat({"\n**Warning**: ", warning, "\n"});
  return text;
}

}  // namespace pozor::tools
