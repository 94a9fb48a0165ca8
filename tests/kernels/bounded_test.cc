#include "kernels/bounded.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include "kernels/gemm.h"
#include "tests/support/amx_emulator.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/quantized.h"
#include "tests/support/random.h"

#if defined(__x86_64__)

namespace pozor::test {
namespace {

// Weights [n, k] by `value`(k, n), with scales of 1.
template <class Value>
ReferenceWeights MakeWeights(size_t k, size_t n, size_t split, Value&& value) {
  ReferenceWeights weights = {k, n, split, std::vector<int8_t>(k * n), {}, {}};
  const size_t groups = split == 0 ? 1 : 2;
  weights.scales.assign(groups * n, 1.0f);
  weights.sums.assign(groups * n, 0);
  for (size_t column = 0; column < n; ++column) {
    for (size_t i = 0; i < k; ++i) {
      const int w = value(i, column);
      weights.values[column * k + i] = static_cast<int8_t>(w);
      weights.sums[(split != 0 && i >= split ? n : 0) + column] += w;
    }
  }
  return weights;
}

// Every sum of four products that a kernel adds in 16 bits stays there, and both parts together are
// the weights.
void CheckParts(const ReferenceWeights& weights) {
  const PackedS8Buffer packed(weights);
  const PackedMatrix& b = packed.matrix();
  const size_t panel_bytes = PackedPanelBytes(b.layout, b.k), padded_k = panel_bytes / 16;
  std::vector<int> sums(padded_k * b.panel_count() * 16, 0);  // [n, padded k]
  size_t unbounded = 0, gaps = 0, outside = 0;
  for (size_t n = 0; n < b.panel_count() * 16; ++n) {
    for (size_t k = 0; k < padded_k; ++k) {
      sums[n * padded_k + k] = int{b.bounded->panels[PackedS8Index(b.k, k, n)]};
    }
    for (size_t k = 0; k < padded_k; k += 8) {
      for (const size_t four : {0, 2}) {
        int above = 0, below = 0;
        for (const size_t input : {0, 1, 4, 5}) {
          const int w = sums[n * padded_k + k + four + input];
          above += std::max(w, 0), below += std::max(-w, 0);
        }
        unbounded += above > 128 || below > 128;
      }
    }
  }
  for (size_t i = 0; i < b.panel_count() * b.groups(); ++i) {
    const size_t panel = i / b.groups(), g = i % b.groups();
    const size_t begin = g == 0 ? 0 : b.split, end = g + 1 < b.groups() ? b.split : padded_k;
    size_t column = 0;  // ascending, every one there
    for (uint32_t at = b.bounded->starts[i]; at < b.bounded->starts[i + 1]; ++at) {
      const RestFour& four = b.bounded->rests[at];
      gaps += four.column() != column && four.column() != column + 1;
      column = four.column();
      for (size_t which = 0; which < 4; ++which) {
        if (four.value[which] == 0) continue;
        const size_t input = which == 0 ? four.first_input() : four.place[which];
        outside += input < begin || input >= end;
        sums[(panel * 16 + column) * padded_k + input] += four.value[which];
      }
    }
    gaps += column != 15;
  }
  CHECK(unbounded == 0);
  CHECK(gaps == 0);
  CHECK(outside == 0);
  size_t different = 0;
  for (size_t n = 0; n < weights.n; ++n) {
    for (size_t k = 0; k < weights.k; ++k) {
      different += sums[n * padded_k + k] != weights.values[n * weights.k + k];
    }
  }
  CHECK(different == 0);
}

TEST_CASE("bounded weights and rests are the weights, and no sum of four leaves 16 bits") {
  Random random(3);
  for (const auto& [k, n, split] : std::vector<std::array<size_t, 3>>{{1, 1, 0},
                                                                      {7, 5, 0},
                                                                      {8, 16, 0},
                                                                      {65, 33, 0},
                                                                      {384, 40, 0},
                                                                      {80, 20, 16},
                                                                      {200, 17, 48}}) {
    CAPTURE(k);
    CAPTURE(n);
    ForEachTier([&](CpuTier) {
      const auto normal = [&](size_t, size_t) {
        return std::clamp(static_cast<int>(std::lround(45 * random.Normal())), -127, 127);
      };
      CheckParts(MakeWeights(k, n, split, normal));
      CheckParts(MakeWeights(k, n, split, [](size_t, size_t) { return 0; }));
      CheckParts(MakeWeights(k, n, split, [](size_t, size_t) { return 127; }));
      CheckParts(MakeWeights(k, n, split, [](size_t, size_t) { return -128; }));
      CheckParts(
          MakeWeights(k, n, split, [](size_t i, size_t) { return i % 2 == 0 ? 127 : -127; }));
      CheckParts(MakeWeights(k, n, split, [](size_t i, size_t) { return i % 4 == 0 ? -128 : 1; }));
      CheckParts(MakeWeights(
          k, n, split, [&](size_t, size_t) { return static_cast<int>(random.Index(256)) - 128; }));
    });
  }
}

// One four at a time: the eight inputs that stand in it may be anything on the bound.
TEST_CASE("sums at the edge of 16 bits are exact on every kernel") {
  const AmxEmulator amx;
  const int edges[] = {-128, -127, -65, -64, -1, 0, 1, 63, 64, 65, 127};
  Random random(4);
  const size_t k = 64, n = 64, m = 5;
  for (int round = 0; round < 40; ++round) {
    const ReferenceWeights weights =
        MakeWeights(k, n, 0, [&](size_t, size_t) { return edges[random.Index(std::size(edges))]; });
    const PackedS8Buffer packed(weights);
    QuantizedBuffer rows(m, k, 1);
    for (size_t i = 0; i < m; ++i) {
      rows.view().scales[i] = {1.0f, 0};
      for (size_t j = 0; j < k; ++j) {
        rows.view().values[i * rows.view().stride + j] =
            random.Index(3) == 0 ? static_cast<uint8_t>(random.Index(256)) : 255;
      }
    }
    const std::vector<float> expected = ReferenceS8Product(rows.view(), m, weights, nullptr);
    for (const GemmKernel& kernel : AllGemmKernels()) {
      if (!RunsHere(kernel) || kernel.layout != PackedLayout::kS8x16x4) continue;
      const std::string name(kernel.name);
      CAPTURE(name);
      for (const bool bounded : {true, false}) {
        PackedMatrix matrix = packed.matrix();
        if (!bounded) matrix.bounded = nullptr;
        std::vector<float> c(m * n);
        GemmArgs args;
        args.quantized = rows.view();
        args.m = m;
        args.b = &matrix;
        args.panel_end = matrix.panel_count();
        args.epilogue.c = c.data();
        args.epilogue.c_stride = n;
        kernel.run(args);
        CHECK(SameBits(c, expected));
      }
    }
  }
}

}  // namespace
}  // namespace pozor::test

#endif  // defined(__x86_64__)
