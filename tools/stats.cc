#include "tools/stats.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

namespace pozor::tools {
namespace {

// Rounds [begin, end) of process `process`.
struct Block {
  size_t process, begin, end;
};

// One bootstrap draw: as many processes as there are, and in each as many rounds as it has, in
// blocks of neighbours that start anywhere.
std::vector<Block> DrawBlocks(const Samples& samples, size_t block, SplitMix64& random) {
  std::vector<Block> blocks;
  for (size_t p = 0; p < samples.size(); ++p) {
    const size_t process = random.Below(samples.size());
    const size_t rounds = samples[process].size();
    const size_t width = std::clamp<size_t>(block, 1, std::max<size_t>(1, rounds));
    for (size_t done = 0; done < rounds; done += width) {
      const size_t begin = random.Below(rounds - width + 1);
      blocks.push_back({process, begin, begin + std::min(width, rounds - done)});
    }
  }
  return blocks;
}

double QuantileOf(const Samples& samples, const std::vector<Block>& blocks, double q,
                  std::vector<double>& scratch) {
  scratch.clear();
  for (const Block& block : blocks) {
    const std::vector<double>& rounds = samples[block.process];
    scratch.insert(scratch.end(), rounds.begin() + static_cast<ptrdiff_t>(block.begin),
                   rounds.begin() + static_cast<ptrdiff_t>(block.end));
  }
  return Quantile(scratch, q);
}

Interval IntervalOf(std::vector<double>& draws, double level) {
  const double tail = (1 - level) / 2;
  return {Quantile(draws, tail), Quantile(draws, 1 - tail)};
}

// Processes without rounds would make empty draws.
Samples WithoutEmpty(const Samples& samples) {
  Samples kept;
  for (const std::vector<double>& rounds : samples) {
    if (!rounds.empty()) kept.push_back(rounds);
  }
  return kept;
}

bool SameShape(const Samples& a, const Samples& b) {
  if (a.size() != b.size()) return false;
  for (size_t p = 0; p < a.size(); ++p) {
    if (a[p].size() != b[p].size()) return false;
  }
  return true;
}

}  // namespace

double Quantile(std::span<const double> values, double q) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::vector<double> sorted(values.begin(), values.end());
  if (std::any_of(sorted.begin(), sorted.end(), [](double value) { return std::isnan(value); })) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  std::sort(sorted.begin(), sorted.end());
  const double place = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const size_t low = static_cast<size_t>(place);
  const size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (place - static_cast<double>(low)) * (sorted[high] - sorted[low]);
}

double Median(std::span<const double> values) { return Quantile(values, 0.5); }

double Mean(std::span<const double> values) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

uint64_t SplitMix64::Next() {
  uint64_t z = (state_ += 0x9e3779b97f4a7c15u);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

size_t SplitMix64::Below(size_t bound) {
  const double place = Uniform() * static_cast<double>(bound);
  return std::min(static_cast<size_t>(place), bound - 1);
}

double SplitMix64::Uniform() { return static_cast<double>(Next() >> 11) * 0x1p-53; }

double SplitMix64::Normal() {
  // Box and Muller 1958; 1 - u keeps the logarithm finite.
  const double radius = std::sqrt(-2 * std::log(1 - Uniform()));
  return radius * std::cos(2 * std::numbers::pi * Uniform());
}

std::vector<double> Flatten(const Samples& samples) {
  std::vector<double> values;
  for (const std::vector<double>& rounds : samples) {
    values.insert(values.end(), rounds.begin(), rounds.end());
  }
  return values;
}

Estimate EstimateOf(const Bootstrap& bootstrap, double level) {
  Estimate estimate = {bootstrap.value, {bootstrap.value, bootstrap.value}};
  if (bootstrap.draws.empty()) return estimate;
  std::vector<double> draws = bootstrap.draws;
  estimate.interval = IntervalOf(draws, level);
  return estimate;
}

namespace {

Bootstrap DrawQuantiles(const Samples& samples, const BootstrapOptions& options) {
  const Samples kept = WithoutEmpty(samples);
  Bootstrap bootstrap = {Quantile(Flatten(kept), options.quantile), {}};
  if (kept.empty()) return bootstrap;
  SplitMix64 random(options.seed);
  std::vector<double> scratch;
  for (size_t i = 0; i < options.draws; ++i) {
    bootstrap.draws.push_back(
        QuantileOf(kept, DrawBlocks(kept, options.block, random), options.quantile, scratch));
  }
  return bootstrap;
}

// The median of b over a, place by place.
Bootstrap DrawPairs(const Samples& a, const Samples& b, BootstrapOptions options) {
  Samples ratios(a.size());
  for (size_t p = 0; p < a.size(); ++p) {
    for (size_t i = 0; i < a[p].size(); ++i) ratios[p].push_back(b[p][i] / a[p][i]);
  }
  options.quantile = 0.5;
  return DrawQuantiles(ratios, options);
}

}  // namespace

Estimate BootstrapQuantile(const Samples& samples, const BootstrapOptions& options) {
  return EstimateOf(DrawQuantiles(samples, options), options.level);
}

Estimate BootstrapRatio(const Samples& a, const Samples& b, const BootstrapOptions& options) {
  return EstimateOf(DrawRatios(a, b, options), options.level);
}

Bootstrap DrawRatios(const Samples& a, const Samples& b, const BootstrapOptions& options) {
  const Samples left = WithoutEmpty(a), right = WithoutEmpty(b);
  if (options.paired && !left.empty() && SameShape(left, right)) {
    return DrawPairs(left, right, options);
  }
  Bootstrap ratio = {
      Quantile(Flatten(right), options.quantile) / Quantile(Flatten(left), options.quantile), {}};
  if (left.empty() || right.empty()) return ratio;
  SplitMix64 random(options.seed);
  std::vector<double> scratch;
  for (size_t i = 0; i < options.draws; ++i) {
    const double below =
        QuantileOf(left, DrawBlocks(left, options.block, random), options.quantile, scratch);
    const double above =
        QuantileOf(right, DrawBlocks(right, options.block, random), options.quantile, scratch);
    ratio.draws.push_back(above / below);
  }
  return ratio;
}

Estimate GeometricMean(std::span<const Bootstrap* const> rows, double level) {
  const auto mean = [&rows](const auto& of) {
    double logarithms = 0;
    for (const Bootstrap* row : rows) logarithms += std::log(of(*row));
    return std::exp(logarithms / static_cast<double>(rows.size()));
  };
  size_t draws = rows.empty() ? 0 : rows.front()->draws.size();
  for (const Bootstrap* row : rows) draws = std::min(draws, row->draws.size());
  Bootstrap all = {mean([](const Bootstrap& row) { return row.value; }), {}};
  for (size_t i = 0; i < draws; ++i) {
    all.draws.push_back(mean([i](const Bootstrap& row) { return row.draws[i]; }));
  }
  return EstimateOf(all, level);
}

}  // namespace pozor::tools
