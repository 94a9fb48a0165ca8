// Quantiles, the seeded generator, and what the bootstrap says about equal and unequal rows.
#include "tools/stats.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

namespace pozor::tools {
namespace {

// Rounds as a shared machine gives them: a floor that wanders slowly, and disturbances that only
// ever slow down.
Samples MakeRounds(uint64_t seed, double factor, size_t processes = 3, size_t rounds = 16) {
  SplitMix64 random(seed);
  Samples samples(processes);
  for (std::vector<double>& process : samples) {
    for (size_t i = 0; i < rounds; ++i) {
      const double floor = 1 + 0.004 * random.Normal();
      const double disturbance = random.Uniform() < 0.4 ? -0.1 * std::log(1 - random.Uniform()) : 0;
      process.push_back(factor * floor * (1 + disturbance));
    }
  }
  return samples;
}

TEST_CASE("quantiles interpolate between order statistics") {
  struct Case {
    const char* name;
    std::vector<double> values;
    double q, expected;
  };
  for (const Case& c : {Case{"one value", {7}, 0.9, 7}, Case{"median of two", {4, 2}, 0.5, 3},
                        Case{"least", {3, 1, 2}, 0, 1}, Case{"most", {3, 1, 2}, 1, 3},
                        Case{"quarter of five", {5, 4, 3, 2, 1}, 0.25, 2},
                        Case{"between", {0, 10}, 0.25, 2.5}, Case{"beyond", {1, 2}, 1.5, 2}}) {
    CAPTURE(c.name);
    CHECK(Quantile(c.values, c.q) == doctest::Approx(c.expected));
  }
  CHECK(std::isnan(Quantile({}, 0.5)));
  const double nan = std::nan("");
  for (const double q : {0.0, 0.25, 1.0}) {
    CHECK(std::isnan(Quantile(std::vector<double>{1, nan, 2}, q)));
    CHECK(std::isnan(Quantile(std::vector<double>{nan, 1, 2}, q)));
  }
  CHECK(std::isnan(Mean({})));
}

TEST_CASE("the generator gives the same numbers everywhere") {
  SplitMix64 random(0);  // first outputs of the published reference for seed 0
  CHECK(random.Next() == 0xe220a8397b1dcdafu);
  CHECK(random.Next() == 0x6e789e6aa1b965f4u);
  SplitMix64 other(7);
  for (int i = 0; i < 1000; ++i) {
    CHECK(other.Below(3) < 3);
    const double uniform = other.Uniform();
    CHECK(uniform >= 0);
    CHECK(uniform < 1);
  }
}

TEST_CASE("one seed gives one interval, and it holds the estimate") {
  const Samples a = MakeRounds(1, 1), b = MakeRounds(2, 1.05);
  const Estimate first = BootstrapRatio(a, b, {}), second = BootstrapRatio(a, b, {});
  CHECK(first.interval.low == second.interval.low);
  CHECK(first.interval.high == second.interval.high);
  CHECK(first.interval.low <= first.value);
  CHECK(first.value <= first.interval.high);
  const Estimate alone = BootstrapQuantile(a, {});
  CHECK(alone.interval.low <= alone.value);
  CHECK(alone.value <= alone.interval.high);
}

TEST_CASE("equal rows are rarely told apart, 5 % nearly always") {
  constexpr int kTrials = 100;
  int false_alarms = 0, found = 0;
  BootstrapOptions options;
  options.draws = 300;
  for (int trial = 0; trial < kTrials; ++trial) {
    const uint64_t seed = 1000 + 10 * static_cast<uint64_t>(trial);
    const Samples base = MakeRounds(seed, 1);
    const Interval same = BootstrapRatio(base, MakeRounds(seed + 1, 1), options).interval;
    const Interval slower = BootstrapRatio(base, MakeRounds(seed + 2, 1.05), options).interval;
    false_alarms += same.low > 1 || same.high < 1;
    found += slower.low > 1;
  }
  CHECK(false_alarms <= 12);
  CHECK(found >= 95);
}

TEST_CASE("rounds of one interleaved run are drawn together") {
  // Both sides share the machine's mood, which is far larger than their difference of 1 %.
  SplitMix64 random(5);
  Samples a(2), b(2);
  for (size_t p = 0; p < 2; ++p) {
    for (int i = 0; i < 24; ++i) {
      const double mood = 1 + 0.5 * random.Uniform();
      a[p].push_back(mood);
      b[p].push_back(1.01 * mood);
    }
  }
  BootstrapOptions paired;
  paired.paired = true;
  const Estimate together = BootstrapRatio(a, b, paired), apart = BootstrapRatio(a, b, {});
  CHECK(together.interval.low > 1);
  CHECK(together.interval.high - together.interval.low < 0.001);
  CHECK(apart.interval.high - apart.interval.low > 0.02);
}

TEST_CASE("several rows together are as sure as their disturbances are independent") {
  BootstrapOptions options;
  options.draws = 500;
  std::vector<Bootstrap> rows;
  for (uint64_t row = 0; row < 9; ++row) {
    rows.push_back(DrawRatios(MakeRounds(2 * row + 1, 1), MakeRounds(2 * row + 2, 1.05), options));
  }
  std::vector<const Bootstrap*> different, equal;
  for (const Bootstrap& row : rows) {
    different.push_back(&row);
    equal.push_back(&rows[0]);
  }
  const auto width = [](const Estimate& e) { return e.interval.high - e.interval.low; };
  const Estimate one = EstimateOf(rows[0], 0.95);
  const Estimate all = GeometricMean(different, 0.95), same = GeometricMean(equal, 0.95);
  CHECK(all.interval.low > 1.03);
  CHECK(all.interval.high < 1.07);
  CHECK(width(all) < 0.7 * width(one));
  CHECK(same.value == doctest::Approx(one.value));
  CHECK(width(same) == doctest::Approx(width(one)));
  CHECK(std::isnan(GeometricMean({}, 0.95).value));
}

TEST_CASE("rows without samples give no number") {
  const Samples some = {{1, 2, 3}};
  for (const Samples& none : {Samples{}, Samples{{}}}) {
    CHECK(std::isnan(BootstrapRatio(some, none, {}).value));
    CHECK(std::isnan(BootstrapRatio(none, some, {}).value));
    CHECK(std::isnan(BootstrapQuantile(none, {}).value));
  }
  // A process that was ended before its first round does not count.
  CHECK(BootstrapQuantile({{}, {2, 2}}, {}).value == 2);
}

}  // namespace
}  // namespace pozor::tools
