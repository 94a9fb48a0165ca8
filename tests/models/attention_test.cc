// Model::Attention and Model::HiddenStates: numbers, choice, order, and stopping.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "models/locate.h"
#include "models/model_impl.h"
#include "pozor/pozor.h"
#include "pozor/pozor.hpp"
#include "tests/models/golden.h"
#include "tests/support/long_model.h"
#include "tests/support/process.h"

namespace pozor {
namespace {

using test::DataPath;
using test::Golden;

struct Rows {
  std::vector<float> weights;               // in the order in which they came, without padding
  std::vector<std::vector<size_t>> blocks;  // layer, head, first query, queries

  AttentionSink Sink() {
    return [this](const AttentionRows& rows) {
      blocks.push_back({rows.layer, rows.head, rows.query_begin, rows.queries});
      for (size_t i = 0; i < rows.queries; ++i) {
        weights.insert(weights.end(), rows.Row(i), rows.Row(i) + rows.keys);
      }
      return Status();
    };
  }
};

// Worst excess over the tolerance of a text's attention and hidden states.
double CompareText(const Model& model, const Golden& golden, const std::string& stem,
                   const std::string& text, const AttentionSelection& selection) {
  double worst = 0;
  if (golden.Find(stem + ".attn") != nullptr) {
    Rows rows;
    const auto seen = model.Attention(text, selection, rows.Sink());
    if (!seen.ok()) FAIL(seen.status().message());
    worst = golden.Excess(rows.weights, golden.Read(stem + ".attn"));
  }
  if (golden.Find(stem + ".hidden") != nullptr) {
    std::vector<float> hidden;
    const auto sink = [&](size_t, size_t tokens, size_t width, size_t stride, const float* data) {
      for (size_t i = 0; i < tokens; ++i) {
        hidden.insert(hidden.end(), data + i * stride, data + i * stride + width);
      }
      return Status();
    };
    REQUIRE(model.HiddenStates(text, sink, selection.options, selection.pair).ok());
    const double excess = golden.Excess(hidden, golden.Read(stem + ".hidden"));
    worst =
        std::max(worst, golden.json().Find("name")->as_string() == "minilm" ? excess / 10 : excess);
  }
  return worst;
}

TEST_CASE("attention and hidden states of texts and pairs equal the goldens'") {
  for (const char* name :
       {"bert", "bert-gelu-new", "bert-relu", "bert-silu-nopooler", "bert-decoder"}) {
    CAPTURE(name);
    const Golden golden(DataPath(name));
    const Model model = test::LoadOrFail(DataPath(name));
    AttentionSelection selection;
    selection.options.max_length = static_cast<size_t>(golden.json().Find("max_length")->as_int());
    for (const auto& [list, stem] : {std::pair("texts", "text."), std::pair("pairs", "pair.")}) {
      const JsonValue* texts = golden.json().Find(list);
      for (size_t i = 0; texts != nullptr && i < texts->items().size(); ++i) {
        const JsonValue& item = texts->items()[i];
        selection.pair.reset();
        if (const JsonValue* pair = item.Find("pair"))
          selection.pair = std::string(pair->as_string());
        const std::string tensor = stem + std::to_string(i);
        CAPTURE(tensor);
        CHECK(CompareText(model, golden, tensor, std::string(item.Find("text")->as_string()),
                          selection) <= 1.0);
      }
    }
  }
}

TEST_CASE("attention of all-MiniLM-L6-v2 equals the reference's") {
  const auto folder = LocateModel("all-MiniLM-L6-v2");
  if (!folder.ok()) {
    MESSAGE("left out: " << folder.status().message());
    return;
  }
  const Model model = test::LoadOrFail(*folder);
  const Golden golden(DataPath("minilm"));
  const std::vector<std::string> texts = test::GoldenTexts(golden.json());
  for (const size_t i : {0, 5, 116, 124, 133, 159}) {
    CAPTURE(texts[i]);
    CHECK(CompareText(model, golden, "text." + std::to_string(i), texts[i], {}) <= 1.0);
  }
}

// Worst difference of a head's matrix from what long_attention.json keeps of it.
double WorstOfHead(const JsonValue& head, std::span<const float> matrix, size_t tokens) {
  double worst = 0, squares = 0;
  for (const float weight : matrix) squares += static_cast<double>(weight) * weight;
  worst =
      std::abs(squares - head.Find("sum_of_squares")->as_double()) / static_cast<double>(tokens);
  const auto differ = [&](size_t query, size_t key, double weight) {
    worst = std::max(worst, std::abs(static_cast<double>(matrix[query * tokens + key]) - weight));
  };
  const auto at = [](const JsonValue& item, size_t i) {
    return static_cast<size_t>(item.items()[i].as_int());
  };
  for (const JsonValue& item : head.Find("weights")->items()) {
    differ(at(item, 0), at(item, 1), item.items()[2].as_double());
  }
  for (const JsonValue& item : head.Find("largest")->items()) {
    const auto row = matrix.subspan(at(item, 0) * tokens, tokens);
    differ(at(item, 0), at(item, 1), item.items()[2].as_double());
    worst = std::max(worst, static_cast<double>(*std::max_element(row.begin(), row.end())) -
                                item.items()[2].as_double());
  }
  return worst;
}

TEST_CASE("attention of all-MiniLM-L6-v2 over 512 tokens equals the reference's") {
  const auto folder = LocateModel("all-MiniLM-L6-v2");
  if (!folder.ok()) {
    MESSAGE("left out: " << folder.status().message());
    return;
  }
  const Model model = test::LoadOrFail(*folder);
  const JsonDocument golden = ReadJsonFile(DataPath("minilm/long_attention.json")).value();
  const JsonValue& heads = *golden->Find("heads");
  const size_t tokens = 512;
  AttentionSelection selection;
  selection.options.max_length = tokens;
  std::vector<float> matrix;
  double worst = 0;
  size_t compared = 0;
  const auto sink = [&](const AttentionRows& rows) {
    for (size_t i = 0; i < rows.queries; ++i) {
      matrix.insert(matrix.end(), rows.Row(i), rows.Row(i) + rows.keys);
    }
    if (matrix.size() < tokens * tokens) return Status();
    worst = std::max(worst, WorstOfHead(heads.items()[compared++], matrix, tokens));
    matrix.clear();
    return Status();
  };
  const auto seen = model.Attention(golden->Find("text")->as_string(), selection, sink);
  REQUIRE(seen.ok());
  CHECK(seen->tokens.ids == test::ToInts(*golden->Find("ids")));
  CHECK(compared == 72);
  MESSAGE("largest difference " << worst);
  CHECK(worst <= golden->Find("tolerance")->as_double());
}

LoadOptions Int8() {
  LoadOptions options;
  options.precision = Precision::kInt8;
  return options;
}

TEST_CASE("attention rows of windowed, causal and int8 models: what they see, and all of it") {
  struct Kind {
    std::string name;
    LoadOptions options;
    double nearness;  // of int8 to f32
  };
  const Kind kinds[] = {
      {"architectures/gpt2", {}, 0},        {"architectures/longformer", {}, 0},
      {"architectures/modernbert", {}, 0},  {"bert", Int8(), 0.1},
      {"bert-decoder", Int8(), 0.1},        {"architectures/modernbert", Int8(), 0.1},
      {"architectures/mpnet", Int8(), 0.1}, {"architectures/t5-encoder", Int8(), 0.1}};
  for (const Kind& kind : kinds) {
    CAPTURE(kind.name);
    const auto loaded = Model::Load(DataPath(kind.name), kind.options);
    if (!loaded.ok()) FAIL(loaded.status().message());
    const EncoderSpec& spec = loaded->impl().encoder->spec();
    std::string text;
    while (text.size() < 300) text += "The bank of the river was muddy. ";
    Rows rows;
    const Inspection seen = loaded->Attention(text, {}, rows.Sink()).value();
    const size_t tokens = seen.tokens.ids.size();
    REQUIRE(rows.weights.size() == spec.layer_count() * spec.heads * tokens * tokens);
    double worst_sum = 0;
    size_t unseen = 0;
    for (size_t row = 0; row < rows.weights.size() / tokens; ++row) {
      const size_t query = row % tokens, layer = row / tokens / spec.heads;
      double sum = 0;
      for (size_t key = 0; key < tokens; ++key) {
        const float weight = rows.weights[row * tokens + key];
        sum += static_cast<double>(weight);
        const size_t distance = key > query ? key - query : query - key;
        const bool sees = distance <= spec.layers[spec.AttentionPlace(layer)].window &&
                          !(spec.causal && key > query);
        unseen += !sees && weight != 0;
      }
      worst_sum = std::max(worst_sum, std::abs(sum - 1));
    }
    CHECK(worst_sum < 1e-5);
    CHECK(unseen == 0);
    CHECK(std::equal(seen.vector.begin(), seen.vector.end(),
                     loaded->Encode({text}).value()[0].begin()));
    if (kind.nearness == 0) continue;
    const Model f32 = test::LoadOrFail(DataPath(kind.name));
    Rows exact;
    REQUIRE(f32.Attention(text, {}, exact.Sink()).ok());
    REQUIRE(exact.weights.size() == rows.weights.size());
    double most = 0;
    for (size_t i = 0; i < exact.weights.size(); ++i) {
      most = std::max(most, std::abs(static_cast<double>(exact.weights[i] - rows.weights[i])));
    }
    MESSAGE(kind.name << " int8: largest difference of a weight " << most);
    CHECK(most > 0);
    CHECK(most < kind.nearness);
  }
}

TEST_CASE("a choice of heads and rows gives the bits of the whole, in the order asked for") {
  const testing::TemporaryFolder folder;
  testing::WriteLongModel(folder.File("model"), 256);
  const Model model = test::LoadOrFail(folder.File("model"));
  std::string text;
  while (text.size() < 400) text += "A girl is styling her hair. ";
  Rows all;
  const Inspection whole = model.Attention(text, {}, all.Sink()).value();
  const size_t tokens = whole.tokens.ids.size();
  const size_t heads = model.Info().heads, layers = model.Info().layers;
  REQUIRE(tokens > 64);
  REQUIRE(all.weights.size() == layers * heads * tokens * tokens);
  CHECK(std::equal(whole.vector.begin(), whole.vector.end(),
                   model.Encode({text}).value()[0].begin()));

  for (const bool together : {false, true}) {
    CAPTURE(together);
    AttentionSelection selection;
    selection.heads = {{layers - 1, 1}, {0, 0}, {layers - 1, 0}};
    selection.query_begin = 3;
    selection.query_end = 70;
    selection.heads_together = together;
    size_t seen = 0;
    std::vector<std::vector<size_t>> order;
    REQUIRE(model
                .Attention(text, selection,
                           [&](const AttentionRows& rows) {
                             order.push_back(
                                 {rows.layer, rows.head, rows.query_begin, rows.queries});
                             for (size_t i = 0; i < rows.queries; ++i) {
                               const size_t row =
                                   (rows.layer * heads + rows.head) * tokens + rows.query_begin + i;
                               seen += std::equal(rows.Row(i), rows.Row(i) + tokens,
                                                  &all.weights[row * tokens]);
                             }
                             return Status();
                           })
                .ok());
    const size_t end = std::min<size_t>(70, tokens), l = layers - 1;
    CHECK(seen == 3 * (end - 3));
    using Order = std::vector<std::vector<size_t>>;
    const Order apart = {{0, 0, 3, 64},        {0, 0, 67, end - 67}, {l, 0, 3, 64},
                         {l, 0, 67, end - 67}, {l, 1, 3, 64},        {l, 1, 67, end - 67}};
    const Order joined = {{0, 0, 3, 64}, {0, 0, 67, end - 67}, {l, 0, 3, 64},
                          {l, 1, 3, 64}, {l, 0, 67, end - 67}, {l, 1, 67, end - 67}};
    CHECK(order == (together ? joined : apart));
  }
}

TEST_CASE("a sink's error stops the call; bad choices are refused by name") {
  const Model model = test::LoadOrFail(DataPath("bert"));
  int calls = 0;
  const auto stopped = model.Attention("two words", {}, [&](const AttentionRows&) {
    ++calls;
    return IoError("disk: is full; make room");
  });
  CHECK(stopped.status().message() == "disk: is full; make room");
  CHECK(calls == 1);

  AttentionSelection selection;
  selection.heads = {{0, 99}};
  const auto refused = model.Attention("a", selection, nullptr);
  CHECK(refused.status().code() == StatusCode::kInvalidArgument);
  CHECK(refused.status().message().find("head 0:99") != std::string::npos);
  CHECK(model.Attention("\xFF", {}, nullptr).status().code() != StatusCode::kOk);
  CHECK(model.Attention("", {}, nullptr).value().tokens.ids.size() == 2);
}

TEST_CASE("the C interface hands over the same rows and stops when asked") {
  const std::string folder = DataPath("bert");
  const Model model = test::LoadOrFail(folder);
  pozor_model* loaded = nullptr;
  REQUIRE(pozor_model_load(folder.data(), folder.size(), nullptr, &loaded) == POZOR_OK);
  AttentionSelection selection;
  selection.heads = {{1, 0}};
  selection.pair = "her hair";
  Rows expected, got;
  REQUIRE(model.Attention("a girl", selection, expected.Sink()).ok());

  const auto rows = [](void* user, const pozor_attention_rows* block) -> int32_t {
    const AttentionRows copy = {block->layer, block->head,   block->query_begin, block->queries,
                                block->keys,  block->stride, block->weights};
    return static_cast<Rows*>(user)->Sink()(copy).ok() ? 0 : 1;
  };
  const size_t heads[] = {1, 0};
  pozor_attention_options options;
  pozor_attention_options_init(&options);
  options.heads = heads;
  options.head_count = 1;
  options.has_pair = 1;
  options.pair = {"her hair", 8};
  size_t tokens = 0;
  REQUIRE(pozor_model_attention(loaded, {"a girl", 6}, &options, nullptr, rows, &got, &tokens) ==
          POZOR_OK);
  CHECK(got.weights == expected.weights);
  CHECK(got.blocks == expected.blocks);
  CHECK(tokens * tokens == got.weights.size());
  const auto stop = [](void*, const pozor_attention_rows*) -> int32_t { return 1; };
  CHECK(pozor_model_attention(loaded, {"a", 1}, nullptr, nullptr, stop, nullptr, nullptr) ==
        POZOR_CANCELLED);
  CHECK(pozor_model_attention(loaded, {"a", 1}, nullptr, nullptr, nullptr, nullptr, nullptr) ==
        POZOR_INVALID_ARGUMENT);
  pozor_model_free(loaded);
}

}  // namespace
}  // namespace pozor
