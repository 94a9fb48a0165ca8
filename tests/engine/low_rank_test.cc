#include "engine/low_rank.h"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/engine/tiny_model.h"
#include "tests/support/random.h"

namespace pozor {
namespace {

using test::MemorySource;
using test::NormalFloats;

struct Sizes {
  size_t stack, rows, cols, rank;
};

std::shared_ptr<MemorySource> MakeSource(const Sizes& s) {
  auto source = std::make_shared<MemorySource>();
  source->Add("weight", {s.rows, s.cols}, NormalFloats(s.rows * s.cols, 1));
  source->Add("left", {s.stack, s.rows, s.rank}, NormalFloats(s.stack * s.rows * s.rank, 2));
  source->Add("right", {s.stack, s.rank, s.cols}, NormalFloats(s.stack * s.rank * s.cols, 3));
  source->Add("plain", {s.rows, s.cols}, NormalFloats(s.rows * s.cols, 4));
  return source;
}

Result<std::shared_ptr<const TensorSource>> Adapt(const std::shared_ptr<MemorySource>& source,
                                                  size_t index, double scale) {
  const TensorInfo* tensors = source->tensors().data();
  return LowRankSource::Create(source, {{tensors, {tensors + 1, tensors + 2, index, scale}}},
                               {tensors + 1, tensors + 2});
}

float Twin(const MemorySource& source, const Sizes& s, size_t index, double scale, size_t at) {
  const size_t row = at / s.cols, column = at % s.cols;
  double sum = 0;
  for (size_t k = 0; k < s.rank; ++k) {
    sum += double{source.Values("left")[(index * s.rows + row) * s.rank + k]} *
           double{source.Values("right")[(index * s.rank + k) * s.cols + column]};
  }
  return static_cast<float>(double{source.Values("weight")[at]} + scale * sum);
}

TEST_CASE("updates are added to whatever part is read, and to nothing else") {
  for (const Sizes& s : {Sizes{1, 1, 1, 1}, Sizes{3, 7, 5, 2}, Sizes{5, 33, 17, 4}}) {
    const auto source = MakeSource(s);
    const size_t index = s.stack - 1, count = s.rows * s.cols;
    const double scale = 0.375;
    const auto adapted = Adapt(source, index, scale).value();
    REQUIRE(adapted->tensors().size() == 2);
    const TensorInfo& weight = adapted->tensors()[0];
    const TensorInfo& plain = adapted->tensors()[1];
    CHECK(weight.name == "weight");
    CHECK(plain.name == "plain");
    CHECK(adapted->Map(weight) == nullptr);
    CHECK(adapted->Map(plain) == source->Values("plain").data());
    for (size_t begin = 0; begin < count; begin += 1 + begin / 3) {
      for (const size_t part : {size_t{0}, size_t{1}, s.cols, count - begin}) {
        const size_t size = std::min(part, count - begin);
        std::vector<float> got(size), same(size);
        REQUIRE(adapted->Read(weight, begin, size, got.data()).ok());
        REQUIRE(adapted->Read(plain, begin, size, same.data()).ok());
        for (size_t i = 0; i < size; ++i) {
          CHECK(got[i] == Twin(*source, s, index, scale, begin + i));
          CHECK(same[i] == source->Values("plain")[begin + i]);
        }
      }
    }
  }
}

TEST_CASE("updates that do not fit are refused by name") {
  const auto source = MakeSource({2, 6, 4, 3});
  const TensorInfo* tensors = source->tensors().data();
  const auto refused = [&](const LowRankUpdate& update) {
    const auto made = LowRankSource::Create(source, {{tensors, update}}, {});
    return !made.ok() && made.status().code() == StatusCode::kCorrupt &&
           made.status().message().find("'weight'") != std::string::npos;
  };
  CHECK_FALSE(refused({tensors + 1, tensors + 2, 1, 1}));
  CHECK(refused({tensors + 1, tensors + 2, 2, 1}));  // no such place
  CHECK(refused({tensors + 2, tensors + 1, 0, 1}));  // the wrong way round
  CHECK(refused({tensors + 1, tensors + 3, 0, 1}));  // no stack
}

}  // namespace
}  // namespace pozor
