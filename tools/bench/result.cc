#include "tools/bench/result.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace pozor::tools {

Samples ByProcess(const RowSamples& samples, const std::vector<double>& values) {
  std::map<double, std::vector<double>> processes;
  for (size_t i = 0; i < values.size() && i < samples.process.size(); ++i) {
    processes[samples.process[i]].push_back(values[i]);
  }
  Samples groups;
  for (auto& [process, rounds] : processes) groups.push_back(std::move(rounds));
  return groups;
}

std::vector<double> QuietSeconds(const RowSamples& samples, size_t threads) {
  const double share = 1 / static_cast<double>(std::max<size_t>(1, threads));
  std::vector<double> quiet;
  for (size_t i = 0; i < samples.size(); ++i) {
    const double least = std::min(samples.seconds[i], samples.cpu_seconds[i] * share);
    const double waited = std::max(0.0, samples.waited[i]) * share;
    quiet.push_back(std::max(least, samples.seconds[i] - waited));
  }
  return quiet;
}

void Summarise(const std::vector<ComputeRoof>& roofs, size_t cpus, Row* row) {
  const std::vector<double>& seconds = row->samples.seconds;
  const std::vector<double> quiet = QuietSeconds(row->samples, row->key.threads);
  RowSummary& summary = row->summary;
  summary = {};
  if (seconds.empty()) return;
  summary.seconds = Quantile(quiet, 0.25);
  summary.p50 = Median(seconds);
  summary.p90 = Quantile(seconds, 0.9);
  summary.p99 = Quantile(seconds, 0.99);
  summary.p999 = Quantile(seconds, 0.999);
  summary.texts_per_second = static_cast<double>(row->texts) / summary.seconds;
  summary.tokens_per_second = static_cast<double>(row->tokens) / summary.seconds;
  summary.cpu_seconds_per_1000_texts =
      1000 * Quantile(row->samples.cpu_seconds, 0.25) / static_cast<double>(row->texts);
  summary.gflops = row->flops / summary.seconds * 1e-9;
  for (const ComputeRoof& roof : roofs) {
    if (roof.name == row->roof_name && roof.threads == row->key.threads && roof.gflops > 0) {
      summary.roof_share = summary.gflops / roof.gflops;
    }
  }
  double stolen = 0, time = 0, rest = 0;
  for (const double value : row->samples.stolen) stolen += std::max(0.0, value);
  for (const double value : seconds) time += value;
  for (const double value : quiet) rest += value;
  summary.waited_share = 1 - rest / time;
  summary.stolen_share =
      std::min(1.0, stolen / (time * static_cast<double>(std::max<size_t>(1, cpus))));
}

}  // namespace pozor::tools
