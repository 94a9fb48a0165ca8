// The promise of the design: a text's rows have the same bits however it is run.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/graph.h"
#include "tests/engine/tiny_model.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"

namespace pozor {
namespace {

using test::EncodeRows;
using test::MakeEncoder;
using test::RandomBatch;
using test::SameBits;
using test::TinyModelBuilder;

using TextRows = std::vector<std::vector<float>>;

TokenBatch Pick(const TokenBatch& batch, std::span<const size_t> texts) {
  TokenBatch picked;
  for (const size_t text : texts) {
    for (int32_t t = batch.starts[text]; t < batch.starts[text + 1]; ++t) {
      picked.ids.push_back(batch.ids[t]);
      picked.types.push_back(batch.types[t]);
      if (!batch.globals.empty()) picked.globals.push_back(batch.globals[t]);
    }
    picked.EndText();
  }
  return picked;
}

void CheckSame(const TextRows& rows, const TextRows& expected, std::span<const size_t> texts) {
  REQUIRE(rows.size() == texts.size());
  size_t different = 0;
  for (size_t i = 0; i < texts.size(); ++i) different += !SameBits(rows[i], expected[texts[i]]);
  CHECK(different == 0);
}

// Random lengths, most of them short, a few long enough for several query blocks.
std::vector<size_t> Lengths() {
  test::Random random(3);
  std::vector<size_t> lengths;
  for (int i = 0; i < 60; ++i) lengths.push_back(1 + random.Index(i % 10 == 0 ? 190 : 24));
  lengths.push_back(0);
  return lengths;
}

struct Model {
  std::string name;
  TinyModelBuilder builder;
};

std::vector<Model> PlainModels() {
  std::vector<Model> models(11);
  models[0].name = "post-norm";
  models[1].name = "gated pre-norm";
  models[1].builder.gated = true;
  models[1].builder.spec.norm_place = NormPlace::kPre;
  models[2].name = "window, embedding projection";
  models[2].builder.spec.layers[0].window = 5;
  models[2].builder.spec.embeddings.size = 24;
  models[3].name = "norms of heads and outputs, shared keys, rotation, causal";
  TinyModelBuilder& builder = models[3].builder;
  builder.spec.heads = 4;
  builder.spec.kv_heads = 2;
  builder.spec.causal = true;
  builder.head_norms = builder.output_norms = builder.gated = true;
  builder.spec.norm_kind = NormKind::kRmsNorm;
  builder.spec.norm_place = NormPlace::kPre;
  builder.spec.rotaries = {{.columns = 12}};
  for (LayerSpec& layer : builder.spec.layers) layer.rotary = 0;
  models[4].name = "windows and global tokens";
  models[4].builder.globals = true;
  for (LayerSpec& layer : models[4].builder.spec.layers) layer.window = 3;
  models[5].name = "norms over all heads, a second one after attention";
  models[5].builder.head_norms = models[5].builder.second_norms = true;
  models[5].builder.spec.head_norms = HeadNorms::kAllHeads;
  models[6].name = "experts";
  models[6].builder.experts = 5;
  models[6].builder.chosen = 2;
  models[7].name = "experts, pre-norm, heights that share no tile";
  models[7].builder.experts = 3;
  models[7].builder.chosen = 1;
  models[7].builder.spec.intermediate = 52;
  models[7].builder.spec.norm_place = NormPlace::kPre;
  models[8].name = "one layer, convolution";
  models[8].builder.spec.layers.resize(1);
  models[8].builder.taps = 5;
  models[9].name = "bottlenecks, layers in parts, trigrams";
  test::MakeMobile(&models[9].builder);
  models[10].name = "relative positions, convolution";
  TinyModelBuilder& relative = models[10].builder;
  relative.spec.relative_positions = {
      .span = 24, .rows = DistanceRows::kLogarithmic, .max_distance = 60};
  relative.shared_positions = true;
  relative.taps = 3;
  return models;
}

// Those, all of them in int8, relative positions that score queries only, and one model in both.
std::vector<Model> Models() {
  std::vector<Model> models = PlainModels();
  for (Model model : PlainModels()) {
    model.name = "int8, " + model.name;
    model.builder.int8 = true;
    models.push_back(std::move(model));
  }
  models.push_back(models.back());
  models.back().name += " score queries only";
  models.back().builder.key_positions = false;
  models.push_back({"mixed", {}});
  TinyModelBuilder& builder = models.back().builder;
  PrecisionPlan& plan = builder.plan;
  plan = Int8Plan(builder.spec);
  plan[0][ProductKind::kQkv].format = NumberFormat::kF32;
  plan[0][ProductKind::kDown].format = NumberFormat::kF32;
  plan[1][ProductKind::kUp].format = NumberFormat::kF32;
  plan[1][ProductKind::kAttention].format = NumberFormat::kF32;
  plan[2][ProductKind::kOutput].format = NumberFormat::kF32;
  CompletePlan(&plan);
  return models;
}

class SameBitsFixture {
 public:
  explicit SameBitsFixture(Model& model)
      : encoder(MakeEncoder(model.builder)),
        lengths(Lengths()),
        batch(RandomBatch(lengths, model.builder.spec)),
        all(lengths.size()) {
    std::iota(all.begin(), all.end(), 0u);
    Workspace workspace;
    for (const size_t text : all) {
      const TokenBatch one = Pick(batch, {&text, 1});
      const MatView<const float> hidden = encoder->Forward(one.View(), workspace);
      std::vector<float> rows;
      for (size_t r = 0; r < hidden.rows; ++r) {
        rows.insert(rows.end(), hidden.Row(r), hidden.Row(r) + hidden.cols);
      }
      alone.push_back(rows);
    }
  }

  std::unique_ptr<Encoder> encoder;
  std::vector<size_t> lengths;
  TokenBatch batch;
  std::vector<size_t> all;
  TextRows alone;  // each text by a forward pass of its own
};

TEST_CASE("same bits for every mode, number of threads and batch size") {
  for (Model& model : Models()) {
    CAPTURE(model.name);
    SameBitsFixture f(model);
    for (const EncodeMode mode :
         {EncodeMode::kAuto, EncodeMode::kThroughput, EncodeMode::kLatency}) {
      CAPTURE(static_cast<int>(mode));
      for (const size_t threads : {1u, 2u, 4u}) {
        CAPTURE(threads);
        for (const size_t batch_tokens : {7u, 64u, 8192u}) {
          CAPTURE(batch_tokens);
          GraphOptions options;
          options.mode = mode;
          options.threads = threads;
          options.batch_tokens = batch_tokens;
          CheckSame(EncodeRows(*f.encoder, f.batch.View(), options), f.alone, f.all);
        }
      }
    }
  }
}

TEST_CASE("same bits shuffled, and for every part of the batch") {
  for (Model& model : Models()) {
    CAPTURE(model.name);
    SameBitsFixture f(model);
    test::Random random(11);
    for (int round = 0; round < 20; ++round) {
      std::vector<size_t> texts = f.all;
      for (size_t i = texts.size(); i > 1; --i) std::swap(texts[i - 1], texts[random.Index(i)]);
      texts.resize(1 + random.Index(texts.size()));
      GraphOptions options;
      options.threads = 2;
      options.mode = round % 2 == 0 ? EncodeMode::kAuto : EncodeMode::kLatency;
      CheckSame(EncodeRows(*f.encoder, Pick(f.batch, texts).View(), options), f.alone, texts);
    }
  }
}

TEST_CASE("same bits alone in latency mode, one text at a time") {
  for (Model& model : Models()) {
    CAPTURE(model.name);
    SameBitsFixture f(model);
    for (const size_t threads : {2u, 3u, 8u}) {
      GraphOptions options;
      options.threads = threads;
      options.mode = EncodeMode::kLatency;
      for (const size_t text : f.all) {
        CheckSame(EncodeRows(*f.encoder, Pick(f.batch, {&text, 1}).View(), options), f.alone,
                  {&text, 1});
      }
    }
  }
}

TEST_CASE("same bits of first rows when only those are asked for") {
  for (Model& model : Models()) {
    CAPTURE(model.name);
    SameBitsFixture f(model);
    TextRows first = f.alone;
    const size_t hidden = f.encoder->spec().hidden;
    for (std::vector<float>& rows : first) rows.resize(std::min(rows.size(), hidden));
    for (const EncodeMode mode :
         {EncodeMode::kAuto, EncodeMode::kThroughput, EncodeMode::kLatency}) {
      for (const size_t threads : {1u, 2u}) {
        GraphOptions options;
        options.mode = mode;
        options.threads = threads;
        options.rows = RowsRead::kFirst;
        CheckSame(EncodeRows(*f.encoder, f.batch.View(), options), first, f.all);
        const size_t text = 10;
        CheckSame(EncodeRows(*f.encoder, Pick(f.batch, {&text, 1}).View(), options), first,
                  {&text, 1});
      }
    }
  }
}

TEST_CASE("same bits on every tier with fused multiply-add") {
  for (Model& model : Models()) {
    CAPTURE(model.name);
    SameBitsFixture f(model);
    if (!ActiveTierIsFused()) continue;
    test::ForEachFusedTier(
        [&](CpuTier) { CheckSame(EncodeRows(*f.encoder, f.batch.View()), f.alone, f.all); });
  }
}

TEST_CASE("same bits for 16 callers at once, with and without modes of their own") {
  Model model = Models()[0];
  SameBitsFixture f(model);
  std::vector<std::thread> callers;
  std::atomic<int> different{0};
  for (size_t caller = 0; caller < 16; ++caller) {
    callers.emplace_back([&, caller] {
      for (size_t round = 0; round < 40; ++round) {
        const size_t text = (caller * 7 + round) % f.all.size();
        GraphOptions options;
        options.threads = caller % 4;  // 0: what the machine grants
        options.mode = static_cast<EncodeMode>(round % 3);
        std::vector<float> rows;
        const TokenBatch one = Pick(f.batch, {&text, 1});
        const Status status = EncodeTokens(
            *f.encoder, one.View(), options, [&](size_t, MatView<const float> hidden) -> Status {
              for (size_t r = 0; r < hidden.rows; ++r) {
                rows.insert(rows.end(), hidden.Row(r), hidden.Row(r) + hidden.cols);
              }
              return {};
            });
        std::vector<float> expected = f.alone[text];
        if (options.rows == RowsRead::kFirst) {
          expected.resize(std::min(expected.size(), f.encoder->spec().hidden));
        }
        if (!status.ok() || !SameBits(rows, expected)) ++different;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(different == 0);
}

TEST_CASE("same bits for callers with many texts beside callers with one") {
  Model model = Models()[1];
  SameBitsFixture f(model);
  std::vector<std::thread> callers;
  std::atomic<int> different{0};
  for (size_t caller = 0; caller < 6; ++caller) {
    callers.emplace_back([&, caller] {
      for (size_t round = 0; round < 5; ++round) {
        std::vector<size_t> texts = f.all;
        if (caller % 2 == 0) texts.resize(1);
        const TokenBatch batch = Pick(f.batch, texts);
        GraphOptions options;
        options.threads = 2;
        TextRows rows(texts.size());
        const Status status = EncodeTokens(*f.encoder, batch.View(), options,
                                           [&](size_t text, MatView<const float> hidden) -> Status {
                                             for (size_t r = 0; r < hidden.rows; ++r) {
                                               rows[text].insert(rows[text].end(), hidden.Row(r),
                                                                 hidden.Row(r) + hidden.cols);
                                             }
                                             return {};
                                           });
        if (!status.ok()) ++different;
        for (size_t i = 0; i < texts.size(); ++i) different += !SameBits(rows[i], f.alone[i]);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(different == 0);
}

}  // namespace
}  // namespace pozor
