#include "kernels/gemm.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <string>
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

// Calls check(kernel) for every row of the table that this machine can run.
template <class Check>
void ForEachKernel(Check&& check) {
  for (const GemmKernel& kernel : AllGemmKernels()) {
    if (!IsGemmKernelSupported(kernel)) continue;
    const std::string name(kernel.name);
    CAPTURE(name);
    check(kernel);
  }
}

bool IsFused(const GemmKernel& kernel) { return kernel.tier != CpuTier::kSse4; }

// What `epilogue` makes of accumulators, one element at a time. Activations by libm.
struct ExpectedEpilogue {
  const GemmEpilogue& epilogue;

  double operator()(double acc, size_t row, size_t column) const {
    double x = acc;
    if (epilogue.bias != nullptr) x += static_cast<double>(epilogue.bias[column]);
    if (column < epilogue.scaled_columns) x *= static_cast<double>(epilogue.scale);
    x = ReferenceActivation(epilogue.activation, x);
    if (epilogue.residual != nullptr) {
      x += static_cast<double>(epilogue.residual[row * epilogue.residual_stride + column]);
    }
    return x;
  }
};

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
