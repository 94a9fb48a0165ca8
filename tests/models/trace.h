// Everything the encoder shows of one text, and how far it is from a golden's tensors.
#ifndef POZOR_TESTS_MODELS_TRACE_H_
#define POZOR_TESTS_MODELS_TRACE_H_

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "engine/encoder.h"
#include "engine/memory.h"
#include "models/model_impl.h"
#include "tests/models/golden.h"

namespace pozor::test {

struct Trace {
  std::vector<float> hidden;     // [layers + 1, tokens, hidden]
  std::vector<float> attention;  // [layers, heads, tokens, tokens]
  std::vector<float> pooler;     // [hidden], or empty: the model has none
};

inline Trace TraceText(const Model::Impl& model, const TokenBatch& batch) {
  const EncoderSpec& spec = model.encoder->spec();
  const size_t tokens = batch.ids.size();
  Trace trace;
  const size_t layers = spec.layer_count();
  trace.hidden.resize((layers + 1) * tokens * spec.hidden);
  trace.attention.resize(layers * spec.heads * tokens * tokens);
  Sinks sinks;
  sinks.hidden_states = [&](size_t layer, MatView<const float> rows) {
    REQUIRE(rows.rows == tokens);
    REQUIRE(rows.cols == spec.hidden);
    for (size_t r = 0; r < tokens; ++r) {
      std::copy_n(rows.Row(r), spec.hidden, &trace.hidden[(layer * tokens + r) * spec.hidden]);
    }
  };
  sinks.wants_attention = [](size_t, size_t) { return true; };
  sinks.attention = [&](const AttentionBlock& block) {
    for (size_t r = 0; r < block.weights.rows; ++r) {
      const size_t row =
          ((block.layer * spec.heads + block.head) * tokens + block.query_begin + r) * tokens;
      std::copy_n(block.weights.Row(r), tokens, &trace.attention[row]);
    }
  };
  const Status status = model.encoder->CheckBatch(batch.View());
  if (!status.ok()) FAIL(status.message());
  Workspace workspace;
  const MatView<const float> last = model.encoder->Forward(batch.View(), workspace, sinks);
  if (model.pooler && tokens > 0) {
    trace.pooler.resize(spec.hidden);
    model.pooler->Apply({last.data, 1, spec.hidden, last.stride},
                        {trace.pooler.data(), 1, spec.hidden, spec.hidden});
  }
  return trace;
}

// The tokens of an entry of "texts" or "pairs", those at `globals` global.
inline TokenBatch TokensOf(const JsonValue& text, const JsonValue* globals = nullptr) {
  TokenBatch batch;
  batch.ids = ToInts(*text.Find("ids"));
  if (const JsonValue* types = text.Find("type_ids")) batch.types = ToInts(*types);
  if (globals != nullptr) {
    batch.globals.resize(batch.ids.size());
    for (const int32_t place : ToInts(*globals)) batch.globals[static_cast<size_t>(place)] = 1;
  }
  batch.EndText();
  return batch;
}

// Attention rows as transformers' Longformer has them, of one layer: for each head and query the
// global keys, then the keys from `window` before to `window` after it, global ones among them 0.
// The rows of global queries, which it keeps elsewhere, are 0. [heads, tokens, globals + width]
inline std::vector<float> WindowedRows(std::span<const float> rows, const TokenBatch& batch,
                                       size_t heads, size_t window) {
  const size_t tokens = batch.ids.size();
  std::vector<size_t> globals;
  for (size_t t = 0; t < batch.globals.size(); ++t) {
    if (batch.globals[t] != 0) globals.push_back(t);
  }
  const auto is_global = [&](size_t t) { return !batch.globals.empty() && batch.globals[t] != 0; };
  const size_t width = globals.size() + 2 * window + 1;
  std::vector<float> out(heads * tokens * width);
  for (size_t row = 0; row < heads * tokens; ++row) {
    const size_t query = row % tokens;
    if (is_global(query)) continue;
    const float* from = rows.data() + row * tokens;
    float* to = out.data() + row * width;
    for (const size_t key : globals) *to++ = from[key];
    for (size_t b = 0; b < 2 * window + 1; ++b) {
      const size_t key = query + b - window;  // wraps below 0
      if (key < tokens && !is_global(key)) to[b] = from[key];
    }
  }
  return out;
}

// The rows of the global queries, as transformers keeps them: [heads, keys, globals], `padded` keys
// of which only the text's tokens have weights.
inline std::vector<float> GlobalRows(std::span<const float> rows, const TokenBatch& batch,
                                     size_t heads, size_t padded) {
  const size_t tokens = batch.ids.size();
  std::vector<size_t> globals;
  for (size_t t = 0; t < batch.globals.size(); ++t) {
    if (batch.globals[t] != 0) globals.push_back(t);
  }
  std::vector<float> out(heads * padded * globals.size());
  for (size_t h = 0; h < heads; ++h) {
    for (size_t g = 0; g < globals.size(); ++g) {
      for (size_t key = 0; key < tokens; ++key) {
        out[(h * padded + key) * globals.size() + g] =
            rows[(h * tokens + globals[g]) * tokens + key];
      }
    }
  }
  return out;
}

// Worst excess of the attention rows that a golden keeps layer by layer, in that layout.
inline double WindowedExcess(const Golden& golden, const std::string& stem, const Trace& got,
                             const TokenBatch& batch, const EncoderSpec& spec) {
  double worst = 0;
  const size_t layer_size = got.attention.size() / spec.layer_count();
  for (size_t l = 0; l < spec.layer_count(); ++l) {
    const std::string name = stem + ".attn." + std::to_string(l);
    if (golden.Find(name) == nullptr) continue;
    const auto rows = std::span(got.attention).subspan(l * layer_size, layer_size);
    const auto windowed =
        WindowedRows(rows, batch, spec.heads, spec.layers[spec.AttentionPlace(l)].window);
    worst = std::max(worst, golden.Excess(windowed, golden.Read(name)));
    const std::string global = stem + ".global_attn." + std::to_string(l);
    const TensorInfo* tensor = golden.Find(global);
    if (tensor == nullptr) continue;
    const auto of_globals = GlobalRows(rows, batch, spec.heads, tensor->shape[1]);
    worst = std::max(worst, golden.Excess(of_globals, golden.Read(global)));
  }
  return worst;
}

// True if the golden has attention rows of a text, in whatever layout.
inline bool HasAttention(const Golden& golden, const std::string& stem) {
  return golden.Find(stem + ".attn") != nullptr || golden.Find(stem + ".attn.0") != nullptr;
}

// Worst excess over the tolerance among the golden's tensors of one text or pair.
inline double ExcessOf(const Golden& golden, const std::string& stem, const Trace& got,
                       size_t tokens_times_hidden) {
  double worst = 0;
  if (golden.Find(stem + ".hidden") != nullptr) {
    worst = golden.Excess(got.hidden, golden.Read(stem + ".hidden"));
  }
  if (golden.Find(stem + ".last") != nullptr) {
    const std::span<const float> last = std::span(got.hidden).last(tokens_times_hidden);
    worst = std::max(worst, golden.Excess(last, golden.Read(stem + ".last")));
  }
  if (golden.Find(stem + ".attn") != nullptr) {
    worst = std::max(worst, golden.Excess(got.attention, golden.Read(stem + ".attn")));
  }
  if (golden.Find(stem + ".pooler") != nullptr) {
    worst = std::max(worst, golden.Excess(got.pooler, golden.Read(stem + ".pooler")));
  }
  return worst;
}

}  // namespace pozor::test

#endif  // POZOR_TESTS_MODELS_TRACE_H_
