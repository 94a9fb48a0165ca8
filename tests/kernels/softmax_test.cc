#include "kernels/softmax.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "tests/support/buffer.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/random.h"

namespace pozor::test {
namespace {

std::vector<double> Reference(std::span<const float> x) {
  const double max = *std::max_element(x.begin(), x.end());
  std::vector<double> y;
  double sum = 0.0;
  for (const float value : x) sum += y.emplace_back(std::exp(static_cast<double>(value) - max));
  for (double& value : y) value /= sum;
  return y;
}

std::vector<size_t> Lengths() {
  std::vector<size_t> lengths;
  for (size_t n = 1; n <= 35; ++n) lengths.push_back(n);
  lengths.insert(lengths.end(), {63, 100, 333, 1000});
  return lengths;
}

TEST_CASE("softmax rows agree with double precision") {
  constexpr size_t kRows = 3;
  for (const size_t n : Lengths()) {
    CAPTURE(n);
    const size_t stride = n + 2;
    const std::vector<float> x = RandomFloats(kRows * stride, n, -9, 9);
    ForEachTier([&](CpuTier) {
      Buffer y(x, n % 7);
      Softmax(y.data(), kRows, n, stride);
      CHECK(y.GuardsIntact());
      for (size_t r = 0; r < kRows; ++r) {
        const std::vector<double> expected = Reference(std::span(x).subspan(r * stride, n));
        CHECK(MaxAbsDifference(y.span().subspan(r * stride, n), expected) < 3e-7);
        for (size_t c = n; c < stride; ++c) CHECK(y[r * stride + c] == x[r * stride + c]);
      }
    });
  }
}

TEST_CASE("softmax has the same bits on every fused tier and at every alignment") {
  for (const size_t n : Lengths()) {
    const std::vector<float> x = RandomFloats(n, 40 + n, -9, 9);
    std::vector<float> first;
    ForEachFusedTier([&](CpuTier) {
      for (const size_t offset : {0, 3}) {
        Buffer y(x, offset);
        Softmax(y.data(), 1, n, n);
        if (first.empty()) first.assign(y.span().begin(), y.span().end());
        CHECK(SameBits(y.span(), first));
      }
    });
  }
}

TEST_CASE("softmax of extreme rows") {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  struct Row {
    const char* name;
    std::vector<float> x, y;
  };
  const Row rows[] = {
      {"one element", {-1e30f}, {1}},
      {"all equal", std::vector<float>(32, 7.0f), std::vector<float>(32, 1 / 32.0f)},
      {"huge", {3e38f, 3e38f, -3e38f}, {0.5f, 0.5f, 0}},
      {"masked", {-kInfinity, 2, -kInfinity}, {0, 1, 0}},
      {"all masked", {-kInfinity, -kInfinity}, {kNan, kNan}},
      {"infinite", {1, kInfinity}, {kNan, kNan}},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.name));
    ForEachTier([&](CpuTier) {
      std::vector<float> y = row.x;
      Softmax(y.data(), 1, y.size(), y.size());
      for (size_t i = 0; i < y.size(); ++i) {
        CHECK((y[i] == row.y[i] || (std::isnan(y[i]) && std::isnan(row.y[i]))));
      }
    });
  }
}

TEST_CASE("a NaN in a row makes the row NaN") {
  for (const size_t n : {1, 5, 16, 40}) {
    for (size_t place = 0; place < n; ++place) {
      ForEachTier([&](CpuTier) {
        std::vector<float> y(n, 1.0f);
        y[place] = std::numeric_limits<float>::quiet_NaN();
        Softmax(y.data(), 1, n, n);
        for (const float value : y) CHECK(std::isnan(value));
      });
    }
  }
}

}  // namespace
}  // namespace pozor::test
