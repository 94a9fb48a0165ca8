#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "kernels/gemm.h"
#include "tests/support/amx_emulator.h"
#include "tests/support/buffer.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/quantized.h"
#include "tests/support/random.h"
#include "tests/support/reference.h"

namespace pozor::test {
namespace {

struct Shape {
  size_t m, k, n, split = 0;
};

// Quantised activations and weights of random values, and the product's twin.
struct Product {
  Product(const Shape& s, uint64_t seed)
      : shape(s),
        source(NormalFloats(s.k * s.n, seed)),
        view({.data = source.data(), .k = s.k, .n = s.n, .k_stride = 1, .n_stride = s.k}),
        weights(ReferenceQuantizeWeights(view, s.split)),
        packed(weights),
        rows(s.m, s.k, s.split == 0 ? 1 : 2),
        bias(RandomFloats(RoundUp(s.n, kPanelColumns), seed + 2), 0) {
    const std::vector<float> x = NormalFloats(s.m * s.k, seed + 1);
    QuantizeRows({.x = x.data(),
                  .x_stride = s.k,
                  .rows = s.m,
                  .cols = s.k,
                  .split = s.split,
                  .out = rows.view()});
    Refresh();
  }

  // After a change of rows or weights.
  void Refresh() {
    packed = PackedS8Buffer(weights);
    args.quantized = rows.view();
    args.m = shape.m;
    args.b = &packed.matrix();
    args.panel_end = args.b->panel_count();
    args.epilogue.bias = bias.data();
    expected = ReferenceS8Product(rows.view(), shape.m, weights, bias.data());
  }

  Shape shape;
  std::vector<float> source;
  WeightView view;
  ReferenceWeights weights;
  PackedS8Buffer packed;
  QuantizedBuffer rows;
  Buffer bias;
  std::vector<float> expected;  // [m, n]
  GemmArgs args;
};

template <class Check>
void ForEachKernel(Check&& check) {
  const AmxEmulator amx;
  for (const GemmKernel& kernel : AllGemmKernels()) {
    if (!RunsHere(kernel) || kernel.layout != PackedLayout::kS8x16x4) continue;
    const std::string name(kernel.name);
    CAPTURE(name);
    check(kernel);
  }
}

bool IsFused(const GemmKernel& kernel) { return kernel.tier != CpuTier::kSse4; }

constexpr float kUntouched = -77.0f;

// Runs every kernel into rows of an odd stride and compares with the twin.
void CheckProduct(const Product& product) {
  const Shape& shape = product.shape;
  const size_t stride = shape.n + 5;
  ForEachKernel([&](const GemmKernel& kernel) {
    Buffer c(shape.m * stride, 3, kUntouched);
    GemmArgs args = product.args;
    args.epilogue.c = c.data();
    args.epilogue.c_stride = stride;
    kernel.run(args);
    CHECK(c.GuardsIntact());
    size_t untouched = 0, differing_rows = 0;
    double largest = 0;
    for (size_t i = 0; i < shape.m; ++i) {
      const std::span<const float> row = c.span().subspan(i * stride, stride);
      const std::span<const float> want(product.expected.data() + i * shape.n, shape.n);
      differing_rows += !SameBits(row.first(shape.n), want);
      largest = std::max(largest, MaxAbsDifference(row.first(shape.n), want));
      untouched += static_cast<size_t>(std::count(row.begin() + shape.n, row.end(), kUntouched));
    }
    CHECK(untouched == shape.m * 5);
    if (IsFused(kernel)) CHECK(differing_rows == 0);
    CHECK(largest <= 1e-3);
  });
}

TEST_CASE("every int8 kernel gives the bits of exact sums") {
  const size_t row_counts[] = {1, 2, 3, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 25, 32, 33, 49, 98};
  const Shape weights[] = {{0, 1, 1},    {0, 2, 16},       {0, 3, 17},      {0, 7, 31},
                           {0, 16, 48},  {0, 33, 65},      {0, 64, 80},     {0, 77, 100},
                           {0, 130, 64}, {0, 80, 50, 64},  {0, 33, 33, 16}, {0, 200, 70, 48},
                           {0, 530, 20}, {0, 1100, 33, 64}};
  for (Shape shape : weights) {
    for (const size_t m : row_counts) {
      shape.m = m;
      CAPTURE(shape.m);
      CAPTURE(shape.k);
      CAPTURE(shape.n);
      CAPTURE(shape.split);
      CheckProduct(Product(shape, 17 * shape.k + m));
    }
  }
}

// AMX copies rows behind the last sixteen to the stack, which such long ones fill one by one.
TEST_CASE("long rows, some more than sixteen and thirty-two") {
  CheckProduct(Product({18, 13000, 20}, 21));
  CheckProduct(Product({35, 13000, 33}, 22));
}

TEST_CASE("extreme operands") {
  const uint8_t bytes[] = {0, 1, 127, 128, 129, 255};
  for (const Shape& shape : {Shape{13, 384, 40}, Shape{6, 1536, 33, 64}, Shape{3, 4100, 20}}) {
    for (const int pattern : {0, 1, 2, 3}) {
      CAPTURE(shape.k);
      CAPTURE(pattern);
      Product product(shape, 5);
      Random random(static_cast<uint64_t>(pattern));
      QuantizedRows rows = product.rows.view();
      for (size_t i = 0; i < shape.m; ++i) {
        for (size_t k = 0; k < shape.k; ++k) {
          uint8_t byte = bytes[random.Index(6)];
          if (pattern == 1) byte = 255;
          if (pattern == 2) byte = 0;
          rows.values[i * rows.stride + k] = byte;
        }
        for (size_t g = 0; g < rows.groups; ++g) {
          rows.scales[i * rows.groups + g] = {1e-3f, pattern == 1 ? 0 : pattern == 2 ? 255 : 128};
        }
      }
      std::fill(product.weights.sums.begin(), product.weights.sums.end(), 0);
      for (size_t n = 0; n < shape.n; ++n) {
        for (size_t k = 0; k < shape.k; ++k) {
          int value = random.Index(2) == 0 ? -127 : 127;
          if (pattern == 1 || pattern == 2) value = n % 2 == 0 ? 127 : -127;
          product.weights.values[n * shape.k + k] = static_cast<int8_t>(value);
          const size_t group = shape.split != 0 && k >= shape.split ? 1 : 0;
          product.weights.sums[group * shape.n + n] += value;
        }
      }
      product.Refresh();
      CheckProduct(product);
    }
  }
}

TEST_CASE("zero, constant, outlying and poisoned rows") {
  const Shape shape = {9, 100, 37, 48};
  Product product(shape, 9);
  std::vector<float> x = NormalFloats(shape.m * shape.k, 3);
  const auto fill = [&](size_t row, float value) {
    std::fill_n(x.begin() + static_cast<ptrdiff_t>(row * shape.k), shape.k, value);
  };
  fill(0, 0.0f), fill(1, 2.5f), fill(2, -3.0f), fill(3, 1e-38f);
  x[4 * shape.k + 7] = 1e6f;
  x[5 * shape.k + 7] = std::numeric_limits<float>::quiet_NaN();
  x[6 * shape.k + 99] = -std::numeric_limits<float>::infinity();
  x[7 * shape.k + 1] = 3e38f, x[7 * shape.k + 2] = -3e38f;
  QuantizeRows({.x = x.data(),
                .x_stride = shape.k,
                .rows = shape.m,
                .cols = shape.k,
                .split = shape.split,
                .out = product.rows.view()});
  product.Refresh();
  for (float& value : product.expected) value = std::isnan(value) ? 0.0f : value;
  ForEachKernel([&](const GemmKernel& kernel) {
    Buffer c(shape.m * shape.n);
    GemmArgs args = product.args;
    args.epilogue.c = c.data();
    args.epilogue.c_stride = shape.n;
    kernel.run(args);
    for (size_t i = 0; i < shape.m; ++i) {
      const std::span<float> row = c.span().subspan(i * shape.n, shape.n);
      const auto is_nan = [](float value) { return std::isnan(value); };
      const bool poisoned = i >= 5 && i <= 7;
      CAPTURE(i);
      CHECK(std::all_of(row.begin(), row.end(), is_nan) == poisoned);
      if (poisoned) continue;
      CHECK(std::none_of(row.begin(), row.end(), is_nan));
      const std::span<const float> want(product.expected.data() + i * shape.n, shape.n);
      if (IsFused(kernel)) CHECK(SameBits(row, want));
      if (i == 0 || i == 3) CHECK(SameBits(row, product.bias.span().first(shape.n)));
    }
  });
}

TEST_CASE("results do not depend on how panels and rows are cut") {
  const Shape shape = {13, 96, 170, 16};
  Product product(shape, 3);
  const size_t cuts[] = {0, 1, 3, 8, 10, 11};
  ForEachKernel([&](const GemmKernel& kernel) {
    Buffer parts(shape.m * shape.n, 0, kUntouched);
    for (size_t i = 0; i + 1 < std::size(cuts); ++i) {
      for (const size_t row : {0, 4}) {
        GemmArgs args = product.args;
        args.m = row == 0 ? 4 : shape.m - 4;
        args.quantized = args.quantized.From(row);
        args.epilogue.c = parts.data() + row * shape.n;
        args.epilogue.c_stride = shape.n;
        args.panel_begin = cuts[i];
        args.panel_end = cuts[i + 1];
        kernel.run(args);
      }
    }
    CHECK(MaxAbsDifference(parts.span(), product.expected) <= 1e-4);
    if (IsFused(kernel)) CHECK(SameBits(parts.span(), product.expected));
  });
}

// What `epilogue` makes of x = acc + bias; activations by libm.
float ExpectedElement(const GemmEpilogue& epilogue, float x, float residual, size_t column) {
  if (column < epilogue.scaled_columns) x *= epilogue.scale;
  x = static_cast<float>(ReferenceActivation(epilogue.activation, static_cast<double>(x)));
  return epilogue.residual != nullptr ? x + residual : x;
}

TEST_CASE("every epilogue against its definition, the same bits on every fused kernel") {
  const size_t c_stride = 92;
  for (const Shape& shape : {Shape{11, 40, 90}, Shape{11, 96, 90, 32}}) {
    Product product(shape, 7);
    for (const Activation activation : AllActivations()) {
      for (const bool with_bias : {false, true}) {
        for (const size_t scaled : {0, 16, 64}) {
          for (const bool with_residual : {false, true}) {
            const std::string activation_name = ActivationName(activation);
            CAPTURE(activation_name);
            CAPTURE(with_bias);
            CAPTURE(scaled);
            CAPTURE(with_residual);
            const float* bias = with_bias ? product.bias.data() : nullptr;
            const std::vector<float> sums =
                ReferenceS8Product(product.rows.view(), shape.m, product.weights, bias);
            std::vector<float> first_fused;
            ForEachKernel([&](const GemmKernel& kernel) {
              Buffer c(RandomFloats(shape.m * c_stride, 4), 2);
              const Buffer before = c;
              GemmArgs args = product.args;
              GemmEpilogue& e = args.epilogue;
              e.activation = activation;
              e.bias = bias;
              e.scale = 0.37f;
              e.scaled_columns = scaled;
              e.c = c.data();
              e.c_stride = c_stride;
              if (with_residual) e.residual = c.data(), e.residual_stride = c_stride;
              kernel.run(args);
              double largest = 0;
              bool same_bits = true;
              const bool exact = activation == Activation::kNone || activation == Activation::kRelu;
              for (size_t i = 0; i < shape.m; ++i) {
                for (size_t j = 0; j < shape.n; ++j) {
                  const float got = c[i * c_stride + j];
                  const float want =
                      ExpectedElement(e, sums[i * shape.n + j], before[i * c_stride + j], j);
                  largest = std::max(largest, std::abs(static_cast<double>(got - want)) /
                                                  (1 + std::abs(static_cast<double>(want))));
                  same_bits = same_bits && (!IsFused(kernel) || !exact || got == want);
                }
              }
              CHECK(largest <= 3e-5);
              CHECK(same_bits);
              CHECK(c.GuardsIntact());
              if (!IsFused(kernel)) return;
              if (first_fused.empty()) first_fused.assign(c.span().begin(), c.span().end());
              CHECK(SameBits(c.span(), first_fused));
            });
          }
        }
      }
    }
  }
}

TEST_CASE("split output stores units of columns, padding included") {
  const Shape shape = {9, 33, 120};
  const size_t columns = 128;
  Product product(shape, 11);
  for (const size_t split : {16, 32, 64}) {
    CAPTURE(split);
    const size_t unit_stride = (shape.m + 2) * split + 16;
    ForEachKernel([&](const GemmKernel& kernel) {
      Buffer c(columns / split * unit_stride, 0, kUntouched);
      GemmArgs args = product.args;
      GemmEpilogue& e = args.epilogue;
      e.scale = 0.25f;
      e.scaled_columns = 48;
      e.c = c.data();
      e.c_stride = split;
      e.split_columns = split;
      e.unit_stride = unit_stride;
      kernel.run(args);
      Buffer expected(c.size(), 0, kUntouched);
      for (size_t i = 0; i < shape.m; ++i) {
        for (size_t p = 0; p < columns; ++p) {
          const float x = p < shape.n ? product.expected[i * shape.n + p] : product.bias[p];
          expected[p / split * unit_stride + i * split + p % split] =
              ExpectedElement(e, x, 0.0f, p);
        }
      }
      if (IsFused(kernel)) CHECK(SameBits(c.span(), expected.span()));
      CHECK(MaxAbsDifference(c.span(), expected.span()) <= 1e-4);
      CHECK(c.GuardsIntact());
    });
  }
}

TEST_CASE("a cap at AVX2 or AVX-512 leaves out byte dot products of any width") {
  for (const CpuTier cap : {CpuTier::kAvx2, CpuTier::kAvx512}) {
    if (!SetCpuTierCap(cap)) continue;
    for (const GemmKernel& kernel : AllGemmKernels()) {
      CAPTURE(std::string(kernel.name));
      if (kernel.name.find("vnni") != kernel.name.npos) CHECK_FALSE(IsGemmKernelSupported(kernel));
    }
    CHECK_FALSE(ForceGemmKernel("avxvnni-u8s8s32-6x16x4"));
    for (const size_t m : {1, 8, 128}) {
      CHECK(FindGemmKernel(PackedLayout::kS8x16x4, m).tier == cap);
    }
  }
  ClearCpuTierCap();
}

TEST_CASE("nothing to do writes nothing") {
  Product product({2, 64, 20}, 3);
  ForEachKernel([&](const GemmKernel& kernel) {
    Buffer c(2 * 20, 0, kUntouched);
    GemmArgs args = product.args;
    args.epilogue.c = c.data();
    args.epilogue.c_stride = 20;
    args.m = 0;
    kernel.run(args);
    args.m = 2;
    args.panel_end = 0;
    kernel.run(args);
    for (const float value : c.span()) CHECK(value == kUntouched);
  });
}

}  // namespace
}  // namespace pozor::test
