// A whole int8 layer against its twin in double precision.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "tests/engine/int8_twin.h"
#include "tests/engine/tiny_model.h"
#include "tests/support/for_each_tier.h"

namespace pozor {
namespace {

using test::Int8Twin;
using test::MakeEncoder;
using test::RandomBatch;
using test::Rows;
using test::TinyModelBuilder;

// Rows are of size 1. Where float and double round a value to the same byte, single precision and
// the short exponential are all that differs; where they do not, which few values are near enough
// to a half for, a step of a byte.
constexpr double kSameBytes = 2e-4, kOtherByte = 0.05;

struct Case {
  const char* name;
  std::function<void(TinyModelBuilder&)> change;
};

const Case kCases[] = {
    {"post-norm", [](TinyModelBuilder&) {}},
    {"pre-norm", [](TinyModelBuilder& b) { b.spec.norm_place = NormPlace::kPre; }},
    {"gated", [](TinyModelBuilder& b) { b.gated = true; }},
    {"embedding projection", [](TinyModelBuilder& b) { b.spec.embeddings.size = 24; }},
    {"feed-forward of one group", [](TinyModelBuilder& b) { b.spec.intermediate = 64; }},
    {"wide",
     [](TinyModelBuilder& b) {
       b.spec.hidden = b.spec.embeddings.size = 128;
       b.spec.heads = 4;
       b.spec.head_dim = 32;
       b.spec.intermediate = 640;
     }},
};

Rows ToRows(MatView<const float> x) {
  Rows rows;
  for (size_t r = 0; r < x.rows; ++r) rows.emplace_back(x.Row(r), x.Row(r) + x.cols);
  return rows;
}

TEST_CASE("every int8 layer does what its twin in double precision does, on every tier") {
  for (const Case& c : kCases) {
    CAPTURE(std::string(c.name));
    TinyModelBuilder builder;
    c.change(builder);
    builder.int8 = true;
    const auto encoder = MakeEncoder(builder);
    const Encoder::Impl& model = encoder->impl();
    // The last rows of a pre-norm model have gone through the final norm.
    const size_t compared = model.layers.size() - (model.spec.final_norm.gamma.present() ? 1 : 0);
    test::ForEachTier([&](CpuTier) {
      size_t rows = 0, other = 0;
      double largest = 0;
      for (const size_t length : {1, 2, 9, 40, 130}) {
        const size_t lengths[] = {length};
        const TokenBatch batch = RandomBatch(lengths, builder.spec, length);
        std::vector<Rows> states;
        Sinks sinks;
        sinks.hidden_states = [&](size_t, MatView<const float> h) { states.push_back(ToRows(h)); };
        Workspace workspace;
        encoder->Forward(batch.View(), workspace, sinks);
        for (size_t l = 0; l < compared; ++l) {
          const Rows want = Int8Twin(model, l).Encode(states[l]);
          for (size_t r = 0; r < want.size(); ++r, ++rows) {
            double difference = 0;
            for (size_t i = 0; i < want[r].size(); ++i) {
              difference = std::max(difference, std::fabs(want[r][i] - states[l + 1][r][i]));
            }
            largest = std::max(largest, difference);
            other += difference > kSameBytes ? 1 : 0;
          }
        }
      }
      CAPTURE(largest);
      CHECK(largest < kOtherByte);
      CHECK(other * 10 <= rows);
    });
  }
}

}  // namespace
}  // namespace pozor
