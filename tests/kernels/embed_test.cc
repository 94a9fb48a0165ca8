#include "kernels/embed.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/buffer.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/random.h"

namespace pozor::test {
namespace {

constexpr size_t kWords = 11, kPositions = 9, kTypes = 2;

struct Case {
  size_t cols;
  bool position, type, types;
  float scale;
};

TEST_CASE("rows are gathered and summed in a fixed order") {
  std::vector<Case> cases;
  for (size_t cols = 1; cols <= 35; ++cols) cases.push_back({cols, true, true, true, 1.0f});
  cases.push_back({384, true, true, true, 1.0f});
  cases.push_back({37, true, false, false, 19.6f});
  cases.push_back({37, false, true, false, 1.0f});
  cases.push_back({37, false, false, false, 2.5f});
  cases.push_back({37, true, true, false, 0.3f});

  const std::vector<int32_t> ids = {10, 0, 3, 3, 7, 1, 2};
  const std::vector<int32_t> positions = {0, 1, 2, 3, 8, 0, 1};
  const std::vector<int32_t> types = {0, 1, 1, 0, 0, 1, 0};
  for (const Case& c : cases) {
    CAPTURE(c.cols);
    const Buffer word(NormalFloats(kWords * c.cols, 1), 1);
    const Buffer position(NormalFloats(kPositions * c.cols, 2), 2);
    const Buffer type(NormalFloats(kTypes * c.cols, 3), 3);
    const size_t stride = c.cols + 1;
    ForEachTier([&](CpuTier) {
      Buffer out(ids.size() * stride, 5, -3.0f);
      EmbedArgs args;
      args.word = word.data();
      if (c.position) args.position = position.data();
      if (c.type) args.type = type.data();
      args.word_scale = c.scale;
      args.ids = ids.data();
      args.positions = positions.data();
      if (c.types) args.types = types.data();
      args.tokens = ids.size();
      args.cols = c.cols;
      args.out = out.data();
      args.out_stride = stride;
      EmbedSum(args);

      CHECK(out.GuardsIntact());
      for (size_t t = 0; t < ids.size(); ++t) {
        for (size_t i = 0; i < c.cols; ++i) {
          // Every step rounds to float, so the result is exact on all tiers.
          float expected = word[static_cast<size_t>(ids[t]) * c.cols + i] * c.scale;
          const size_t type_row = c.types ? static_cast<size_t>(types[t]) : 0;
          if (c.type) expected += type[type_row * c.cols + i];
          if (c.position) expected += position[static_cast<size_t>(positions[t]) * c.cols + i];
          REQUIRE(out[t * stride + i] == expected);
        }
        REQUIRE(out[t * stride + c.cols] == -3.0f);
      }
    });
  }
}

TEST_CASE("no tokens: nothing is written") {
  Buffer out(4, 0, 1.0f);
  EmbedArgs args;
  args.cols = 4;
  args.out = out.data();
  args.out_stride = 4;
  EmbedSum(args);
  for (const float value : out.span()) CHECK(value == 1.0f);
}

}  // namespace
}  // namespace pozor::test
