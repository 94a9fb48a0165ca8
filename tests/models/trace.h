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
  trace.hidden.resize((spec.layers.size() + 1) * tokens * spec.hidden);
  trace.attention.resize(spec.layers.size() * spec.heads * tokens * tokens);
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

// The tokens of an entry of "texts" or "pairs".
inline TokenBatch TokensOf(const JsonValue& text) {
  TokenBatch batch;
  batch.ids = ToInts(*text.Find("ids"));
  if (const JsonValue* types = text.Find("type_ids")) batch.types = ToInts(*types);
  batch.EndText();
  return batch;
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
