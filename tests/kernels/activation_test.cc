#include "kernels/activation.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/support/buffer.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/random.h"
#include "tests/support/reference.h"

namespace pozor::test {
namespace {

// |computed - exact| <= absolute + relative * |exact| for every finite x up to 1e4 in magnitude.
// Fused tiers; a baseline without fused multiply-add may err twice as far.
struct Tolerance {
  Activation activation;
  double absolute;
  double relative;
};

constexpr Tolerance kTolerances[] = {
    {Activation::kNone, 0, 0},
    {Activation::kGelu, 2.5e-7, 6e-8},
    {Activation::kGeluTanh, 2.5e-7, 2.5e-7},
    {Activation::kQuickGelu, 1e-7, 2.5e-7},
    {Activation::kRelu, 0, 0},
    {Activation::kRelu6, 0, 0},
    {Activation::kReluSquared, 1e-38, 6e-8},
    {Activation::kLeakyRelu, 1e-38, 1e-7},
    {Activation::kSilu, 1e-7, 2e-7},
    {Activation::kTanh, 1e-38, 3e-7},
    {Activation::kSigmoid, 1.2e-38, 3e-7},
    {Activation::kMish, 1e-7, 2.5e-7},
    {Activation::kElu, 1e-38, 2e-7},
};

// Both signs, every `step`-th float up to `end`.
std::vector<float> Grid(float end, uint32_t step) {
  uint32_t last;
  std::memcpy(&last, &end, sizeof(last));
  std::vector<float> x;
  for (uint64_t bits = 0; bits <= last; bits += step) {
    const auto magnitude = static_cast<uint32_t>(bits);
    float value;
    std::memcpy(&value, &magnitude, sizeof(value));
    x.push_back(value);
    x.push_back(-value);
  }
  return x;
}

std::vector<float> Activated(Activation activation, const std::vector<float>& x) {
  std::vector<float> y(x.size());
  Activate(activation, x.data(), y.data(), x.size());
  return y;
}

TEST_CASE("every activation has a tolerance") {
  CHECK(std::size(kTolerances) == AllActivations().size());
}

TEST_CASE("activations are within their stated errors") {
  const std::vector<float> x = Grid(1e4f, 2003);
  for (const Tolerance& row : kTolerances) {
    CAPTURE(std::string(ActivationName(row.activation)));
    std::vector<double> expected(x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      expected[i] = ReferenceActivation(row.activation, static_cast<double>(x[i]));
    }
    ForEachTier([&](CpuTier) {
      const std::vector<float> y = Activated(row.activation, x);
      const double slack = ActiveTierIsFused() ? 1 : 2;
      double worst = 0.0;  // error over what is allowed
      float worst_x = 0.0f;
      for (size_t i = 0; i < x.size(); ++i) {
        const double error = std::abs(static_cast<double>(y[i]) - expected[i]);
        const double allowed =
            slack * (row.absolute + row.relative * std::abs(expected[i])) + 1e-300;
        if (error / allowed > worst) worst = error / allowed, worst_x = x[i];
      }
      CAPTURE(worst_x);
      CHECK(worst <= 1.0);
    });
  }
}

TEST_CASE("activations have the same bits on every fused tier") {
  const std::vector<float> x = Grid(3e38f, 100003);
  for (const Activation activation : AllActivations()) {
    CAPTURE(std::string(ActivationName(activation)));
    std::vector<float> first;
    ForEachFusedTier([&](CpuTier) {
      std::vector<float> y = Activated(activation, x);
      // Sign and payload of a NaN (from 0 times infinity) are the CPU's own.
      for (float& value : y) value = std::isnan(value) ? 12345.0f : value;
      if (first.empty()) first = y;
      CHECK(SameBits(y, first));
    });
  }
}

TEST_CASE("GELU is exact at its ends") {
  ForEachTier([&](CpuTier) {
    const float infinity = std::numeric_limits<float>::infinity();
    const std::vector<float> same = {0.0f, -0.0f, 5.7f, 6.0f, 100.0f, infinity};
    CHECK(Activated(Activation::kGelu, same) == same);
    for (const float y : Activated(Activation::kGelu, {-5.7f, -6.0f, -100.0f, -infinity})) {
      CHECK(std::abs(y) < 1e-24f);
    }
  });
}

TEST_CASE("NaN in gives NaN out") {
  for (const Activation activation : AllActivations()) {
    CAPTURE(std::string(ActivationName(activation)));
    ForEachTier([&](CpuTier) {
      std::vector<float> x(37, 0.5f);
      x[3] = std::numeric_limits<float>::quiet_NaN();
      x[36] = -std::numeric_limits<float>::quiet_NaN();
      const std::vector<float> y = Activated(activation, x);
      for (size_t i = 0; i < x.size(); ++i) CHECK(std::isnan(y[i]) == (i == 3 || i == 36));
    });
  }
}

TEST_CASE("any length and alignment, in place or not, plain or gated") {
  for (const Activation activation : {Activation::kGelu, Activation::kSilu, Activation::kNone}) {
    ForEachTier([&](CpuTier) {
      for (size_t n = 0; n <= 35; ++n) {
        for (const size_t offset : {0, 1, 5}) {
          const Buffer x(RandomFloats(n, n + 1, -6, 6), offset);
          const Buffer value(RandomFloats(n, n + 2, -2, 2), offset + 1);
          Buffer y(n, 2), gated(n, 3), in_place(x.span(), offset);
          Activate(activation, x.data(), y.data(), n);
          ActivateGated(activation, x.data(), value.data(), gated.data(), n);
          Activate(activation, in_place.data(), in_place.data(), n);
          REQUIRE(y.GuardsIntact());
          REQUIRE(gated.GuardsIntact());
          REQUIRE(in_place.GuardsIntact());
          REQUIRE(SameBits(in_place.span(), y.span()));
          for (size_t i = 0; i < n; ++i) {
            REQUIRE(y[i] == doctest::Approx(ReferenceActivation(activation, x[i])).epsilon(1e-6));
            REQUIRE(gated[i] == y[i] * value[i]);
          }
        }
      }
    });
  }
}

}  // namespace
}  // namespace pozor::test
