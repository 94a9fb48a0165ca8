// The BERT goldens: hidden states, attention and pooler on the stored token ids.
#include "tests/models/golden.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/graph.h"
#include "models/model_impl.h"

namespace pozor {
namespace {

using test::DataPath;
using test::Golden;

struct Listened {
  std::vector<float> hidden;     // [layers + 1, tokens, hidden]
  std::vector<float> attention;  // [layers, heads, tokens, tokens]
  std::vector<float> pooler;     // [hidden]
};

Listened Listen(const Model::Impl& model, const std::vector<int32_t>& ids,
                const std::vector<int32_t>& types) {
  const EncoderSpec& spec = model.encoder->spec();
  const size_t tokens = ids.size();
  Listened out;
  out.hidden.resize((spec.layers.size() + 1) * tokens * spec.hidden);
  out.attention.resize(spec.layers.size() * spec.heads * tokens * tokens);
  Sinks sinks;
  sinks.hidden_states = [&](size_t layer, MatView<const float> rows) {
    REQUIRE(rows.rows == tokens);
    REQUIRE(rows.cols == spec.hidden);
    for (size_t r = 0; r < tokens; ++r) {
      std::copy_n(rows.Row(r), spec.hidden, &out.hidden[(layer * tokens + r) * spec.hidden]);
    }
  };
  sinks.wants_attention = [](size_t, size_t) { return true; };
  sinks.attention = [&](const AttentionBlock& block) {
    for (size_t r = 0; r < block.weights.rows; ++r) {
      const size_t row =
          ((block.layer * spec.heads + block.head) * tokens + block.query_begin + r) * tokens;
      std::copy_n(block.weights.Row(r), tokens, &out.attention[row]);
    }
  };
  const int32_t starts[] = {0, static_cast<int32_t>(tokens)};
  const RaggedBatch batch = {ids, types, starts};
  REQUIRE(model.encoder->CheckBatch(batch).ok());
  GraphOptions options;
  options.threads = 1;
  const auto pool = [&](size_t, MatView<const float> hidden) {
    if (!model.pooler) return Status();
    out.pooler.resize(spec.hidden);
    model.pooler->Apply({hidden.data, 1, spec.hidden, hidden.stride},
                        {out.pooler.data(), 1, spec.hidden, spec.hidden});
    return Status();
  };
  const Status status = EncodeTokens(*model.encoder, batch, options, pool, sinks);
  if (!status.ok()) FAIL(status.message());
  return out;
}

// Worst excess over the tolerance among the tensors of one text or pair.
double CompareText(const Golden& golden, const std::string& stem, const Listened& got,
                   size_t hidden) {
  double worst = 0;
  if (golden.Find(stem + ".hidden") != nullptr) {
    worst = golden.Excess(got.hidden, golden.Read(stem + ".hidden"));
  } else {
    const std::vector<float> last = golden.Read(stem + ".last");
    REQUIRE(last.size() % hidden == 0);
    const std::span<const float> all(got.hidden);
    worst = golden.Excess(all.last(last.size()), last);
  }
  if (golden.Find(stem + ".attn") != nullptr) {
    worst = std::max(worst, golden.Excess(got.attention, golden.Read(stem + ".attn")));
  }
  if (golden.Find(stem + ".pooler") != nullptr) {
    worst = std::max(worst, golden.Excess(got.pooler, golden.Read(stem + ".pooler")));
  }
  return worst;
}

TEST_CASE("BERT goldens") {
  for (const char* name :
       {"bert", "bert-gelu-new", "bert-relu", "bert-silu-nopooler", "bert-decoder"}) {
    CAPTURE(name);
    const Golden golden(DataPath(name));
    auto model =
        LoadModelParts(DataPath(name), {}, {.requires_tokenizer = false, .with_pooler = true});
    if (!model.ok()) FAIL(model.status().message());
    CHECK((*model)->pooler.has_value() == (golden.Find("text.0.pooler") != nullptr));
    size_t compared = 0;
    for (const auto& [list, stem] : {std::pair("texts", "text."), std::pair("pairs", "pair.")}) {
      const JsonValue* texts = golden.json().Find(list);
      for (size_t i = 0; texts != nullptr && i < texts->items().size(); ++i) {
        const JsonValue& text = texts->items()[i];
        const std::string tensor = stem + std::to_string(i);
        CAPTURE(tensor);
        const Listened got =
            Listen(**model, test::ToInts(*text.Find("ids")), test::ToInts(*text.Find("type_ids")));
        CHECK(CompareText(golden, tensor, got, (*model)->encoder->spec().hidden) <= 1.0);
        ++compared;
      }
    }
    CHECK(compared >= 14);
  }
}

TEST_CASE("tokens of the BERT goldens") {
  for (const char* name :
       {"bert", "bert-gelu-new", "bert-relu", "bert-silu-nopooler", "bert-decoder"}) {
    CAPTURE(name);
    const Golden golden(DataPath(name));
    const Model model = test::LoadOrFail(DataPath(name));
    EncodeOptions options;
    options.max_length = static_cast<size_t>(golden.json().Find("max_length")->as_int());
    for (const JsonValue& item : golden.json().Find("texts")->items()) {
      const std::string text(item.Find("text")->as_string());
      CAPTURE(text);
      const auto tokens = model.Tokenize(text, options);
      REQUIRE(tokens.ok());
      CHECK(tokens->ids == test::ToInts(*item.Find("ids")));
      CHECK(tokens->type_ids == test::ToInts(*item.Find("type_ids")));
      CHECK(tokens->truncated == item.Find("truncated")->as_bool());
    }
  }
}

}  // namespace
}  // namespace pozor
