#include "kernels/quantize.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "kernels/norm_quantize.h"
#include "kernels/pack.h"
#include "tests/support/buffer.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/quantized.h"
#include "tests/support/random.h"

namespace pozor::test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

bool SameScale(const RowScale& a, const RowScale& b) {
  return SameBits({&a.scale, 1}, {&b.scale, 1}) && a.zero == b.zero;
}

// One kind of row: what stands in it.
struct Kind {
  std::string name;
  std::vector<float> (*make)(size_t n, uint64_t seed);
};

const Kind kKinds[] = {
    {"normal", [](size_t n, uint64_t seed) { return NormalFloats(n, seed); }},
    {"positive", [](size_t n, uint64_t seed) { return RandomFloats(n, seed, 0.5f, 9.0f); }},
    {"negative", [](size_t n, uint64_t seed) { return RandomFloats(n, seed, -9.0f, -0.5f); }},
    {"zero", [](size_t n, uint64_t) { return std::vector<float>(n); }},
    {"minus zero", [](size_t n, uint64_t) { return std::vector<float>(n, -0.0f); }},
    {"constant", [](size_t n, uint64_t) { return std::vector<float>(n, 3.25f); }},
    {"tiny", [](size_t n, uint64_t) { return std::vector<float>(n, 1e-37f); }},
    {"small", [](size_t n, uint64_t seed) { return RandomFloats(n, seed, -1e-30f, 1e-30f); }},
    {"huge", [](size_t n, uint64_t seed) { return RandomFloats(n, seed, -1e38f, 1e38f); }},
    {"outlier", [](size_t n, uint64_t seed) {
       std::vector<float> x = NormalFloats(n, seed);
       x[n / 2] = 1e5f;
       return x;
     }}};

TEST_CASE("rows are quantised by their formulas on every fused tier") {
  for (const Kind& kind : kKinds) {
    CAPTURE(kind.name);
    for (const size_t cols : {1, 3, 15, 16, 17, 31, 63, 64, 65, 100, 128, 384, 1000}) {
      for (const size_t split : {size_t{0}, size_t{16}, cols / 2 / 16 * 16}) {
        if (split != 0 && split >= cols) continue;
        CAPTURE(cols);
        CAPTURE(split);
        constexpr size_t kRows = 3;
        const size_t stride = cols + 3;
        const Buffer x(kind.make(kRows * stride, cols), 1);
        const size_t groups = split == 0 ? 1 : 2;
        ForEachFusedTier([&](CpuTier) {
          QuantizedBuffer out(kRows, cols, groups);
          QuantizeArgs args;
          args.x = x.data();
          args.x_stride = stride;
          args.rows = kRows;
          args.cols = cols;
          args.split = split;
          args.out = out.view();
          QuantizeRows(args);
          CHECK(out.GuardsIntact());
          std::vector<uint8_t> expected(cols);
          for (size_t r = 0; r < kRows; ++r) {
            for (size_t g = 0; g < groups; ++g) {
              const size_t begin = g == 0 ? 0 : split, end = g + 1 == groups ? cols : split;
              const RowScale want = ReferenceQuantize(
                  x.span().subspan(r * stride + begin, end - begin), expected.data() + begin);
              CHECK(SameScale(out.scales()[r * groups + g], want));
            }
            CHECK(std::equal(expected.begin(), expected.end(), out.row(r)));
          }
        });
      }
    }
  }
}

TEST_CASE("what is quantised is near what comes back") {
  const std::vector<float> x = NormalFloats(384, 1);
  ForEachTier([&](CpuTier) {
    QuantizedBuffer out(1, 384, 1);
    QuantizeRows({.x = x.data(), .x_stride = 384, .rows = 1, .cols = 384, .out = out.view()});
    const RowScale scale = out.scales()[0];
    for (size_t i = 0; i < x.size(); ++i) {
      const float back = scale.scale * static_cast<float>(out.row(0)[i] - scale.zero);
      CHECK(std::abs(back - x[i]) <= 1.01f * scale.scale);
    }
  });
}

TEST_CASE("a NaN, an infinity or a range beyond floats poisons its row and no other") {
  const std::vector<std::vector<float>> poisons = {
      {kNan}, {-kNan}, {kInfinity}, {-kInfinity}, {3e38f, -3e38f}, {kNan, -kInfinity}};
  for (const std::vector<float>& poison : poisons) {
    for (const size_t at : {0, 5, 40, 68}) {
      std::vector<float> x = NormalFloats(3 * 70, at);
      for (size_t i = 0; i < poison.size(); ++i) x[70 + at - i * (at != 0)] = poison[i];
      if (at == 0 && poison.size() > 1) x[71] = poison[0];
      ForEachTier([&](CpuTier) {
        QuantizedBuffer out(3, 70, 1);
        QuantizeRows({.x = x.data(), .x_stride = 70, .rows = 3, .cols = 70, .out = out.view()});
        for (size_t r = 0; r < 3; ++r) CHECK(std::isnan(out.scales()[r].scale) == (r == 1));
      });
    }
  }
}

TEST_CASE("columns are scaled and shifted with one rounding before they are quantised") {
  for (const size_t cols : {5, 64, 77}) {
    const std::vector<float> x = NormalFloats(cols, 1);
    const Buffer scale(RandomFloats(cols, 2, 0.1f, 3.0f), 1), shift(RandomFloats(cols, 3), 2);
    std::vector<float> shifted(cols);
    for (size_t c = 0; c < cols; ++c) shifted[c] = std::fma(x[c], scale[c], shift[c]);
    std::vector<uint8_t> expected(cols);
    const RowScale want = ReferenceQuantize(shifted, expected.data());
    ForEachFusedTier([&](CpuTier) {
      QuantizedBuffer out(1, cols, 1);
      QuantizeRows({.x = x.data(),
                    .x_stride = cols,
                    .rows = 1,
                    .cols = cols,
                    .column_scale = scale.data(),
                    .column_shift = shift.data(),
                    .out = out.view()});
      CHECK(SameScale(out.scales()[0], want));
      CHECK(std::equal(expected.begin(), expected.end(), out.row(0)));
    });
  }
}

// Every way to call the fused normalisation.
struct NormCase {
  size_t cols;
  bool rms, residual, beta, smooth_beta, keeps_rows, in_place;
};

void CheckNormQuantize(const NormCase& c) {
  constexpr size_t kRows = 11;
  const size_t stride = c.cols + 1;
  const Buffer x(NormalFloats(kRows * stride, c.cols), 1), residual(NormalFloats(x.size(), 2), 2);
  const std::vector<float> gamma = RandomFloats(c.cols, 4), beta = RandomFloats(c.cols, 5);
  const std::vector<float> smooth_gamma = RandomFloats(c.cols, 6);
  const std::vector<float> smooth_beta = RandomFloats(c.cols, 7);
  ForEachTier([&](CpuTier) {
    const auto norm = [&](const float* g, const float* b, Buffer* in, Buffer* out) {
      NormArgs args;
      args.x = in->data();
      args.x_stride = args.residual_stride = args.out_stride = stride;
      args.residual = c.residual ? residual.data() : nullptr;
      args.gamma = g;
      args.beta = b;
      args.epsilon = 1e-5f;
      args.rows = kRows;
      args.cols = c.cols;
      args.out = out->data();
      return args;
    };
    Buffer in = x, h(x.size(), 1, -1.0f), smooth(x.size(), 1, -1.0f);
    const NormArgs plain = norm(gamma.data(), c.beta ? beta.data() : nullptr, &in, &h);
    // RmsNorm has no beta: the smoothed rows' shift is added by the quantising alone.
    const NormArgs smoothed = norm(smooth_gamma.data(), smooth_beta.data(), &in, &smooth);
    c.rms ? RmsNorm(plain) : LayerNorm(plain);
    c.rms ? RmsNorm(smoothed) : LayerNorm(smoothed);

    QuantizedBuffer got(kRows, c.cols, 1), want(kRows, c.cols, 1);
    Buffer fused_in = x, fused_h(x.size(), 1, -1.0f);
    Buffer* out = c.in_place ? &fused_in : &fused_h;
    NormQuantizeArgs args;
    args.norm = norm(gamma.data(), c.beta ? beta.data() : nullptr, &fused_in, out);
    if (!c.keeps_rows) args.norm.out = nullptr;
    args.smooth_gamma = smooth_gamma.data();
    args.smooth_beta = c.smooth_beta ? smooth_beta.data() : nullptr;
    args.out = got.view();
    c.rms ? RmsNormQuantize(args) : LayerNormQuantize(args);
    if (c.keeps_rows) {
      for (size_t r = 0; r < kRows; ++r) {
        CHECK(SameBits(out->span().subspan(r * stride, c.cols),
                       h.span().subspan(r * stride, c.cols)));
      }
    }
    CHECK(got.GuardsIntact());
    if (c.rms == c.smooth_beta) return;  // no plain twin
    QuantizeRows({.x = smooth.data(),
                  .x_stride = stride,
                  .rows = kRows,
                  .cols = c.cols,
                  .out = want.view()});
    for (size_t r = 0; r < kRows; ++r) {
      CHECK(SameScale(got.scales()[r], want.scales()[r]));
      CHECK(std::equal(want.row(r), want.row(r) + c.cols, got.row(r)));
    }
  });
}

TEST_CASE("normalising and quantising at once is normalising and then quantising") {
  for (const size_t cols : {1, 7, 16, 33, 64, 100, 384}) {
    for (const bool rms : {false, true}) {
      for (const bool smooth_beta : {false, true}) {
        CAPTURE(cols);
        CAPTURE(rms);
        CAPTURE(smooth_beta);
        CheckNormQuantize({cols, rms, true, true, smooth_beta, true, false});
        CheckNormQuantize({cols, rms, false, true, smooth_beta, true, true});
        CheckNormQuantize({cols, rms, false, false, smooth_beta, false, false});
      }
    }
  }
}

TEST_CASE("a NaN row stays poisoned through a norm") {
  std::vector<float> x = NormalFloats(3 * 40, 1), ones(40, 1.0f), h(x.size());
  x[45] = kNan;
  NormQuantizeArgs args;
  args.norm = {.x = x.data(),
               .x_stride = 40,
               .gamma = ones.data(),
               .rows = 3,
               .cols = 40,
               .out = h.data(),
               .out_stride = 40};
  args.smooth_gamma = ones.data();
  ForEachTier([&](CpuTier) {
    QuantizedBuffer out(3, 40, 1);
    args.out = out.view();
    LayerNormQuantize(args);
    for (size_t r = 0; r < 3; ++r) CHECK(std::isnan(out.scales()[r].scale) == (r == 1));
  });
}

TEST_CASE("weights are quantised and packed alike on every tier") {
  for (const size_t k : {1, 4, 19, 64, 70, 130}) {
    for (const size_t n : {1, 16, 33}) {
      for (const size_t split : {0, 16, 64}) {
        if (split != 0 && split >= k) continue;
        CAPTURE(k);
        CAPTURE(n);
        CAPTURE(split);
        std::vector<float> w = NormalFloats(k * n, k + n);
        if (n == 33) {
          for (size_t i = 0; i < k; ++i) w[3 * k + i] = 0.0f;
          w[5 * k] = kNan;
          w[6 * k + k / 2] = kInfinity;
          for (size_t i = 0; i < k; ++i) w[7 * k + i] = 1e-38f;
        }
        for (const bool transposed : {false, true}) {
          WeightView view = {.data = w.data(), .k = k, .n = n, .k_stride = 1, .n_stride = k};
          if (transposed) view.k_stride = n, view.n_stride = 1;
          const ReferenceWeights expected = ReferenceQuantizeWeights(view, split);
          const PackedS8Buffer want(expected);
          ForEachTier([&](CpuTier) {
            const PackedS8Buffer got(view, split);
            const PackedMatrix &a = got.matrix(), &b = want.matrix();
            const size_t bytes = a.panel_count() * PackedPanelBytes(a.layout, k);
            CHECK(std::memcmp(a.panels, b.panels, bytes) == 0);
            const size_t columns = a.groups() * a.panel_count() * kPanelColumns;
            CHECK(SameBits({a.column_scales, columns}, {b.column_scales, columns}));
            CHECK(std::equal(a.column_sums, a.column_sums + columns, b.column_sums));
          });
        }
      }
    }
  }
}

}  // namespace
}  // namespace pozor::test
