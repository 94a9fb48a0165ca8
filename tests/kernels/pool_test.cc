#include "kernels/pool.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/buffer.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/random.h"

namespace pozor::test {
namespace {

struct Mode {
  Pooling pooling;
  const char* name;
};
constexpr Mode kModes[] = {
    {Pooling::kCls, "cls"},
    {Pooling::kMax, "max"},
    {Pooling::kMean, "mean"},
    {Pooling::kMeanSqrt, "mean_sqrt_len"},
    {Pooling::kWeightedMean, "weightedmean"},
    {Pooling::kLastToken, "lasttoken"},
};

struct Case {
  size_t first, tokens, cols;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (size_t cols = 1; cols <= 70; ++cols) cases.push_back({0, 5, cols});
  for (const size_t tokens : {1, 2, 3, 17, 128, 600}) cases.push_back({0, tokens, 33});
  cases.push_back({3, 10, 384});
  cases.push_back({9, 10, 384});
  cases.push_back({10, 10, 20});
  cases.push_back({0, 0, 20});
  return cases;
}

double Reference(Pooling pooling, const Buffer& x, size_t stride, const Case& c, size_t column) {
  double sum = 0.0, weighted = 0.0, weights = 0.0;
  double max = -std::numeric_limits<double>::infinity();
  for (size_t r = c.first; r < c.tokens; ++r) {
    const double value = x[r * stride + column];
    sum += value;
    weighted += static_cast<double>(r + 1) * value;
    weights += static_cast<double>(r + 1);
    max = std::max(max, value);
  }
  if (c.first >= c.tokens) return 0.0;
  const double rows = static_cast<double>(c.tokens - c.first);
  switch (pooling) {
    case Pooling::kCls:
      return x[c.first * stride + column];
    case Pooling::kMax:
      return max;
    case Pooling::kMean:
      return sum / rows;
    case Pooling::kMeanSqrt:
      return sum / std::sqrt(rows);
    case Pooling::kWeightedMean:
      return weighted / weights;
    case Pooling::kLastToken:
      return x[(c.tokens - 1) * stride + column];
  }
  return 0.0;
}

TEST_CASE("every pooling mode agrees with double precision and across tiers") {
  for (const Mode& mode : kModes) {
    for (const Case& c : Cases()) {
      CAPTURE(std::string(mode.name));
      CAPTURE(c.tokens);
      CAPTURE(c.cols);
      const size_t stride = c.cols + 1;
      const Buffer x(NormalFloats(std::max<size_t>(c.tokens, 1) * stride, c.cols), 1);
      std::vector<double> expected;
      for (size_t i = 0; i < c.cols; ++i) {
        expected.push_back(Reference(mode.pooling, x, stride, c, i));
      }
      std::vector<float> first;
      ForEachTier([&](CpuTier) {
        Buffer out(c.cols, 2, 99.0f);
        Pool(mode.pooling, x.data(), stride, c.first, c.tokens, c.cols, out.data());
        CHECK(out.GuardsIntact());
        CHECK(MaxAbsDifference(out.span(), expected) < 2e-6);
        if (!ActiveTierIsFused()) return;
        if (first.empty()) first.assign(out.span().begin(), out.span().end());
        CHECK(SameBits(out.span(), first));
      });
    }
  }
}

TEST_CASE("max pooling keeps NaN and the first of equal zeros") {
  ForEachTier([&](CpuTier) {
    const float nan = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> x = {nan, 1.0f, -0.0f, 0.0f, 1.0f, nan, 0.0f, -0.0f};  // [2, 4]
    std::vector<float> out(4);
    Pool(Pooling::kMax, x.data(), 4, 0, 2, 4, out.data());
    CHECK(std::isnan(out[0]));
    CHECK(std::isnan(out[1]));
    CHECK(std::signbit(out[2]));
    CHECK_FALSE(std::signbit(out[3]));
  });
}

TEST_CASE("normalised vectors have length one") {
  for (const size_t n : {1, 2, 7, 15, 16, 17, 33, 384, 767}) {
    CAPTURE(n);
    const std::vector<float> x = NormalFloats(n, n, 3.0f);
    double norm = 0.0;
    for (const float value : x) norm += static_cast<double>(value) * static_cast<double>(value);
    std::vector<double> expected;
    for (const float value : x) expected.push_back(static_cast<double>(value) / std::sqrt(norm));
    std::vector<float> first;
    ForEachTier([&](CpuTier) {
      for (const size_t offset : {0, 1}) {
        Buffer y(x, offset);
        L2Normalize(y.data(), n);
        CHECK(y.GuardsIntact());
        CHECK(MaxAbsDifference(y.span(), expected) < 3e-7);
        if (!ActiveTierIsFused()) continue;
        if (first.empty()) first.assign(y.span().begin(), y.span().end());
        CHECK(SameBits(y.span(), first));
      }
    });
  }
}

TEST_CASE("the zero vector stays zero when normalised") {
  ForEachTier([&](CpuTier) {
    std::vector<float> x(20, 0.0f);
    L2Normalize(x.data(), x.size());
    for (const float value : x) CHECK(value == 0.0f);
  });
}

TEST_CASE("dot products agree with double precision and across tiers") {
  for (size_t n = 0; n <= 70; ++n) {
    CAPTURE(n);
    const Buffer a(NormalFloats(n, 2 * n), n % 3), b(NormalFloats(n, 2 * n + 1), n % 5);
    double expected = 0.0;
    for (size_t i = 0; i < n; ++i)
      expected += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    std::vector<float> first;
    ForEachTier([&](CpuTier) {
      const float dot = Dot(a.data(), b.data(), n);
      CHECK(std::abs(dot - expected) < 5e-6);
      if (!ActiveTierIsFused()) return;
      if (first.empty()) first.push_back(dot);
      CHECK(SameBits(first, std::vector<float>{dot}));
    });
  }
}

}  // namespace
}  // namespace pozor::test
