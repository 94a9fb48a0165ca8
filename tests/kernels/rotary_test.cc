// Rotary position embedding against complex multiplication in double precision.
#include "kernels/rotary.h"

#include <doctest/doctest.h>

#include <cmath>
#include <complex>
#include <vector>

#include "tests/support/buffer.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/random.h"

namespace pozor::test {
namespace {

struct Case {
  RotaryPairs pairs;
  size_t rows, columns, stride;
};

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const RotaryPairs pairs : {RotaryPairs::kHalves, RotaryPairs::kInterleaved}) {
    for (const size_t columns : {2, 4, 6, 10, 12, 16, 20, 30, 32, 34, 64, 96, 128, 250}) {
      for (const size_t rows : {1, 3, 17}) cases.push_back({pairs, rows, columns, columns + 5});
    }
  }
  return cases;
}

constexpr size_t kPositions = 40;

// A pair (x, y) is the complex number x + iy and turns by multiplication with e^(i angle).
std::vector<double> Twin(const Case& c, std::span<const float> x, std::span<const float> angles,
                         std::span<const int32_t> positions) {
  std::vector<double> out(x.begin(), x.end());
  const size_t half = c.columns / 2;
  for (size_t r = 0; r < c.rows; ++r) {
    for (size_t p = 0; p < half; ++p) {
      const bool halves = c.pairs == RotaryPairs::kHalves;
      const size_t first = r * c.stride + (halves ? p : 2 * p),
                   second = first + (halves ? half : 1);
      const double angle = angles[static_cast<size_t>(positions[r]) * half + p];
      const std::complex<double> turned =
          std::complex<double>(x[first], x[second]) * std::polar(1.0, angle);
      out[first] = turned.real();
      out[second] = turned.imag();
    }
  }
  return out;
}

std::vector<float> Table(const Case& c, std::span<const float> angles) {
  const size_t half = c.columns / 2;
  std::vector<float> table(kPositions * c.columns);
  for (size_t p = 0; p < kPositions; ++p) {
    for (size_t i = 0; i < half; ++i) {
      const double angle = angles[p * half + i];
      const bool halves = c.pairs == RotaryPairs::kHalves;
      table[p * c.columns + (halves ? i : 2 * i)] = static_cast<float>(std::cos(angle));
      table[p * c.columns + (halves ? half + i : 2 * i + 1)] = static_cast<float>(std::sin(angle));
    }
  }
  return table;
}

TEST_CASE("rotation agrees with complex multiplication, and on all fused tiers bit for bit") {
  for (const Case& c : Cases()) {
    CAPTURE(c.columns);
    CAPTURE(c.rows);
    const std::vector<float> angles = RandomFloats(kPositions * c.columns / 2, 5, -3.0f, 3.0f);
    const std::vector<float> table = Table(c, angles);
    const std::vector<float> x = RandomFloats(c.rows * c.stride, 6, -1.0f, 1.0f);
    Random random(7);
    std::vector<int32_t> positions(c.rows);
    for (int32_t& position : positions) position = static_cast<int32_t>(random.Index(kPositions));
    const std::vector<double> expected = Twin(c, x, angles, positions);
    std::vector<float> first;
    ForEachTier([&](CpuTier) {
      for (const size_t shift : {0, 3}) {
        Buffer buffer(x.size(), shift);
        std::copy(x.begin(), x.end(), buffer.data());
        RotaryArgs args;
        args.x = buffer.data();
        args.x_stride = c.stride;
        args.rows = c.rows;
        args.columns = c.columns;
        args.pairs = c.pairs;
        args.table = table.data();
        args.positions = positions.data();
        Rotate(args);
        CHECK(buffer.GuardsIntact());
        CHECK(MaxAbsDifference(buffer.span(), expected) < 3e-7);
        if (!ActiveTierIsFused()) continue;
        if (first.empty()) first.assign(buffer.span().begin(), buffer.span().end());
        CHECK(SameBits(buffer.span(), first));
      }
    });
  }
}

}  // namespace
}  // namespace pozor::test
