// The forward pass against its double-precision twin, over everything a spec can say.
#include "engine/encoder.h"

#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "tests/engine/tiny_model.h"
#include "tests/engine/twin.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"

namespace pozor {
namespace {

using test::MakeEncoder;
using test::MemorySource;
using test::RandomBatch;
using test::TinyModelBuilder;
using test::Twin;
using test::TwinResult;

// Rows are of size 1 after a norm; three small layers in single precision.
constexpr double kTolerance = 2e-5;

struct Case {
  const char* name;
  std::function<void(TinyModelBuilder&)> change;
};

void OneBottleneck(TinyModelBuilder& b) {
  b.spec.bottleneck = 24;
  b.type_table = false;
  b.spec.embeddings.size = 24;
  b.spec.embeddings.projects_words = true;
}

const Case kCases[] = {
    {"post-norm", [](TinyModelBuilder&) {}},
    {"pre-norm", [](TinyModelBuilder& b) { b.spec.norm_place = NormPlace::kPre; }},
    {"gated", [](TinyModelBuilder& b) { b.gated = true; }},
    {"gated pre-norm without biases, RMS norm",
     [](TinyModelBuilder& b) {
       b.gated = true;
       b.biases = false;
       b.spec.norm_place = NormPlace::kPre;
       b.spec.norm_kind = NormKind::kRmsNorm;
       b.spec.activation = Activation::kSilu;
     }},
    {"no positions",
     [](TinyModelBuilder& b) { b.spec.embeddings.position_kind = PositionKind::kNone; }},
    {"sinusoidal, interleaved",
     [](TinyModelBuilder& b) {
       b.spec.embeddings.position_kind = PositionKind::kSinusoidalInterleaved;
     }},
    {"sinusoidal, halves",
     [](TinyModelBuilder& b) {
       b.spec.embeddings.position_kind = PositionKind::kSinusoidalHalves;
       b.spec.embeddings.word_scale = 6.5f;
     }},
    {"positions from 2, token 1 skipped",
     [](TinyModelBuilder& b) {
       b.spec.embeddings.position_offset = 2;
       b.spec.embeddings.position_skips_id = 1;
       b.spec.embeddings.vocab_size = 5;
     }},
    {"no token types", [](TinyModelBuilder& b) { b.type_table = false; }},
    {"embedding projection", [](TinyModelBuilder& b) { b.spec.embeddings.size = 24; }},
    {"weights stored transposed", [](TinyModelBuilder& b) { b.transposed = true; }},
    {"fused QKV", [](TinyModelBuilder& b) { b.fused_qkv = true; }},
    {"fused QKV stored transposed, read in copies",
     [](TinyModelBuilder& b) {
       b.fused_qkv = true;
       b.transposed = true;
       b.mappable = false;
     }},
    {"read in copies", [](TinyModelBuilder& b) { b.mappable = false; }},
    {"feed-forward in groups", [](TinyModelBuilder& b) { b.groups = 4; }},
    {"feed-forward in groups, read in copies",
     [](TinyModelBuilder& b) {
       b.groups = 8;
       b.mappable = false;
     }},
    {"heads of 16 columns", [](TinyModelBuilder& b) { b.spec.head_dim = 16; }},
    {"heads of 20 columns, tanh GELU",
     [](TinyModelBuilder& b) {
       b.spec.head_dim = 20;
       b.spec.activation = Activation::kGeluTanh;
     }},
    {"window in one layer", [](TinyModelBuilder& b) { b.spec.layers[1].window = 3; }},
    {"causal", [](TinyModelBuilder& b) { b.spec.causal = true; }},
    {"layers that share weights",
     [](TinyModelBuilder& b) {
       b.spec.layers[1].same_as = 0;
       b.spec.layers[2].same_as = 1;
       b.spec.layers[1].window = 2;
     }},
    {"bias by buckets, scores not scaled",
     [](TinyModelBuilder& b) {
       b.spec.score_bias.kind = ScoreBias::kBuckets;
       b.spec.score_bias.buckets = 16;
       b.spec.score_bias.max_distance = 40;
       b.spec.score_scale = 0.2f;
     }},
    {"bias by slopes, three heads",
     [](TinyModelBuilder& b) {
       b.spec.score_bias.kind = ScoreBias::kSlopes;
       b.spec.embeddings.position_kind = PositionKind::kNone;
       b.spec.token_limit = 100;
     }},
    {"learned distances score queries", [](TinyModelBuilder& b) { b.distances = true; }},
    {"learned distances score queries and keys, fused QKV, causal",
     [](TinyModelBuilder& b) {
       b.distances = true;
       b.spec.distances_score_keys = true;
       b.fused_qkv = true;
       b.spec.causal = true;
     }},
    {"norm after the embedding's projection",
     [](TinyModelBuilder& b) {
       b.spec.embeddings.size = 24;
       b.spec.embeddings.norm_place = EmbeddingNorm::kAfterProjection;
     }},
    {"norm after the embedding's projection, pre-norm",
     [](TinyModelBuilder& b) {
       b.spec.embeddings.size = 24;
       b.spec.embeddings.norm_place = EmbeddingNorm::kAfterProjection;
       b.spec.norm_place = NormPlace::kPre;
     }},
    {"heads of a fused tensor with Q, K and V side by side",
     [](TinyModelBuilder& b) { b.fused_qkv = b.interleaved_heads = true; }},
    {"the same, stored transposed",
     [](TinyModelBuilder& b) { b.fused_qkv = b.interleaved_heads = b.transposed = true; }},
    {"the same, read in copies",
     [](TinyModelBuilder& b) {
       b.fused_qkv = b.interleaved_heads = true;
       b.mappable = false;
     }},
    {"relative positions score queries and keys, clipped, projections of their own",
     [](TinyModelBuilder& b) { b.spec.relative_positions.span = 9; }},
    {"relative positions score queries and keys, logarithmic, normed, the layers' projections",
     [](TinyModelBuilder& b) {
       b.spec.relative_positions = {
           .span = 24, .rows = DistanceRows::kLogarithmic, .max_distance = 60};
       b.shared_positions = true;
       b.spec.score_scale = 0.2f;
     }},
    {"relative positions score queries alone, fused heads, read in copies",
     [](TinyModelBuilder& b) {
       b.spec.relative_positions.span = 90;
       b.key_positions = false;
       b.fused_qkv = b.interleaved_heads = true;
       b.mappable = false;
     }},
    {"relative positions score keys alone, two heads, window",
     [](TinyModelBuilder& b) {
       b.spec.heads = 2;
       b.spec.relative_positions = {
           .span = 7, .rows = DistanceRows::kLogarithmic, .max_distance = 30};
       b.query_positions = false;
       b.spec.layers[1].window = 5;
     }},
    {"convolution beside the first layer", [](TinyModelBuilder& b) { b.taps = 3; }},
    {"convolution over five tokens, GELU, layers that share weights",
     [](TinyModelBuilder& b) {
       b.taps = 5;
       b.spec.convolution.activation = Activation::kGelu;
       b.spec.layers[1].same_as = 0;
       b.mappable = false;
     }},
    {"windows and global tokens",
     [](TinyModelBuilder& b) {
       b.globals = true;
       for (size_t l = 0; l < 3; ++l) b.spec.layers[l].window = 2 * l + 1;
     }},
    {"keys and values shared by the heads, rotation of halves",
     [](TinyModelBuilder& b) {
       b.spec.heads = 6;
       b.spec.kv_heads = 2;
       b.spec.rotaries = {{.columns = 12, .exact = true}};
       for (LayerSpec& layer : b.spec.layers) layer.rotary = 0;
     }},
    {"norms of heads, rotation, keys and values shared by the heads",
     [](TinyModelBuilder& b) {
       b.spec.heads = 4;
       b.spec.kv_heads = 2;
       b.head_norms = true;
       b.spec.norm_kind = NormKind::kRmsNorm;
       b.spec.rotaries = {{.columns = 12, .exact = true}};
       for (LayerSpec& layer : b.spec.layers) layer.rotary = 0;
     }},
    {"norms over all heads, keys and values shared by the heads, rotation",
     [](TinyModelBuilder& b) {
       b.spec.heads = 4;
       b.spec.kv_heads = 2;
       b.head_norms = true;
       b.spec.head_norms = HeadNorms::kAllHeads;
       b.spec.rotaries = {{.columns = 12, .exact = true}};
       for (LayerSpec& layer : b.spec.layers) layer.rotary = 0;
     }},
    {"norms over all heads, a second norm after attention",
     [](TinyModelBuilder& b) {
       b.head_norms = true;
       b.second_norms = true;
       b.gated = true;
       b.spec.head_norms = HeadNorms::kAllHeads;
     }},
    {"root mean square norms over all heads and after attention",
     [](TinyModelBuilder& b) {
       b.head_norms = true;
       b.second_norms = true;
       b.spec.head_norms = HeadNorms::kAllHeads;
       b.spec.norm_kind = NormKind::kRmsNorm;
     }},
    {"experts in every second layer",
     [](TinyModelBuilder& b) {
       b.experts = 5;
       b.chosen = 2;
     }},
    {"experts, pre-norm, all of them chosen, read in copies",
     [](TinyModelBuilder& b) {
       b.experts = 3;
       b.chosen = 3;
       b.mappable = false;
       b.spec.norm_place = NormPlace::kPre;
     }},
    {"one expert of many, gated feed-forwards beside them",
     [](TinyModelBuilder& b) {
       b.experts = 41;
       b.chosen = 1;
       b.gated = true;
     }},
    {"norms around sublayers, gains stored less one, scores over 20",
     [](TinyModelBuilder& b) {
       b.output_norms = true;
       b.head_norms = true;
       b.gated = true;
       b.biases = false;
       b.spec.norm_kind = NormKind::kRmsNorm;
       b.spec.norm_place = NormPlace::kPre;
       b.spec.gain_offset = 1;
       b.spec.score_scale = 0.05f;
     }},
    {"two rotations, one of them partial and of neighbours",
     [](TinyModelBuilder& b) {
       b.spec.rotaries = {
           {.columns = 12, .theta = 500},
           {.pairs = RotaryPairs::kInterleaved, .columns = 8, .frequency_scale = 0.5}};
       b.spec.layers[0].rotary = 0;
       b.spec.layers[2].rotary = 1;
     }},
    {"affine norms", [](TinyModelBuilder& b) { b.spec.norm_kind = NormKind::kAffine; }},
    {"layers in three parts", [](TinyModelBuilder& b) { b.SplitLayers(3); }},
    {"one bottleneck, no types", &OneBottleneck},
    {"bottlenecks, layers in four parts, trigrams, affine norms",
     [](TinyModelBuilder& b) { test::MakeMobile(&b); }},
};

const std::vector<size_t> kLengths = {5, 1, 0, 17, 70, 2};

void CompareRows(MatView<const float> rows, size_t first, const test::Rows& expected) {
  double largest = 0;
  for (size_t r = 0; r < expected.size(); ++r) {
    const std::span<const float> row(rows.Row(first + r), rows.cols);
    largest = std::max(largest, test::MaxAbsDifference(row, expected[r]));
  }
  CHECK(largest <= kTolerance);
}

TEST_CASE("forward pass, hidden states and attention rows equal the twin's") {
  for (const Case& c : kCases) {
    CAPTURE(c.name);
    TinyModelBuilder builder;
    c.change(builder);
    const auto source = builder.Build();
    builder.seed = 1;
    const auto encoder = MakeEncoder(builder);
    const TokenBatch batch = RandomBatch(kLengths, builder.spec);
    const Twin twin(builder.spec, *source);
    std::vector<TwinResult> expected;
    for (size_t text = 0; text < batch.texts(); ++text) {
      const size_t begin = static_cast<size_t>(batch.starts[text]);
      const size_t length = kLengths[text];
      std::span<const uint8_t> globals;
      if (!batch.globals.empty()) globals = std::span(batch.globals).subspan(begin, length);
      expected.push_back(twin.Encode(std::span(batch.ids).subspan(begin, length),
                                     std::span(batch.types).subspan(begin, length), globals));
    }

    test::ForEachTier([&](CpuTier) {
      size_t hidden_calls = 0, attention_rows = 0;
      Sinks sinks;
      sinks.hidden_states = [&](size_t layer, MatView<const float> hidden) {
        CHECK(layer == hidden_calls++);
        CHECK(hidden.rows == batch.ids.size());
        for (size_t text = 0; text < batch.texts(); ++text) {
          CompareRows(hidden, static_cast<size_t>(batch.starts[text]),
                      expected[text].hidden[layer]);
        }
      };
      sinks.wants_attention = [](size_t, size_t head) { return head != 1; };
      sinks.attention = [&](const AttentionBlock& block) {
        CHECK(block.head != 1);
        const test::Rows& weights = expected[block.text].attention[block.layer][block.head];
        REQUIRE(block.weights.cols == weights.size());
        REQUIRE(block.query_begin + block.weights.rows <= weights.size());
        for (size_t i = 0; i < block.weights.rows; ++i) {
          const std::span<const float> row(block.weights.Row(i), block.weights.cols);
          CHECK(test::MaxAbsDifference(row, weights[block.query_begin + i]) <= kTolerance);
        }
        attention_rows += block.weights.rows;
      };
      Workspace workspace, silent_workspace;
      const MatView<const float> hidden = encoder->Forward(batch.View(), workspace, sinks);
      CHECK(hidden_calls == builder.spec.layer_count() + 1);
      CHECK(attention_rows ==
            builder.spec.layer_count() * (builder.spec.heads - 1) * batch.ids.size());

      // Listening changes nothing.
      const MatView<const float> silent = encoder->Forward(batch.View(), silent_workspace);
      for (size_t r = 0; r < hidden.rows; ++r) {
        CHECK(test::SameBits({hidden.Row(r), hidden.cols}, {silent.Row(r), silent.cols}));
      }
    });
  }
}

TEST_CASE("workspace is as large as announced") {
  TinyModelBuilder builder;
  const auto encoder = MakeEncoder(builder);
  const std::vector<size_t> lengths = {30, 4};
  const TokenBatch batch = RandomBatch(lengths, builder.spec);
  Workspace workspace;
  encoder->Forward(batch.View(), workspace);
  CHECK(workspace.capacity() == RoundUp(encoder->WorkspaceBytes(34, 30), kAlignment));
}

TEST_CASE("tables stay where the source has them, or are copied") {
  for (const bool mappable : {true, false}) {
    CAPTURE(mappable);
    TinyModelBuilder builder;
    builder.mappable = mappable;
    WeightReader reader(builder.Build());
    auto encoder = Encoder::Create(builder.spec, reader).value();
    const size_t tables = (50 + 200 + 2) * 40 * sizeof(float);
    CHECK(encoder->mapped_bytes() == (mappable ? tables : 0));
    // One release a packed tensor, and one a copied table.
    CHECK(dynamic_cast<const MemorySource&>(reader.source()).releases ==
          3 * 6 + (mappable ? 0 : 3));
  }
}

struct Refusal {
  const char* name;
  std::function<void(EncoderSpec&)> change;
  StatusCode code;
  const char* part_of_message;
};

const Refusal kRefusals[] = {
    {"missing tensor", [](EncoderSpec& s) { s.layers[1].ffn_up.weight.name = "layer1.absent"; },
     StatusCode::kNotFound, "layer1.absent"},
    {"wrong shape", [](EncoderSpec& s) { s.intermediate = 71; }, StatusCode::kCorrupt, "[72, 40]"},
    {"wrong heads", [](EncoderSpec& s) { s.heads = 4; }, StatusCode::kCorrupt, "[36, 40]"},
    {"wrong vocabulary", [](EncoderSpec& s) { s.embeddings.vocab_size = 51; }, StatusCode::kCorrupt,
     "word"},
    {"no hidden size", [](EncoderSpec& s) { s.hidden = 0; }, StatusCode::kUnsupported, "hidden"},
    {"absurd number of heads", [](EncoderSpec& s) { s.heads = size_t{1} << 60; },
     StatusCode::kUnsupported, "heads"},
    {"absurd position table",
     [](EncoderSpec& s) {
       s.embeddings.position_kind = PositionKind::kSinusoidalHalves;
       s.embeddings.max_positions = size_t{1} << 40;
     },
     StatusCode::kUnsupported, "position table"},
    {"positions start beyond the table", [](EncoderSpec& s) { s.embeddings.position_offset = 200; },
     StatusCode::kUnsupported, "position table"},
    {"embedding size without projection", [](EncoderSpec& s) { s.embeddings.size = 39; },
     StatusCode::kUnsupported, "projection"},
    {"heads that cannot share keys", [](EncoderSpec& s) { s.kv_heads = 2; },
     StatusCode::kUnsupported, "cannot share 2"},
    {"odd rotation", [](EncoderSpec& s) { s.rotaries = {{.columns = 11}}; },
     StatusCode::kUnsupported, "rotation of 11"},
    {"rotation of more than a head", [](EncoderSpec& s) { s.rotaries = {{.columns = 14}}; },
     StatusCode::kUnsupported, "rotation of 14"},
    {"rotation that is not there", [](EncoderSpec& s) { s.layers[2].rotary = 0; },
     StatusCode::kUnsupported, "layer 2"},
    {"a layer that repeats a later one", [](EncoderSpec& s) { s.layers[1].same_as = 2; },
     StatusCode::kUnsupported, "layer 1"},
    {"norms of outputs in a post-norm model",
     [](EncoderSpec& s) { s.layers[1].ffn_output_norm = s.layers[1].ffn_norm; },
     StatusCode::kUnsupported, "norms of outputs"},
    {"LayerNorm of heads", [](EncoderSpec& s) { s.layers[1].query_norm = s.layers[1].ffn_norm; },
     StatusCode::kUnsupported, "norms of heads"},
    {"groups that do not divide", [](EncoderSpec& s) { s.layers[0].ffn_up.groups = 3; },
     StatusCode::kInvalidArgument, "3 groups of 40 inputs"},
    {"relative positions that no layer scores",
     [](EncoderSpec& s) { s.relative_positions.span = 4; }, StatusCode::kUnsupported,
     "that no layer scores"},
    {"layers that score relative positions that are not there",
     [](EncoderSpec& s) { s.layers[1].position_key = s.layers[1].key; }, StatusCode::kUnsupported,
     "that are not there"},
    {"relative positions without end",
     [](EncoderSpec& s) {
       s.relative_positions.span = size_t{1} << 40;
       s.layers[1].position_key = s.layers[1].key;
     },
     StatusCode::kUnsupported, "1099511627776 rows on either side"},
    {"logarithmic steps that lead nowhere",
     [](EncoderSpec& s) {
       s.relative_positions = {.span = 20, .rows = DistanceRows::kLogarithmic, .max_distance = 11};
       s.layers[1].position_key = s.layers[1].key;
     },
     StatusCode::kUnsupported, "20 rows on either side up to distance 11"},
    {"a table of relative positions that is not in the file",
     [](EncoderSpec& s) {
       s.relative_positions.span = 20;
       s.relative_positions.table.name = "relative";
       s.layers[1].position_key = s.layers[1].key;
     },
     StatusCode::kNotFound, "relative"},
    {"a table of relative positions of other rows",
     [](EncoderSpec& s) {
       s.relative_positions.span = 20;
       s.relative_positions.table.name = "word";
       s.layers[1].position_key = s.layers[1].key;
     },
     StatusCode::kCorrupt, "word"},
    {"a projection of relative positions of another shape",
     [](EncoderSpec& s) {
       s.relative_positions.span = 25;
       s.relative_positions.table.name = "word";
       s.layers[1].position_query = s.layers[1].ffn_up;
     },
     StatusCode::kCorrupt, "layer1.up.weight"},
    {"relative positions beside learned distances",
     [](EncoderSpec& s) {
       s.relative_positions.span = 20;
       s.layers[1].position_key = s.layers[1].key;
       s.layers[2].distances.name = "word";
     },
     StatusCode::kUnsupported, "learned distances beside relative positions"},
    {"a convolution over an even number of tokens",
     [](EncoderSpec& s) {
       s.convolution.linear = s.layers[0].ffn_up;
       s.convolution.linear.taps = 2;
     },
     StatusCode::kUnsupported, "over 2 tokens"},
    {"a convolution in a pre-norm model",
     [](EncoderSpec& s) {
       s.norm_place = NormPlace::kPre;
       s.convolution.linear = s.layers[0].ffn_up;
       s.convolution.linear.taps = 3;
     },
     StatusCode::kUnsupported, "in a pre-norm model"},
    {"groups of rows outside a fused tensor",
     [](EncoderSpec& s) {
       TensorRef& ref = s.layers[0].query.weight;
       ref.fused_rows = 36 * 3 - 13;
       ref.row_count = 36;
       ref.group_rows = 12;
       ref.group_step = 36;
       ref.row_begin = 24;
     },
     StatusCode::kInvalidArgument, "layer0.query.weight"},
    {"groups of rows that are no heads",
     [](EncoderSpec& s) {
       TensorRef& ref = s.layers[0].query.weight;
       ref.fused_rows = 36 * 3;
       ref.row_count = 36;
       ref.group_rows = 9;
       ref.group_step = 27;
     },
     StatusCode::kInvalidArgument, "layer0.query.weight"},
    {"odd number of buckets", [](EncoderSpec& s) { s.score_bias.buckets = 31; },
     StatusCode::kUnsupported, "31 buckets"},
    {"tables for texts without end",
     [](EncoderSpec& s) {
       s.score_bias.kind = ScoreBias::kSlopes;
       s.embeddings.position_kind = PositionKind::kNone;
     },
     StatusCode::kUnsupported, "too long for a table"},
    {"more experts chosen than there are",
     [](EncoderSpec& s) {
       s.layers[1].experts = {.count = 2, .chosen = 3, .router = {}, .bias = {}};
     },
     StatusCode::kUnsupported, "3 of 2 experts"},
    {"no experts to choose from",
     [](EncoderSpec& s) {
       s.layers[1].experts = {.count = 0, .chosen = 1, .router = {}, .bias = {}};
     },
     StatusCode::kUnsupported, "1 of 0 experts"},
    {"absurd number of experts",
     [](EncoderSpec& s) {
       s.layers[1].experts = {.count = 257, .chosen = 1, .router = {}, .bias = {}};
     },
     StatusCode::kUnsupported, "1 of 257 experts"},
    {"experts with biases of their own",
     [](EncoderSpec& s) {
       s.layers[1].experts = {.count = 2, .chosen = 1, .router = {}, .bias = {}};
       s.layers[1].ffn_up.stack = s.layers[1].ffn_down.stack = 2;
     },
     StatusCode::kUnsupported, "gates or biases"},
    {"layers that choose different numbers of experts",
     [](EncoderSpec& s) {
       for (const size_t l : {0, 1}) {
         s.layers[l].experts = {.count = 2, .chosen = 1 + l, .router = {}, .bias = {}};
         s.layers[l].ffn_up.stack = s.layers[l].ffn_down.stack = 2;
         s.layers[l].ffn_up.bias = s.layers[l].ffn_down.bias = {};
       }
     },
     StatusCode::kUnsupported, "2 of 2 experts"},
    {"a stack of another height", [](EncoderSpec& s) { s.layers[1].ffn_up.stack = 2; },
     StatusCode::kCorrupt, "[144, 40]"},
    {"a place outside a stack",
     [](EncoderSpec& s) { s.layers[1].ffn_up.stack = s.layers[1].ffn_up.place = 1; },
     StatusCode::kInvalidArgument, "matrix 1 of 1"},
    {"a second norm of a pre-norm model",
     [](EncoderSpec& s) {
       s.norm_place = NormPlace::kPre;
       s.layers[1].second_attention_norm = s.layers[1].ffn_norm;
     },
     StatusCode::kUnsupported, "norms of"},
    {"rows outside a fused tensor",
     [](EncoderSpec& s) {
       s.layers[0].query.weight.fused_rows = 36;
       s.layers[0].query.weight.row_begin = 1;
       s.layers[0].query.weight.row_count = 36;
     },
     StatusCode::kInvalidArgument, "layer0.query.weight"},
};

TEST_CASE("specs and weights that do not fit are refused by name") {
  for (const Refusal& refusal : kRefusals) {
    CAPTURE(refusal.name);
    TinyModelBuilder builder;
    WeightReader reader(builder.Build());
    EncoderSpec spec = builder.spec;
    refusal.change(spec);
    const auto encoder = Encoder::Create(spec, reader);
    REQUIRE(!encoder.ok());
    CHECK(encoder.status().code() == refusal.code);
    CHECK(encoder.status().message().find(refusal.part_of_message) != std::string::npos);
  }
}

TEST_CASE("weights beyond the memory ceiling are refused with the number needed") {
  TinyModelBuilder builder;
  WeightReader reader(builder.Build());
  const auto encoder = Encoder::Create(builder.spec, reader, {.max_memory = 1 << 20});
  REQUIRE(!encoder.ok());
  CHECK(encoder.status().code() == StatusCode::kResourceExhausted);
  CHECK(encoder.status().message().find("memory ceiling of 1 MiB") != std::string::npos);
}

TEST_CASE("batches out of range are refused") {
  TinyModelBuilder builder;
  builder.spec.embeddings.max_positions = 10;
  const auto encoder = MakeEncoder(builder);
  CHECK(encoder->max_tokens() == 10);
  struct BadBatch {
    const char* name;
    std::vector<int32_t> ids, types, starts;
    bool good = false;
    std::vector<uint8_t> globals = {};
  };
  const BadBatch batches[] = {
      {"good", {1, 49}, {0, 1}, {0, 1, 2}, true},
      {"no types", {1, 49}, {}, {0, 1, 2}, true},
      {"empty", {}, {}, {}, true},
      {"only empty texts", {}, {}, {0, 0, 0}, true},
      {"id too large", {1, 50}, {}, {0, 2}},
      {"negative id", {-1}, {}, {0, 1}},
      {"type too large", {1, 1}, {0, 2}, {0, 2}},
      {"too long", std::vector<int32_t>(11, 3), {}, {0, 11}},
      {"starts too far", {1, 2}, {}, {0, 3}},
      {"starts descend", {1, 2}, {}, {0, 2, 1, 2}},
      {"starts begin late", {1, 2}, {}, {1, 2}},
      {"too few types", {1, 2}, {0}, {0, 2}},
      {"globals without global attention", {1, 2}, {}, {0, 2}, false, {1, 0}},
      {"ids without texts", {1}, {}, {}},
  };
  for (const BadBatch& bad : batches) {
    CAPTURE(bad.name);
    const RaggedBatch batch{bad.ids, bad.types, bad.starts, bad.globals};
    CHECK(encoder->CheckBatch(batch).ok() == bad.good);
    const Status status =
        EncodeTokens(*encoder, batch, {}, [](size_t, MatView<const float>) { return Status(); });
    CHECK(status.ok() == bad.good);
  }
}

}  // namespace
}  // namespace pozor
