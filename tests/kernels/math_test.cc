// The vector exponentials themselves, against libm in double precision, on every target that this
// CPU runs. Activations built on them: activation_test.cc.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/math_test.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"
#include "kernels/rows-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

void ExpRow(const float* x, float* y, size_t n) {
  MapRow(x, y, n, [](VF v) HWY_ATTR { return Exp(DF(), v); });
}

void Expm1Row(const float* x, float* y, size_t n) {
  MapRow(x, y, n, [](VF v) HWY_ATTR { return Expm1(DF(), v); });
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <doctest/doctest.h>

#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"

namespace pozor::test {
namespace {

HWY_EXPORT(ExpRow);
HWY_EXPORT(Expm1Row);

std::vector<float> Exponentials(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  HWY_DYNAMIC_DISPATCH(ExpRow)(x.data(), y.data(), x.size());
  return y;
}

std::vector<float> ExponentialsMinusOne(const std::vector<float>& x) {
  std::vector<float> y(x.size());
  HWY_DYNAMIC_DISPATCH(Expm1Row)(x.data(), y.data(), x.size());
  return y;
}

float FromBits(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, sizeof(x));
  return x;
}

// Floats of one sign from 0 to `end`, every `step`-th of them.
std::vector<float> Grid(float end, uint32_t step) {
  uint32_t last;
  std::memcpy(&last, &end, sizeof(last));
  const uint32_t sign = last & 0x80000000u;
  std::vector<float> x;
  for (uint64_t bits = sign; bits <= last; bits += step) {
    x.push_back(FromBits(static_cast<uint32_t>(bits)));
  }
  x.push_back(end);
  return x;
}

constexpr uint32_t kStep = 1009;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TEST_CASE("exp is within 2 ULP where it is a normal number") {
  for (const float end : {-87.3365f, 88.0f}) {
    const std::vector<float> x = Grid(end, kStep);
    ForEachTier([&](CpuTier) {
      const std::vector<float> y = Exponentials(x);
      double worst = 0.0;
      for (size_t i = 0; i < x.size(); ++i) {
        worst = std::max(worst, UlpError(y[i], std::exp(static_cast<double>(x[i]))));
      }
      CHECK(worst < (ActiveTierIsFused() ? 2.0 : 2.5));
    });
  }
}

TEST_CASE("exp flushes to zero and keeps NaN") {
  const std::vector<float> x = {-87.34f,
                                -88.0f,
                                -103.0f,
                                -150.0f,
                                -1e4f,
                                -1e30f,
                                -3e38f,
                                -kInfinity,
                                0.0f,
                                -0.0f,
                                kNan,
                                FromBits(0xFFC00001u),
                                FromBits(0x7FC001FFu)};
  ForEachTier([&](CpuTier) {
    const std::vector<float> y = Exponentials(x);
    for (size_t i = 0; i < 8; ++i) CHECK(y[i] == 0.0f);
    CHECK(y[8] == 1.0f);
    CHECK(y[9] == 1.0f);
    for (size_t i = 10; i < x.size(); ++i) CHECK(std::isnan(y[i]));
  });
}

TEST_CASE("exp of decreasing arguments never grows by more than its error") {
  const std::vector<float> x = Grid(-87.0f, 100003);
  ForEachTier([&](CpuTier) {
    const std::vector<float> y = Exponentials(x);
    bool ordered = true;
    for (size_t i = 1; i < y.size(); ++i) ordered = ordered && y[i] <= y[i - 1] * (1 + 4e-7f);
    CHECK(ordered);
  });
}

TEST_CASE("expm1 is within 2 ULP for x <= 0") {
  const std::vector<float> x = Grid(-200.0f, kStep);
  ForEachTier([&](CpuTier) {
    const std::vector<float> y = ExponentialsMinusOne(x);
    double worst = 0.0;
    for (size_t i = 0; i < x.size(); ++i) {
      worst = std::max(worst, UlpError(y[i], std::expm1(static_cast<double>(x[i]))));
    }
    CHECK(worst < (ActiveTierIsFused() ? 2.0 : 3.0));
  });
}

TEST_CASE("expm1 saturates and keeps NaN") {
  ForEachTier([&](CpuTier) {
    const std::vector<float> y = ExponentialsMinusOne({-kInfinity, -3e38f, -100.0f, 0.0f, kNan});
    for (size_t i = 0; i < 3; ++i) CHECK(y[i] == -1.0f);
    CHECK(y[3] == 0.0f);
    CHECK(std::isnan(y[4]));
  });
}

TEST_CASE("exponentials have the same bits on every fused tier") {
  std::vector<float> x = Grid(-200.0f, 10007);
  std::vector<float> exp, expm1;
  ForEachFusedTier([&](CpuTier) {
    const std::vector<float> y = Exponentials(x), z = ExponentialsMinusOne(x);
    if (exp.empty()) exp = y, expm1 = z;
    CHECK(SameBits(y, exp));
    CHECK(SameBits(z, expm1));
  });
}

}  // namespace
}  // namespace pozor::test
#endif  // HWY_ONCE
