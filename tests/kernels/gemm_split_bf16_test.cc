// f32 values in two bf16 parts: their packing, and the products of AMX kernels, natively or
// emulated.
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

constexpr PackedLayout kLayout = PackedLayout::kSplitBf16x16x2;

struct Parts {
  std::vector<float> high, low;
};

Parts Split(std::span<const float> values) {
  Parts parts;
  for (const float value : values) {
    parts.high.push_back(NearestBf16(value));
    parts.low.push_back(NearestBf16(value - parts.high.back()));
  }
  return parts;
}

std::vector<float> Magnitudes(std::span<const float> values) {
  std::vector<float> magnitudes;
  for (const float value : values) magnitudes.push_back(std::abs(value));
  return magnitudes;
}

struct Shape {
  size_t m, k, n;
};

// A torch Linear weight [n, k], packed, and rows to multiply with it.
struct Product {
  Product(const Shape& s, uint64_t seed, size_t misaligned = 1)
      : shape(s),
        source(NormalFloats(s.k * s.n, seed)),
        packed(DivCeil(s.n, kPanelColumns) * PackedPanelBytes(kLayout, s.k) / 4),
        a_stride(s.k + 3),
        a(NormalFloats(s.m * a_stride, seed + 1), misaligned) {
    PackSplitBf16(View(source), nullptr, s.n, 0, DivCeil(s.n, kPanelColumns),
                  reinterpret_cast<Bf16*>(packed.data()));
    matrix = {.layout = kLayout, .panels = packed.data(), .k = s.k, .n = s.n};
    args.a = a.data();
    args.a_stride = a_stride;
    args.m = s.m;
    args.b = &matrix;
    args.panel_end = matrix.panel_count();
    Multiply();
  }

  WeightView View(const std::vector<float>& weight) const {
    return {.data = weight.data(), .k = shape.k, .n = shape.n, .k_stride = 1, .n_stride = shape.k};
  }

  void Multiply() {
    const auto product = [&](std::span<const float> rows, const std::vector<float>& weight) {
      return ReferenceProduct(rows.data(), a_stride, shape.m, View(weight));
    };
    const Parts rows = Split(a.span()), weights = Split(source);
    const std::vector<double> high = product(rows.high, weights.high);
    const std::vector<double> high_low = product(rows.high, weights.low);
    const std::vector<double> low_high = product(rows.low, weights.high);
    for (size_t i = 0; i < high.size(); ++i) three.push_back(high[i] + high_low[i] + low_high[i]);
    exact = product(a.span(), source);
    magnitude = product(Magnitudes(a.span()), Magnitudes(source));
  }

  Shape shape;
  std::vector<float> source;
  Buffer packed;
  PackedMatrix matrix;
  size_t a_stride;
  Buffer a;
  std::vector<double> three;      // the three products of parts
  std::vector<double> exact;      // what they stand for
  std::vector<double> magnitude;  // sums of the terms' magnitudes
  GemmArgs args;
};

// Of a sum of magnitude 1: from the three products, by f32 sums; from the exact one, by what the
// parts leave out as well.
const double kSums = std::ldexp(1.0, -20), kPromise = std::ldexp(1.0, -15);

template <class Check>
void ForEachKernel(Check&& check) {
  const AmxEmulator amx;
  for (const GemmKernel& kernel : AllGemmKernels()) {
    if (kernel.layout != kLayout || !RunsHere(kernel)) continue;
    const std::string name(kernel.name);
    CAPTURE(name);
    check(kernel);
  }
}

constexpr float kUntouched = -77.0f;

TEST_CASE("whether split bf16 kernels run here") {
  size_t kernels = 0;
  ForEachKernel([&](const GemmKernel&) { ++kernels; });
  const std::string which =
      std::string(kernels == 0 ? "skipped: " : "") + AmxEmulator::Description();
  MESSAGE(which);
  CHECK((kernels == 0) == !AmxEmulator::Available());
}

TEST_CASE("every split bf16 kernel against its twin and against the exact product") {
  const size_t row_counts[] = {1, 2, 15, 16, 17, 31, 32, 33, 49};
  const Shape weights[] = {{0, 1, 1},   {0, 2, 16},  {0, 7, 31},   {0, 31, 65},
                           {0, 32, 80}, {0, 33, 96}, {0, 77, 100}, {0, 130, 33}};
  for (Shape shape : weights) {
    for (const size_t m : row_counts) {
      shape.m = m;
      CAPTURE(shape.m);
      CAPTURE(shape.k);
      CAPTURE(shape.n);
      const Product product(shape, 17 * shape.k + m, m % 5);
      const size_t stride = shape.n + 5;
      ForEachKernel([&](const GemmKernel& kernel) {
        Buffer c(m * stride, m % 7, kUntouched);
        GemmArgs args = product.args;
        args.epilogue.c = c.data();
        args.epilogue.c_stride = stride;
        kernel.run(args);
        CHECK(c.GuardsIntact());
        size_t untouched = 0;
        double from_twin = 0, from_exact = 0;
        for (size_t i = 0; i < m; ++i) {
          for (size_t j = 0; j < shape.n; ++j) {
            const size_t at = i * shape.n + j;
            const double got = static_cast<double>(c[i * stride + j]);
            from_twin =
                std::max(from_twin, std::abs(got - product.three[at]) / product.magnitude[at]);
            from_exact =
                std::max(from_exact, std::abs(got - product.exact[at]) / product.magnitude[at]);
          }
          const std::span<const float> row = c.span().subspan(i * stride, stride);
          untouched +=
              static_cast<size_t>(std::count(row.begin() + shape.n, row.end(), kUntouched));
        }
        CHECK(untouched == m * 5);
        CHECK(from_twin <= kSums);
        CHECK(from_exact <= kPromise);
      });
    }
  }
}

// The largest distance of rows [m, n] from the exact product, of the sums' magnitude.
double Distance(const Product& product, std::span<const float> c) {
  double largest = 0;
  for (size_t i = 0; i < c.size(); ++i) {
    const double difference = std::abs(static_cast<double>(c[i]) - product.exact[i]);
    largest = std::max(largest, difference / product.magnitude[i]);
  }
  return largest;
}

TEST_CASE("weights and activations of long rows are taken a block at a time") {
  for (const Shape& shape :
       {Shape{150, 384, 40}, Shape{37, 3072, 20}, Shape{19, 4100, 17}, Shape{3, 6600, 33}}) {
    CAPTURE(shape.k);
    const Product product(shape, 5);
    ForEachKernel([&](const GemmKernel& kernel) {
      Buffer c(shape.m * shape.n);
      GemmArgs args = product.args;
      args.epilogue.c = c.data();
      args.epilogue.c_stride = shape.n;
      kernel.run(args);
      CHECK(Distance(product, c.span()) <= kPromise);
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
    for (const size_t scaled : {0, 16, 64}) {
      for (const bool with_residual : {false, true}) {
        const std::string activation_name = ActivationName(activation);
        CAPTURE(activation_name);
        CAPTURE(scaled);
        CAPTURE(with_residual);
        ForEachKernel([&](const GemmKernel& kernel) {
          Buffer c(RandomFloats(shape.m * c_stride, 4), 2);
          const Buffer before = c;
          GemmArgs args = product.args;
          GemmEpilogue& e = args.epilogue;
          e.activation = activation;
          e.bias = scaled == 16 ? nullptr : bias.data();
          e.scale = 0.37f;
          e.scaled_columns = scaled;
          e.c = c.data();
          e.c_stride = c_stride;
          if (with_residual) e.residual = c.data(), e.residual_stride = c_stride;
          kernel.run(args);
          double largest = 0;
          for (size_t i = 0; i < shape.m; ++i) {
            for (size_t j = 0; j < shape.n; ++j) {
              const double want = ExpectedElement(e, product.three[i * shape.n + j],
                                                  static_cast<double>(before[i * c_stride + j]), j);
              const double got = static_cast<double>(c[i * c_stride + j]);
              largest = std::max(largest, std::abs(got - want) / (1 + std::abs(want)));
            }
          }
          CHECK(largest <= 2e-4);
          CHECK(c.GuardsIntact());
        });
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
    std::vector<double> expected(c.size(), static_cast<double>(kUntouched));
    for (size_t i = 0; i < shape.m; ++i) {
      for (size_t p = 0; p < columns; ++p) {
        const double acc = p < shape.n ? product.three[i * shape.n + p] : 0.0;
        expected[p / split * unit_stride + i * split + p % split] =
            acc + static_cast<double>(bias[p]);
      }
    }
    CHECK(MaxAbsDifference(c.span(), expected) <= 1e-4);
    CHECK(c.GuardsIntact());
  });
}

TEST_CASE("a NaN, an infinity or what bf16 takes for one poisons its own row only") {
  const Shape shape = {21, 70, 40};
  Product product(shape, 13);
  product.a[3 * product.a_stride + 69] = std::numeric_limits<float>::quiet_NaN();
  product.a[5 * product.a_stride + 1] = std::bit_cast<float>(0xFFFFFFFFu);
  product.a[6 * product.a_stride + 1] = std::bit_cast<float>(0x7F800001u);
  product.a[17 * product.a_stride] = std::numeric_limits<float>::infinity();
  product.a[20 * product.a_stride + 40] = -std::numeric_limits<float>::max();
  ForEachKernel([&](const GemmKernel& kernel) {
    Buffer c(shape.m * shape.n);
    GemmArgs args = product.args;
    args.epilogue.c = c.data();
    args.epilogue.c_stride = shape.n;
    kernel.run(args);
    for (size_t i = 0; i < shape.m; ++i) {
      CAPTURE(i);
      const std::span<float> row = c.span().subspan(i * shape.n, shape.n);
      if (i == 3 || i == 5 || i == 6 || i == 17 || i == 20) {
        CHECK(std::all_of(row.begin(), row.end(), [](float value) { return std::isnan(value); }));
      } else {
        CHECK(
            std::all_of(row.begin(), row.end(), [](float value) { return std::isfinite(value); }));
      }
    }
  });
}

// Tiles take denormals for zero: low parts of values below 2^-109 may be some. Flushed are an
// input, a term or a sum, each less than 2^-126.
TEST_CASE("small inputs lose no more than denormals are worth") {
  const Shape shape = {16, 64, 16};
  for (const int exponent : {-60, -90, -109, -112, -117, -120, -126, -130, -149}) {
    CAPTURE(exponent);
    Product product(shape, 19);
    double total = 0;  // the largest sum of a column's weights
    for (size_t j = 0; j < shape.n; ++j) {
      double column = 0;
      for (size_t k = 0; k < shape.k; ++k) {
        column += std::abs(static_cast<double>(product.source[j * shape.k + k]));
      }
      total = std::max(total, column);
    }
    for (float& value : product.a.span()) value = std::ldexp(value, exponent);
    product.three.clear();
    product.Multiply();
    ForEachKernel([&](const GemmKernel& kernel) {
      Buffer c(shape.m * shape.n);
      GemmArgs args = product.args;
      args.epilogue.c = c.data();
      args.epilogue.c_stride = shape.n;
      kernel.run(args);
      double beyond = 0;
      for (size_t i = 0; i < c.size(); ++i) {
        const double difference = std::abs(static_cast<double>(c[i]) - product.exact[i]);
        beyond = std::max(beyond, difference - kPromise * product.magnitude[i]);
      }
      CHECK(beyond <= std::ldexp(total + 3.0 * static_cast<double>(shape.k), -126));
    });
  }
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

TEST_CASE("only AMX has kernels for split bf16, and a later cap does not take them away") {
  ForEachTier([](CpuTier tier) { CHECK(HasGemmKernel(kLayout) == (tier == CpuTier::kAmx)); });
  if (!AmxEmulator::Available()) return;
  const AmxTier amx;
  REQUIRE(HasGemmKernel(kLayout));
  const GemmKernel& kernel = FindGemmKernel(kLayout, 1);
  CHECK(kernel.tier == CpuTier::kAmx);
  for (size_t m = 0; m <= 300; ++m) CHECK(&FindGemmKernel(kLayout, m) == &kernel);
  REQUIRE(SetCpuTierCap(CpuTier::kAvx2));
  CHECK_FALSE(HasGemmKernel(kLayout));
  CHECK(&FindGemmKernel(kLayout, 7) == &kernel);
}

TEST_CASE("packing splits values and pads with zeros") {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> special = {0.0f,
                                -0.0f,
                                1.0f,
                                std::bit_cast<float>(0x3F808000u),  // halfway, even below
                                std::bit_cast<float>(0x3F818000u),  // halfway, even above
                                std::bit_cast<float>(0x3F8080C0u),  // halfway in the low part
                                std::bit_cast<float>(0xBF817FFFu),
                                infinity,
                                -infinity,
                                std::numeric_limits<float>::max(),
                                std::bit_cast<float>(0x00018000u),
                                std::bit_cast<float>(0x00918F31u),  // a low part below 2^-126
                                std::numeric_limits<float>::quiet_NaN(),
                                std::bit_cast<float>(0x7F800001u)};  // a NaN in the lower half
  const size_t k = 37, n = 23;
  std::vector<float> values = RandomFloats(k * n, 4);
  std::copy(special.begin(), special.end(), values.begin());
  const auto agrees = [](uint16_t bits, float want) {
    const float value = std::bit_cast<float>(uint32_t{bits} << 16);
    if (std::isnan(want)) return std::isnan(value);
    return std::bit_cast<uint32_t>(value) == std::bit_cast<uint32_t>(want);
  };
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
        const size_t bytes = PackedPanelBytes(kLayout, k);
        REQUIRE(bytes == 64 * 64);
        Buffer packed(2 * bytes / 4, 0, kUntouched);
        PackSplitBf16(view, map, n, 0, 2, reinterpret_cast<Bf16*>(packed.data()));
        CHECK(packed.GuardsIntact());
        const Bf16* got = reinterpret_cast<const Bf16*>(packed.data());
        for (size_t j = 0; j < 32; ++j) {
          for (size_t i = 0; i < 64; ++i) {
            const size_t tile = 2 * (j / 16 * 2 + i / 32);
            const size_t place = (i % 32 / 2 * 16 + j % 16) * 2 + i % 2;
            const bool zero = i >= k || j >= n || (map != nullptr && map[j] < 0);
            const float value = zero ? 0.0f : view.data[i * view.k_stride + j * view.n_stride];
            const float high = NearestBf16(value);
            CHECK(agrees(got[tile * 512 + place].bits, high));
            CHECK(agrees(got[(tile + 1) * 512 + place].bits, NearestBf16(value - high)));
          }
        }
      });
    }
  }
}

}  // namespace
}  // namespace pozor::test
