// Statistics of timing samples: quantiles and seeded bootstrap intervals of ratios.
//
// Timings on a shared machine are right-skewed and drift: a disturbed round is slower, never
// faster, and neighbouring rounds are disturbed together. So the estimator is a low quantile, and
// the bootstrap draws processes first and blocks of neighbouring rounds second (a hierarchical
// block bootstrap: Davison and Hinkley 1997, chapters 3.8 and 8.2), not single rounds.
#ifndef POZOR_TOOLS_STATS_H_
#define POZOR_TOOLS_STATS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pozor::tools {

// Quantile q in [0, 1] by linear interpolation between order statistics (type 7 of Hyndman and
// Fan 1996). NaN for no values.
double Quantile(std::span<const double> values, double q);
double Median(std::span<const double> values);
double Mean(std::span<const double> values);

// A small seeded generator whose sequence is the same everywhere (Steele, Lea and Flood 2014,
// "SplitMix64").
class SplitMix64 {
 public:
  explicit SplitMix64(uint64_t seed) : state_(seed) {}
  uint64_t Next();
  size_t Below(size_t bound);  // uniform in [0, bound), bound > 0
  double Uniform();            // in [0, 1)
  double Normal();             // standard normal

 private:
  uint64_t state_;
};

// Samples of one row in the order they were taken: one inner vector for each process.
using Samples = std::vector<std::vector<double>>;  // [process][round]

std::vector<double> Flatten(const Samples& samples);

struct Interval {
  double low = 0;
  double high = 0;
};

struct BootstrapOptions {
  double quantile = 0.25;  // of the samples of a row
  double level = 0.95;     // of the interval
  size_t draws = 2000;
  size_t block = 4;  // neighbouring rounds drawn together
  uint64_t seed = 1;
  // Rounds of both sides stand at the same places of one interleaved run: the estimate is the
  // median of the ratios of neighbours, in which the machine's mood cancels, and both sides draw
  // the same.
  bool paired = false;
};

struct Estimate {
  double value = 0;
  Interval interval;
};

// An estimate, and what it came to in each draw of the bootstrap.
struct Bootstrap {
  double value = 0;
  std::vector<double> draws;
};
Estimate EstimateOf(const Bootstrap& bootstrap, double level);

// The quantile of one row.
Estimate BootstrapQuantile(const Samples& samples, const BootstrapOptions& options);

// Quantile of `b` over quantile of `a` (paired: the median of b over a): above 1, b took longer.
// NaN if a side has no samples.
Estimate BootstrapRatio(const Samples& a, const Samples& b, const BootstrapOptions& options);
Bootstrap DrawRatios(const Samples& a, const Samples& b, const BootstrapOptions& options);

// The geometric mean of several rows' ratios, drawn with one seed: rows of equal shapes draw the
// same rounds, so that what disturbed all of them at once counts as one disturbance. NaN without
// rows.
Estimate GeometricMean(std::span<const Bootstrap* const> rows, double level);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_STATS_H_
