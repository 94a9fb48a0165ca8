#include "kernels/norm.h"

#include <doctest/doctest.h>

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

struct Case {
  size_t cols;
  size_t rows = 2;
  size_t offset = 0;  // misalignment in floats
  bool residual = false;
  bool beta = true;
  float epsilon = 1e-12f;
  bool shortcut = false;  // RmsNorm only
};

std::string Name(const Case& c) {
  return "cols " + std::to_string(c.cols) + " offset " + std::to_string(c.offset) +
         (c.residual ? " residual" : "") + (c.beta ? "" : " no beta") +
         (c.shortcut ? " shortcut" : "");
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (size_t cols = 1; cols <= 35; ++cols) {
    cases.push_back({cols, 2, cols % 5, cols % 2 == 0, cols % 3 != 0, 1e-5f, cols % 4 < 2});
  }
  for (const size_t cols : {48, 100, 383, 384, 385, 768, 1023}) {
    for (const bool residual : {false, true}) {
      cases.push_back({cols, 3, 0, residual});
      cases.push_back({cols, 3, 1, residual, false, 1e-5f});
      cases.push_back({cols, 9, 2, residual, true, 1e-6f, true});
    }
  }
  return cases;
}

struct Inputs {
  Case c;
  size_t stride;
  Buffer x, residual, gamma, beta, shortcut;

  explicit Inputs(const Case& options, float mean = 0.3f)
      : c(options),
        stride(options.cols + 3),
        x(NormalFloats(c.rows * stride, c.cols), c.offset),
        residual(NormalFloats(c.rows * stride, c.cols + 1), c.offset + 1),
        gamma(RandomFloats(c.cols, c.cols + 2, 0.5f, 1.5f), c.offset + 2),
        beta(RandomFloats(c.cols, c.cols + 3), c.offset + 3),
        shortcut(NormalFloats(c.rows * stride, c.cols + 4), c.offset + 5) {
    for (float& value : x.span()) value += mean;
  }

  NormArgs Args(Buffer* out) const {
    NormArgs args;
    args.x = x.data();
    args.x_stride = stride;
    if (c.residual) args.residual = residual.data();
    args.residual_stride = stride;
    args.gamma = gamma.data();
    if (c.beta) args.beta = beta.data();
    if (c.shortcut) args.shortcut = shortcut.data();
    args.shortcut_stride = stride;
    args.epsilon = c.epsilon;
    args.rows = c.rows;
    args.cols = c.cols;
    args.out = out->data();
    args.out_stride = c.cols;
    return args;
  }

  // kCentered: LayerNorm, else RmsNorm.
  template <bool kCentered>
  std::vector<double> Reference() const {
    std::vector<double> out;
    for (size_t r = 0; r < c.rows; ++r) {
      std::vector<double> s;
      double mean = 0.0, variance = 0.0;
      for (size_t i = 0; i < c.cols; ++i) {
        const double second = c.residual ? static_cast<double>(residual[r * stride + i]) : 0.0;
        s.push_back(static_cast<double>(x[r * stride + i]) + second);
        mean += s.back() / static_cast<double>(c.cols);
      }
      if (!kCentered) mean = 0.0;
      for (const double value : s) {
        variance += (value - mean) * (value - mean) / static_cast<double>(c.cols);
      }
      const double scale = 1.0 / std::sqrt(variance + static_cast<double>(c.epsilon));
      for (size_t i = 0; i < c.cols; ++i) {
        double shift = 0.0;
        if (kCentered && c.beta) shift = static_cast<double>(beta[i]);
        if (!kCentered && c.shortcut) shift = static_cast<double>(shortcut[r * stride + i]);
        out.push_back((s[i] - mean) * scale * static_cast<double>(gamma[i]) + shift);
      }
    }
    return out;
  }
};

std::vector<float> RunLayerNorm(const Inputs& inputs) {
  Buffer out(inputs.c.rows * inputs.c.cols, inputs.c.offset + 4);
  LayerNorm(inputs.Args(&out));
  CHECK(out.GuardsIntact());
  return {out.span().begin(), out.span().end()};
}

std::vector<float> RunRmsNorm(const Inputs& inputs) {
  Buffer out(inputs.c.rows * inputs.c.cols, inputs.c.offset + 4);
  RmsNorm(inputs.Args(&out));
  CHECK(out.GuardsIntact());
  return {out.span().begin(), out.span().end()};
}

TEST_CASE("norms agree with double precision") {
  for (const Case& c : Cases()) {
    CAPTURE(Name(c));
    const Inputs inputs(c);
    const std::vector<double> layer = inputs.Reference<true>(), rms = inputs.Reference<false>();
    ForEachTier([&](CpuTier) {
      // One or two columns have almost no spread: what rounding the mean costs is magnified.
      CHECK(MaxAbsDifference(RunLayerNorm(inputs), layer) < (c.cols <= 2 ? 1e-3 : 4e-6));
      CHECK(MaxAbsDifference(RunRmsNorm(inputs), rms) < 2e-6);
    });
  }
}

std::vector<float> RunAffineNorm(const Inputs& inputs, Buffer* over = nullptr) {
  Buffer own(inputs.c.rows * inputs.c.cols, inputs.c.offset + 4);
  NormArgs args = inputs.Args(over == nullptr ? &own : over);
  if (over != nullptr) args.out_stride = inputs.stride;
  AffineNorm(args);
  std::vector<float> rows;
  for (size_t r = 0; r < inputs.c.rows; ++r) {
    rows.insert(rows.end(), args.out + r * args.out_stride,
                args.out + r * args.out_stride + inputs.c.cols);
  }
  CHECK(own.GuardsIntact());
  return rows;
}

TEST_CASE("an affine norm is gain and shift, the same bits on every fused tier, in place as well") {
  for (const Case& c : Cases()) {
    CAPTURE(Name(c));
    const Inputs inputs(c);
    std::vector<double> expected;
    for (size_t i = 0; i < c.rows * c.cols; ++i) {
      const size_t r = i / c.cols, col = i % c.cols;
      const double shift = c.beta ? static_cast<double>(inputs.beta[col]) : 0.0;
      expected.push_back(static_cast<double>(inputs.x[r * inputs.stride + col]) *
                             static_cast<double>(inputs.gamma[col]) +
                         shift);
    }
    std::vector<float> fused;
    ForEachTier([&](CpuTier) {
      const std::vector<float> got = RunAffineNorm(inputs);
      CHECK(MaxAbsDifference(got, expected) < 2e-6);
      Inputs copy(c);
      CHECK(SameBits(RunAffineNorm(copy, &copy.x), got));
      if (!ActiveTierIsFused()) return;
      if (fused.empty()) fused = got;
      CHECK(SameBits(got, fused));
    });
  }
}

TEST_CASE("norms have the same bits on every fused tier, whatever the alignment") {
  for (Case c : Cases()) {
    CAPTURE(Name(c));
    std::vector<float> layer, rms;
    ForEachFusedTier([&](CpuTier) {
      for (const size_t offset : {0, 1, 7}) {
        c.offset = offset;
        const Inputs inputs(c);
        const std::vector<float> a = RunLayerNorm(inputs), b = RunRmsNorm(inputs);
        if (layer.empty()) layer = a, rms = b;
        CHECK(SameBits(a, layer));
        CHECK(SameBits(b, rms));
      }
    });
  }
}

TEST_CASE("out may be x or the residual") {
  for (const size_t cols : {5, 33, 384}) {
    const Case c{cols, 3, 0, true};
    const Inputs inputs(c);
    ForEachTier([&](CpuTier) {
      const std::vector<float> expected = RunLayerNorm(inputs);
      for (const bool over_x : {false, true}) {
        Inputs copy(c);
        Buffer* target = over_x ? &copy.x : &copy.residual;
        NormArgs args = copy.Args(target);
        args.out_stride = copy.stride;
        LayerNorm(args);
        std::vector<float> rows;
        for (size_t r = 0; r < c.rows; ++r) {
          const float* row = target->data() + r * copy.stride;
          rows.insert(rows.end(), row, row + cols);
        }
        CHECK(SameBits(rows, expected));
      }
    });
  }
}

TEST_CASE("out may be the shortcut") {
  for (const size_t cols : {5, 33, 384}) {
    const Case c{cols, 9, 0, false, false, 1e-6f, true};
    const Inputs inputs(c);
    ForEachTier([&](CpuTier) {
      const std::vector<float> expected = RunRmsNorm(inputs);
      Inputs copy(c);
      NormArgs args = copy.Args(&copy.shortcut);
      args.out_stride = copy.stride;
      RmsNorm(args);
      std::vector<float> rows;
      for (size_t r = 0; r < c.rows; ++r) {
        const float* row = copy.shortcut.data() + r * copy.stride;
        rows.insert(rows.end(), row, row + cols);
      }
      CHECK(SameBits(rows, expected));
    });
  }
}

TEST_CASE("a row's bits do not depend on the rows beside it") {
  const Inputs three({384, 3, 0, true});
  Buffer alone(384);
  NormArgs args = three.Args(&alone);
  args.x += three.stride;
  args.residual += three.stride;
  args.rows = 1;
  LayerNorm(args);
  const std::vector<float> all = RunLayerNorm(three);
  CHECK(SameBits(alone.span(), std::span(all).subspan(384, 384)));
}

TEST_CASE("a large mean costs no digits of the spread") {
  const Inputs inputs({384, 2}, 1000.0f);
  const std::vector<double> expected = inputs.Reference<true>();
  ForEachTier([&](CpuTier) { CHECK(MaxAbsDifference(RunLayerNorm(inputs), expected) < 2e-4); });
}

TEST_CASE("constant rows give beta") {
  Inputs inputs({100, 1, 0, false, true, 1e-5f});
  for (float& value : inputs.x.span()) value = 3.0f;
  ForEachTier(
      [&](CpuTier) { CHECK(MaxAbsDifference(RunLayerNorm(inputs), inputs.beta.span()) < 1e-6); });
}

TEST_CASE("a NaN spreads over its row only") {
  Inputs inputs({50, 2});
  inputs.x[7] = std::numeric_limits<float>::quiet_NaN();
  ForEachTier([&](CpuTier) {
    const std::vector<float> out = RunLayerNorm(inputs);
    for (size_t i = 0; i < out.size(); ++i) CHECK(std::isnan(out[i]) == (i < 50));
  });
}

}  // namespace
}  // namespace pozor::test
