#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm.h"
#include "tests/support/amx_emulator.h"
#include "tests/support/buffer.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/random.h"
#include "tests/support/reference.h"

namespace pozor::test {
namespace {

std::vector<float> Rounded(std::vector<float> values) {
  for (float& value : values) value = NearestBf16(value);
  return values;
}

struct Shape {
  size_t m, k, n;
};

// A torch Linear weight [n, k], packed; the twin sees it rounded.
struct Product {
  Product(const Shape& s, uint64_t seed)
      : shape(s),
        source(NormalFloats(s.k * s.n, seed)),
        packed(DivCeil(s.n, kPanelColumns) * PackedPanelBytes(PackedLayout::kBf16x16x2, s.k) / 4),
        a_stride(s.k + 3),
        a(NormalFloats(s.m * a_stride, seed + 1), 1) {
    const WeightView view{
        .data = source.data(), .k = s.k, .n = s.n, .k_stride = 1, .n_stride = s.k};
    PackBf16(view, nullptr, s.n, 0, DivCeil(s.n, kPanelColumns),
             reinterpret_cast<Bf16*>(packed.data()));
    matrix = {.layout = PackedLayout::kBf16x16x2, .panels = packed.data(), .k = s.k, .n = s.n};
    rounded_weights = Rounded(source);
    weight = view;
    weight.data = rounded_weights.data();
    args.a = a.data();
    args.a_stride = a_stride;
    args.m = s.m;
    args.b = &matrix;
    args.panel_end = matrix.panel_count();
    Refresh();
  }

  // After a change of activations.
  void Refresh() {
    rounded_a = Rounded(std::vector<float>(a.span().begin(), a.span().end()));
    widened = FusedProduct(a.data(), a_stride, shape.m, weight);
    exact = ReferenceProduct(a.data(), a_stride, shape.m, weight);
    exact_rounded = ReferenceProduct(rounded_a.data(), a_stride, shape.m, weight);
  }

  Shape shape;
  std::vector<float> source;
  Buffer packed;
  PackedMatrix matrix;
  std::vector<float> rounded_weights;
  WeightView weight;
  size_t a_stride;
  Buffer a;
  std::vector<float> rounded_a;
  std::vector<float> widened;         // the bits of f32 activations and fused sums
  std::vector<double> exact;          // f32 activations
  std::vector<double> exact_rounded;  // bf16 activations
  GemmArgs args;
};

bool IsWidened(const GemmKernel& kernel) { return kernel.name.find("-f32") != kernel.name.npos; }
bool IsFused(const GemmKernel& kernel) { return kernel.tier != CpuTier::kSse4; }

template <class Check>
void ForEachKernel(Check&& check) {
  const AmxEmulator amx;
  for (const GemmKernel& kernel : AllGemmKernels()) {
    if (kernel.layout != PackedLayout::kBf16x16x2 || !RunsHere(kernel)) continue;
    const std::string name(kernel.name);
    CAPTURE(name);
    check(kernel);
  }
}

// Sums of unit normal products, whose terms are rounded as f32 sums are.
double Tolerance(size_t k) { return 4e-6 * static_cast<double>(k + 4); }

constexpr float kUntouched = -77.0f;

TEST_CASE("every bf16 kernel against its twin") {
  const size_t row_counts[] = {1, 2, 3, 5, 6, 7, 8, 9, 15, 16, 17, 25, 31, 32, 33, 49};
  const Shape weights[] = {{0, 1, 1},   {0, 2, 16},   {0, 3, 17},  {0, 7, 31},
                           {0, 15, 48}, {0, 16, 64},  {0, 31, 65}, {0, 32, 80},
                           {0, 33, 96}, {0, 77, 100}, {0, 130, 33}};
  for (Shape shape : weights) {
    for (const size_t m : row_counts) {
      shape.m = m;
      CAPTURE(shape.m);
      CAPTURE(shape.k);
      CAPTURE(shape.n);
      const Product product(shape, 17 * shape.k + m);
      const size_t stride = shape.n + 5;
      ForEachKernel([&](const GemmKernel& kernel) {
        Buffer c(m * stride, 3, kUntouched);
        GemmArgs args = product.args;
        args.epilogue.c = c.data();
        args.epilogue.c_stride = stride;
        kernel.run(args);
        CHECK(c.GuardsIntact());
        const std::vector<double>& exact =
            IsWidened(kernel) ? product.exact : product.exact_rounded;
        size_t untouched = 0, differing = 0;
        double largest = 0;
        for (size_t i = 0; i < m; ++i) {
          const std::span<const float> row = c.span().subspan(i * stride, stride);
          const std::span<const double> want(exact.data() + i * shape.n, shape.n);
          const std::span<const float> bits(product.widened.data() + i * shape.n, shape.n);
          largest = std::max(largest, MaxAbsDifference(row.first(shape.n), want));
          differing += !SameBits(row.first(shape.n), bits);
          untouched +=
              static_cast<size_t>(std::count(row.begin() + shape.n, row.end(), kUntouched));
        }
        CHECK(untouched == m * 5);
        CHECK(largest <= Tolerance(shape.k));
        if (IsWidened(kernel) && IsFused(kernel)) CHECK(differing == 0);
      });
    }
  }
}

TEST_CASE("weights and activations of long rows are taken a block at a time") {
  for (const Shape& shape : {Shape{150, 384, 40}, Shape{37, 3072, 20}, Shape{19, 4100, 17}}) {
    CAPTURE(shape.k);
    const Product product(shape, 5);
    ForEachKernel([&](const GemmKernel& kernel) {
      Buffer c(shape.m * shape.n);
      GemmArgs args = product.args;
      args.epilogue.c = c.data();
      args.epilogue.c_stride = shape.n;
      kernel.run(args);
      CHECK(MaxAbsDifference(c.span(), IsWidened(kernel) ? product.exact : product.exact_rounded) <=
            Tolerance(shape.k));
    });
  }
}

TEST_CASE("a row has the same bits alone, in any batch and however panels are cut") {
  const Shape shape = {53, 100, 170};  // 11 panels, the last one partly used
  const Product product(shape, 3);
  const size_t panel_cuts[] = {0, 1, 3, 8, 10, 11};
  const size_t row_cuts[] = {0, 1, 2, 5, 13, 29, 53};
  ForEachKernel([&](const GemmKernel& kernel) {
    Buffer whole(shape.m * shape.n), parts(shape.m * shape.n, 0, kUntouched);
    GemmArgs args = product.args;
    args.epilogue.c_stride = shape.n;
    args.epilogue.c = whole.data();
    kernel.run(args);
    for (size_t r = 0; r + 1 < std::size(row_cuts); ++r) {
      for (size_t p = 0; p + 1 < std::size(panel_cuts); ++p) {
        args.a = product.a.data() + row_cuts[r] * product.a_stride;
        args.m = row_cuts[r + 1] - row_cuts[r];
        args.panel_begin = panel_cuts[p];
        args.panel_end = panel_cuts[p + 1];
        args.epilogue.c = parts.data() + row_cuts[r] * shape.n;
        kernel.run(args);
      }
    }
    CHECK(SameBits(parts.span(), whole.span()));
  });
}

TEST_CASE("every epilogue against its definition") {
  const Shape shape = {35, 40, 90};
  const size_t c_stride = shape.n + 2;
  const Product product(shape, 7);
  const Buffer bias(RandomFloats(96, 1), 0);
  for (const Activation activation : AllActivations()) {
    for (const bool with_bias : {false, true}) {
      for (const size_t scaled : {0, 16, 64}) {
        for (const bool with_residual : {false, true}) {
          const std::string activation_name = ActivationName(activation);
          CAPTURE(activation_name);
          CAPTURE(with_bias);
          CAPTURE(scaled);
          CAPTURE(with_residual);
          ForEachKernel([&](const GemmKernel& kernel) {
            Buffer c(RandomFloats(shape.m * c_stride, 4), 2);
            const Buffer before = c;
            GemmArgs args = product.args;
            GemmEpilogue& e = args.epilogue;
            e.activation = activation;
            e.bias = with_bias ? bias.data() : nullptr;
            e.scale = 0.37f;
            e.scaled_columns = scaled;
            e.c = c.data();
            e.c_stride = c_stride;
            if (with_residual) e.residual = c.data(), e.residual_stride = c_stride;
            kernel.run(args);
            const std::vector<double>& exact =
                IsWidened(kernel) ? product.exact : product.exact_rounded;
            double largest = 0;
            for (size_t i = 0; i < shape.m; ++i) {
              for (size_t j = 0; j < shape.n; ++j) {
                const double want = ExpectedElement(
                    e, exact[i * shape.n + j], static_cast<double>(before[i * c_stride + j]), j);
                const double got = static_cast<double>(c[i * c_stride + j]);
                largest = std::max(largest, std::abs(got - want) / (1 + std::abs(want)));
              }
            }
            CHECK(largest <= Tolerance(shape.k));
            CHECK(c.GuardsIntact());
          });
        }
      }
    }
  }
}

TEST_CASE("split output stores units of columns, padding included") {
  const Shape shape = {19, 33, 120};
  const size_t columns = 128, split = 32, unit_stride = (shape.m + 2) * split + 16;
  const Product product(shape, 11);
  const Buffer bias(RandomFloats(columns, 1), 0);
  ForEachKernel([&](const GemmKernel& kernel) {
    Buffer c(columns / split * unit_stride, 0, kUntouched);
    GemmArgs args = product.args;
    args.epilogue.bias = bias.data();
    args.epilogue.c = c.data();
    args.epilogue.c_stride = split;
    args.epilogue.split_columns = split;
    args.epilogue.unit_stride = unit_stride;
    kernel.run(args);
    const std::vector<double>& exact = IsWidened(kernel) ? product.exact : product.exact_rounded;
    std::vector<double> expected(c.size(), static_cast<double>(kUntouched));
    for (size_t i = 0; i < shape.m; ++i) {
      for (size_t p = 0; p < columns; ++p) {
        const double acc = p < shape.n ? exact[i * shape.n + p] : 0.0;
        expected[p / split * unit_stride + i * split + p % split] =
            acc + static_cast<double>(bias[p]);
      }
    }
    CHECK(MaxAbsDifference(c.span(), expected) <= Tolerance(shape.k));
    CHECK(c.GuardsIntact());
  });
}

TEST_CASE("a NaN or an infinity poisons its own row only") {
  const Shape shape = {21, 70, 40};
  Product product(shape, 13);
  product.a[3 * product.a_stride + 69] = std::numeric_limits<float>::quiet_NaN();
  product.a[17 * product.a_stride] = std::numeric_limits<float>::infinity();
  // Infinity times both signs of weights stays infinite, or is NaN where two meet.
  ForEachKernel([&](const GemmKernel& kernel) {
    Buffer c(shape.m * shape.n);
    GemmArgs args = product.args;
    args.epilogue.c = c.data();
    args.epilogue.c_stride = shape.n;
    kernel.run(args);
    for (size_t i = 0; i < shape.m; ++i) {
      CAPTURE(i);
      const std::span<float> row = c.span().subspan(i * shape.n, shape.n);
      const auto finite = [](float value) { return std::isfinite(value); };
      if (i == 3 || i == 17) {
        CHECK(std::none_of(row.begin(), row.end(), finite));
      } else {
        CHECK(std::all_of(row.begin(), row.end(), finite));
      }
    }
  });
}

TEST_CASE("nothing to do writes nothing, an empty product its bias") {
  const Product product({2, 0, 20}, 3);
  const Buffer bias(RandomFloats(32, 8), 0);
  ForEachKernel([&](const GemmKernel& kernel) {
    Buffer c(2 * 20, 0, kUntouched);
    GemmArgs args = product.args;
    args.epilogue.c = c.data();
    args.epilogue.c_stride = 20;
    args.epilogue.bias = bias.data();
    args.m = 0;
    kernel.run(args);
    args.m = 2;
    args.panel_end = 0;
    kernel.run(args);
    for (const float value : c.span()) CHECK(value == kUntouched);
    args.panel_end = 2;
    kernel.run(args);
    for (size_t i = 0; i < c.size(); ++i) CHECK(c[i] == bias[i % 20]);
  });
}

TEST_CASE("a tier keeps to one way of rounding, whatever the number of rows") {
  ForEachTier([](CpuTier tier) {
    const bool widened = IsWidened(FindGemmKernel(PackedLayout::kBf16x16x2, 1));
    const bool arm_bf16 = tier >= CpuTier::kI8mm && CpuRunsTier(CpuTier::kI8mm);
    CHECK(widened == (tier != CpuTier::kZen4 && tier != CpuTier::kAmx && !arm_bf16));
    for (size_t m = 0; m <= 300; ++m) {
      const GemmKernel& kernel = FindGemmKernel(PackedLayout::kBf16x16x2, m);
      CHECK(kernel.tier <= tier);
      CHECK(IsWidened(kernel) == widened);
    }
  });
}

TEST_CASE("packing rounds to nearest even and pads with zeros") {
  const float largest = std::numeric_limits<float>::max();
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> special = {0.0f,
                                -0.0f,
                                1.0f,
                                std::bit_cast<float>(0x3F808000u),  // halfway, even below
                                std::bit_cast<float>(0x3F818000u),  // halfway, even above
                                std::bit_cast<float>(0x3F808001u),
                                std::bit_cast<float>(0xBF817FFFu),
                                largest,
                                -largest,
                                infinity,
                                -infinity,
                                std::bit_cast<float>(0x00018000u),
                                std::numeric_limits<float>::quiet_NaN(),
                                std::bit_cast<float>(0x7F800001u)};  // a NaN in the lower half
  const size_t k = 37, n = 23;
  std::vector<float> values = RandomFloats(k * n, 4);
  std::copy(special.begin(), special.end(), values.begin());
  for (const bool linear : {true, false}) {
    const WeightView view{.data = values.data(),
                          .k = k,
                          .n = n,
                          .k_stride = linear ? 1 : n,
                          .n_stride = linear ? k : 1};
    std::vector<int32_t> columns;
    for (size_t j = 0; j < n; ++j) columns.push_back(j % 5 == 4 ? -1 : static_cast<int32_t>(j));
    for (const int32_t* map :
         {static_cast<const int32_t*>(nullptr), std::as_const(columns).data()}) {
      ForEachTier([&](CpuTier) {
        const size_t bytes = PackedPanelBytes(PackedLayout::kBf16x16x2, k);
        REQUIRE(bytes == 64 * 64 / 2);
        Buffer packed(2 * bytes / 4, 0, kUntouched);
        PackBf16(view, map, n, 0, 2, reinterpret_cast<Bf16*>(packed.data()));
        CHECK(packed.GuardsIntact());
        const Bf16* got = reinterpret_cast<const Bf16*>(packed.data());
        for (size_t j = 0; j < 32; ++j) {
          for (size_t i = 0; i < 64; ++i) {
            const uint32_t bits = got[((j / 16 * 32 + i / 2) * 16 + j % 16) * 2 + i % 2].bits;
            const bool zero = i >= k || j >= n || (map != nullptr && map[j] < 0);
            const float want =
                zero ? 0.0f : NearestBf16(view.data[i * view.k_stride + j * view.n_stride]);
            const float value = std::bit_cast<float>(bits << 16);
            if (std::isnan(want)) {
              CHECK(std::isnan(value));
            } else {
              CHECK(std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(want));
            }
          }
        }
      });
    }
  }
}

}  // namespace
}  // namespace pozor::test
