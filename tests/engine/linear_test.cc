#include "engine/linear.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "tests/engine/tiny_model.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/random.h"
#include "tests/support/reference.h"

namespace pozor {
namespace {

using test::MemorySource;
using test::RandomFloats;

struct Case {
  const char* name;
  size_t in, out;
  bool transposed, mappable, bias;
  Activation activation = Activation::kNone;
};

const Case kCases[] = {
    {"square", 32, 32, false, true, true},
    {"odd sizes", 37, 21, false, true, true},
    {"odd sizes, transposed", 37, 21, true, true, true},
    {"copied", 37, 21, false, false, true},
    {"copied, transposed", 37, 21, true, false, false},
    {"one output, tanh", 24, 1, false, true, true, Activation::kTanh},
    {"no bias, GELU", 64, 48, false, true, false, Activation::kGelu},
};

std::shared_ptr<MemorySource> Source(const Case& c) {
  auto source = std::make_shared<MemorySource>(c.mappable);
  const std::vector<size_t> shape =
      c.transposed ? std::vector{c.in, c.out} : std::vector{c.out, c.in};
  source->Add("weight", shape, RandomFloats(c.in * c.out, 1));
  source->Add("bias", {c.out}, RandomFloats(c.out, 2));
  return source;
}

TEST_CASE("a linear layer equals its definition, for any strides") {
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    const auto source = Source(c);
    WeightReader reader(source);
    LinearRef ref{.weight = {.name = "weight"}, .bias = {}, .transposed = c.transposed};
    if (c.bias) ref.bias.name = "bias";
    const Linear linear = Linear::Create(reader, ref, c.in, c.out, c.activation).value();
    CHECK(linear.in() == c.in);
    CHECK(linear.out() == c.out);
    CHECK(reader.Unused().size() == (c.bias ? 0 : 1));

    test::ForEachTier([&](CpuTier) {
      for (const size_t rows : {0u, 1u, 7u}) {
        CAPTURE(rows);
        const size_t x_stride = c.in + 3, out_stride = c.out + 5;
        const std::vector<float> x = RandomFloats(rows * x_stride + 1, 3);
        std::vector<float> out(rows * out_stride + 1, -7.0f);
        linear.Apply({x.data(), rows, c.in, x_stride}, {out.data(), rows, c.out, out_stride});
        const WeightView weight{.data = source->Values("weight").data(),
                                .k = c.in,
                                .n = c.out,
                                .k_stride = c.transposed ? c.out : 1,
                                .n_stride = c.transposed ? 1 : c.in};
        const std::vector<double> expected =
            test::ReferenceProduct(x.data(), x_stride, rows, weight);
        double largest = 0;
        for (size_t r = 0; r < rows; ++r) {
          for (size_t n = 0; n < out_stride; ++n) {
            const double got = out[r * out_stride + n];
            if (n >= c.out) {  // between the rows nothing is written
              CHECK(got == -7.0);
              continue;
            }
            const double bias = c.bias ? static_cast<double>(source->Values("bias")[n]) : 0.0;
            const double want =
                test::ReferenceActivation(c.activation, expected[r * c.out + n] + bias);
            largest = std::max(largest, std::abs(got - want));
          }
        }
        CHECK(largest < 2e-5);
        CHECK(out.back() == -7.0f);
      }
    });
  }
}

TEST_CASE("a part of a fused tensor") {
  auto source = std::make_shared<MemorySource>();
  source->Add("weight", {30, 8}, RandomFloats(240, 4));
  source->Add("bias", {30}, RandomFloats(30, 5));
  WeightReader reader(source);
  const TensorRef weight{.name = "weight", .row_begin = 10, .row_count = 20, .fused_rows = 30};
  const TensorRef bias{.name = "bias", .row_begin = 10, .row_count = 20, .fused_rows = 30};
  const LinearRef ref{.weight = weight, .bias = bias};
  const Linear linear = Linear::Create(reader, ref, 8, 20).value();
  std::vector<float> x(8, 0.0f), out(20);
  x[3] = 1.0f;
  linear.Apply({x.data(), 1, 8, 8}, {out.data(), 1, 20, 20});
  for (size_t n = 0; n < 20; ++n) {
    CHECK(out[n] == source->Values("weight")[(10 + n) * 8 + 3] + source->Values("bias")[10 + n]);
  }
}

TEST_CASE("what does not fit is refused") {
  const Case& c = kCases[0];
  WeightReader reader(Source(c));
  LinearRef ref{.weight = {.name = "weight"}, .bias = {.name = "bias"}};
  CHECK(Linear::Create(reader, ref, 31, 32).status().code() == StatusCode::kCorrupt);
  CHECK(Linear::Create(reader, ref, 32, 33).status().code() == StatusCode::kCorrupt);
  ref.weight.name = "absent";
  CHECK(Linear::Create(reader, ref, 32, 32).status().code() == StatusCode::kNotFound);
  ref.weight = {.name = "weight", .row_begin = 20, .row_count = 20, .fused_rows = 32};
  CHECK(Linear::Create(reader, ref, 32, 20).status().code() == StatusCode::kInvalidArgument);
}

TEST_CASE("a layer keeps its memory when it moves") {
  const Case& c = kCases[1];
  WeightReader reader(Source(c));
  const LinearRef ref{.weight = {.name = "weight"}, .bias = {}};
  Linear first = Linear::Create(reader, ref, c.in, c.out).value();
  const std::vector<float> x = RandomFloats(c.in, 6);
  std::vector<float> before(c.out), after(c.out);
  first.Apply({x.data(), 1, c.in, c.in}, {before.data(), 1, c.out, c.out});
  const Linear second = std::move(first);
  second.Apply({x.data(), 1, c.in, c.in}, {after.data(), 1, c.out, c.out});
  CHECK(test::SameBits(before, after));
}

}  // namespace
}  // namespace pozor
