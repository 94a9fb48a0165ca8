#include "kernels/gemm.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <regex>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "tests/support/buffer.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/random.h"
#include "tests/support/reference.h"

using namespace pozor;
using namespace pozor::test;

namespace {

// A torch Linear weight [n, k] and its packed form.
struct Weight {
  Weight(size_t k, size_t n, uint64_t seed)
      : source(RandomFloats(k * n, seed)), packed(DivCeil(n, kPanelColumns) * kPanelColumns * k) {
    view = {.data = source.data(), .k = k, .n = n, .k_stride = 1, .n_stride = k};
    PackF32(view, nullptr, n, 0, DivCeil(n, kPanelColumns), packed.data());
    matrix = {.layout = PackedLayout::kF32x16, .panels = packed.data(), .k = k, .n = n};
  }

  std::vector<float> source;
  Buffer packed;
  WeightView view;
  PackedMatrix matrix;
};

struct Shape {
  size_t m, k, n;
};

// Activations [m, k] at a stride above k and at an odd address, and the product's two twins.
struct Product {
  Product(const Shape& shape, uint64_t seed)
      : weight(shape.k, shape.n, seed),
        a_stride(shape.k + 3),
        a(RandomFloats(shape.m * a_stride, seed + 1), 1),
        fused(FusedProduct(a.data(), a_stride, shape.m, weight.view)),
        exact(ReferenceProduct(a.data(), a_stride, shape.m, weight.view)) {
    args.a = a.data();
    args.a_stride = a_stride;
    args.m = shape.m;
    args.b = &weight.matrix;
    args.panel_end = weight.matrix.panel_count();
  }

  Weight weight;
  size_t a_stride;
  Buffer a;
  std::vector<float> fused;
  std::vector<double> exact;
  GemmArgs args;
};

// Calls check(kernel) for every f32 row of the table that this machine can run.
template <class Check>
void ForEachKernel(Check&& check) {
  for (const GemmKernel& kernel : AllGemmKernels()) {
    if (!IsGemmKernelSupported(kernel) || kernel.layout != PackedLayout::kF32x16) continue;
    const std::string name(kernel.name);
    CAPTURE(name);
    check(kernel);
  }
}

bool IsFused(const GemmKernel& kernel) { return kernel.tier != CpuTier::kSse4; }

// What `epilogue` makes of an accumulator, in Number's arithmetic. Activations by libm.
template <class Number>
Number ExpectedElement(const GemmEpilogue& epilogue, Number acc, size_t row, size_t column) {
  Number x = acc;
  if (epilogue.bias != nullptr) x += static_cast<Number>(epilogue.bias[column]);
  if (column < epilogue.scaled_columns) x *= static_cast<Number>(epilogue.scale);
  x = static_cast<Number>(ReferenceActivation(epilogue.activation, static_cast<double>(x)));
  if (epilogue.residual != nullptr) {
    x += static_cast<Number>(epilogue.residual[row * epilogue.residual_stride + column]);
  }
  return x;
}

// True if libm plays no part in the activation, so that floats reproduce its bits.
bool IsExact(Activation activation) {
  return activation == Activation::kNone || activation == Activation::kRelu;
}

constexpr float kUntouched = -77.0f;

}  // namespace

TEST_CASE("every kernel gives the bits of one fused accumulator an element") {
  const size_t row_counts[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 19, 25};
  const Shape weights[] = {{0, 1, 1},  {0, 2, 16},  {0, 3, 17},   {0, 7, 31},  {0, 8, 48},
                           {0, 9, 65}, {0, 31, 80}, {0, 64, 100}, {0, 77, 160}};
  for (Shape shape : weights) {
    for (const size_t m : row_counts) {
      shape.m = m;
      CAPTURE(shape.m);
      CAPTURE(shape.k);
      CAPTURE(shape.n);
      Product product(shape, 17 * shape.k + m);
      ForEachKernel([&](const GemmKernel& kernel) {
        const size_t stride = shape.n + 5;
        Buffer c(m * stride, 3, kUntouched);
        GemmArgs args = product.args;
        args.epilogue.c = c.data();
        args.epilogue.c_stride = stride;
        kernel.run(args);
        CHECK(c.GuardsIntact());
        for (size_t i = 0; i < m; ++i) {
          const std::span<const float> row = c.span().subspan(i * stride, stride);
          const std::span<const float> want(product.fused.data() + i * shape.n, shape.n);
          if (IsFused(kernel)) CHECK(SameBits(row.first(shape.n), want));
          CHECK(MaxAbsDifference(row.first(shape.n), want) <= 2e-6 * static_cast<double>(shape.k));
          for (size_t j = shape.n; j < stride; ++j) CHECK(row[j] == kUntouched);
        }
      });
    }
  }
}

TEST_CASE("results do not depend on how panels are cut") {
  const Shape shape = {13, 24, 170};  // 11 panels, the last one partly used
  Product product(shape, 3);
  const size_t cuts[] = {0, 1, 3, 8, 10, 11};
  ForEachKernel([&](const GemmKernel& kernel) {
    Buffer whole(shape.m * shape.n), parts(shape.m * shape.n, 0, kUntouched);
    GemmArgs args = product.args;
    args.epilogue.c_stride = shape.n;
    args.epilogue.c = whole.data();
    kernel.run(args);
    args.epilogue.c = parts.data();
    for (size_t i = 0; i + 1 < std::size(cuts); ++i) {
      args.panel_begin = cuts[i];
      args.panel_end = cuts[i + 1];
      kernel.run(args);
      CHECK(parts[shape.n - 1] == (cuts[i + 1] == 11 ? whole[shape.n - 1] : kUntouched));
    }
    CHECK(SameBits(parts.span(), whole.span()));
  });
}

TEST_CASE("an empty product writes what is left of it") {
  Product product({2, 0, 20}, 3);
  const std::vector<float> bias = RandomFloats(32, 8);
  const Buffer aligned_bias(bias, 0);
  ForEachKernel([&](const GemmKernel& kernel) {
    Buffer c(2 * 20, 0, kUntouched);
    GemmArgs args = product.args;
    args.epilogue.c = c.data();
    args.epilogue.c_stride = 20;
    args.epilogue.bias = aligned_bias.data();
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

TEST_CASE("every epilogue against its definition, the same bits on every fused kernel") {
  const Shape shape = {11, 40, 90};  // the last panel is partly used
  const size_t columns = 96, residual_stride = shape.n + 1, c_stride = shape.n + 2;
  Product product(shape, 7);
  const Buffer bias(RandomFloats(columns, 1), 0);
  const Buffer residual(RandomFloats(shape.m * residual_stride, 2), 1);
  enum ResidualKind { kNoResidual, kOtherBuffer, kInPlace };

  for (const Activation activation : AllActivations()) {
    for (const bool with_bias : {false, true}) {
      for (const size_t scaled : {0, 16, 64}) {
        for (const ResidualKind kind : {kNoResidual, kOtherBuffer, kInPlace}) {
          const std::string activation_name = ActivationName(activation);
          CAPTURE(activation_name);
          CAPTURE(with_bias);
          CAPTURE(scaled);
          CAPTURE(kind);
          std::vector<float> first_fused;
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
            if (kind == kOtherBuffer) {
              e.residual = residual.data();
              e.residual_stride = residual_stride;
            } else if (kind == kInPlace) {
              e.residual = c.data();
              e.residual_stride = c_stride;
            }
            kernel.run(args);
            if (kind == kInPlace) e.residual = before.data();

            double largest = 0;
            bool same_bits = true;
            for (size_t i = 0; i < shape.m; ++i) {
              for (size_t j = 0; j < shape.n; ++j) {
                const float got = c[i * c_stride + j];
                const double want = ExpectedElement(e, product.exact[i * shape.n + j], i, j);
                largest = std::max(largest, std::abs(static_cast<double>(got) - want));
                if (!IsFused(kernel) || !IsExact(activation)) continue;
                same_bits &= got == ExpectedElement(e, product.fused[i * shape.n + j], i, j);
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

TEST_CASE("split output stores units of columns, padding included") {
  const Shape shape = {9, 33, 120};  // 8 panels in packed order, 8 columns of padding
  const size_t columns = 128;
  Product product(shape, 11);
  const Buffer bias(RandomFloats(columns, 1), 0);
  for (const size_t split : {16, 32, 64}) {
    CAPTURE(split);
    const size_t unit_stride = (shape.m + 2) * split + 16;
    ForEachKernel([&](const GemmKernel& kernel) {
      Buffer c(columns / split * unit_stride, 0, kUntouched);
      GemmArgs args = product.args;
      GemmEpilogue& e = args.epilogue;
      e.bias = bias.data();
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
          const float acc = p < shape.n ? product.fused[i * shape.n + p] : 0.0f;
          expected[p / split * unit_stride + i * split + p % split] = ExpectedElement(e, acc, i, p);
        }
      }
      if (IsFused(kernel)) CHECK(SameBits(c.span(), expected.span()));
      CHECK(MaxAbsDifference(c.span(), expected.span()) <= 1e-5);
      CHECK(c.GuardsIntact());
    });
  }
}

TEST_CASE("kernel names follow the grammar and match their rows") {
  std::set<std::string_view> names;
  for (const GemmKernel& kernel : AllGemmKernels()) {
    const std::string name(kernel.name);
    CAPTURE(name);
    CHECK(names.insert(kernel.name).second);
    // <tier>-<a><b><acc>-<mr>x<nr>x<kr>[-variant]; the tier without its own hyphens
    static const std::regex grammar(
        "([a-z0-9]+)-(f32|bf16|u8|s8)(f32|bf16|s8)(f32|s32)-([0-9]+)x([0-9]+)x([0-9]+)(-[a-z0-9]+)"
        "?");
    std::smatch parts;
    REQUIRE(std::regex_match(name, parts, grammar));
    std::string tier(CpuTierName(kernel.tier));
    std::erase(tier, '-');
    CHECK(parts[1] == tier);
    CHECK(parts[5] == std::to_string(kernel.mr));
    CHECK(parts[6] == std::to_string(kernel.nr));
    CHECK(parts[7] == std::to_string(kernel.kr));
    CHECK(kernel.nr % kPanelColumns == 0);
    CHECK(kernel.kr % PackedGroup(kernel.layout) == 0);
  }
}

TEST_CASE("every tier has a kernel for every number of rows") {
  ForEachTier([](CpuTier tier) {
    for (const PackedLayout layout :
         {PackedLayout::kF32x16, PackedLayout::kBf16x16x2, PackedLayout::kS8x16x4}) {
      CHECK(HasGemmKernel(layout));
      for (size_t m = 0; m <= 300; ++m) {
        const GemmKernel& kernel = FindGemmKernel(layout, m);
        CHECK(kernel.tier <= tier);
        CHECK(IsGemmKernelSupported(kernel));
        CHECK(kernel.layout == layout);
      }
    }
  });
}

TEST_CASE("the same bits through the front door on every fused tier") {
  for (const size_t m : {1, 2, 3, 5, 8, 16, 17, 40}) {
    CAPTURE(m);
    const Shape shape = {m, 50, 150};
    Product product(shape, m);
    ForEachFusedTier([&](CpuTier) {
      Buffer c(m * shape.n);
      GemmArgs args = product.args;
      args.epilogue.c = c.data();
      args.epilogue.c_stride = shape.n;
      Gemm(args);
      CHECK(SameBits(c.span(), product.fused));
    });
  }
}

TEST_CASE("a kernel can be forced by name") {
  for (const GemmKernel& kernel : AllGemmKernels()) {
    const std::string name(kernel.name);
    CAPTURE(name);
    const bool supported = IsGemmKernelSupported(kernel);
    CHECK(ForceGemmKernel(name) == supported);
    if (!supported) continue;
    for (const size_t m : {1, 7, 200}) CHECK(&FindGemmKernel(kernel.layout, m) == &kernel);
    // A cap below the forced row's tier wins.
    if (SupportedCpuTiers().front() < kernel.tier) {
      REQUIRE(SetCpuTierCap(SupportedCpuTiers().front()));
      if (HasGemmKernel(kernel.layout)) CHECK(&FindGemmKernel(kernel.layout, 7) != &kernel);
      ClearCpuTierCap();
    }
    CHECK(ForceGemmKernel(""));
  }
  CHECK_FALSE(ForceGemmKernel("avx512-f32f32f32-7x48x1"));
}

TEST_CASE("POZOR_KERNEL") {
  std::string_view last;
  ForEachKernel([&](const GemmKernel& kernel) { last = kernel.name; });
  setenv("POZOR_KERNEL", std::string(last).c_str(), 1);
  CHECK(ApplyGemmKernelFromEnvironment() == "");
  CHECK(FindGemmKernel(PackedLayout::kF32x16, 128).name == last);
  CHECK(ForceGemmKernel(""));

  setenv("POZOR_KERNEL", "avx9-f32f32f32-6x64x1", 1);
  const std::string error = ApplyGemmKernelFromEnvironment();
  CHECK(error.find("avx9-f32f32f32-6x64x1") != std::string::npos);
  CHECK(error.find(last) != std::string::npos);
  unsetenv("POZOR_KERNEL");
  CHECK(ApplyGemmKernelFromEnvironment() == "");
}
