// Looking inside: attention rows and hidden states of one text.
#include <algorithm>
#include <new>
#include <set>
#include <string>
#include <utility>

#include "engine/graph.h"
#include "models/encode.h"
#include "models/model_impl.h"
#include "pozor/pozor.hpp"

namespace pozor {
namespace {

Status CheckSelection(const ModelInfo& info, const AttentionSelection& selection) {
  for (const auto& [layer, head] : selection.heads) {
    if (layer < info.layers && head < info.heads) continue;
    return InvalidArgument("head " + std::to_string(layer) + ":" + std::to_string(head) +
                           ": the model has layers 0 to " + std::to_string(info.layers - 1) +
                           " and heads 0 to " + std::to_string(info.heads - 1) + "; choose there");
  }
  if (selection.query_begin <= selection.query_end) return Status();
  return InvalidArgument("rows: the range ends before it begins; swap its ends");
}

// One text (or pair) through the encoder with listeners; the vector is made as Encode makes it.
Result<Inspection> Inspect(const Model::Impl& model, std::string_view text,
                           const std::optional<std::string>& pair, const EncodeOptions& options,
                           const Sinks& sinks) {
  POZOR_TRY(const EncodePlan plan, EncodePlan::Make(model, options));
  Inspection result;
  result.text = plan.prompt + std::string(text);
  std::string_view second;
  if (pair) second = *pair;
  POZOR_TRY(result.tokens, ToTokenizeResult(model.tokenizer->Encode(
                               result.text, pair ? &second : nullptr, plan.tokenize)));
  if (result.tokens.truncated && plan.overflow == Overflow::kError) {
    return InvalidArgument("text: has more tokens than the " +
                           std::to_string(plan.tokenize.max_length) +
                           " admitted; shorten it or allow truncation");
  }
  if (result.tokens.ids.empty()) return result;
  const int32_t starts[] = {0, static_cast<int32_t>(result.tokens.ids.size())};
  const RaggedBatch batch = {result.tokens.ids, result.tokens.type_ids, starts};
  GraphOptions graph;
  graph.threads = options.threads;
  graph.max_memory = options.max_memory == 0 ? model.options.max_memory : options.max_memory;
  graph.cancel = options.cancel;
  result.vector.resize(plan.dimensions);
  const auto pool = [&](size_t, MatView<const float> hidden) {
    return MakeVector(model, plan, hidden, 1, result.vector.data());
  };
  POZOR_RETURN_IF_ERROR(EncodeTokens(*model.encoder, batch, graph, pool, sinks));
  return result;
}

}  // namespace

Result<Inspection> Model::Attention(std::string_view text, const AttentionSelection& selection,
                                    const AttentionSink& sink) const try {
  POZOR_RETURN_IF_ERROR(CheckSelection(impl_->info, selection));
  const std::set<std::pair<size_t, size_t>> heads(selection.heads.begin(), selection.heads.end());
  const std::atomic<bool>* cancel = selection.options.cancel;
  Status status;
  Sinks sinks;
  sinks.query_begin = selection.query_begin;
  sinks.query_end = selection.query_end;
  sinks.heads_together = selection.heads_together;
  sinks.wants_attention = [&](size_t layer, size_t head) {
    return status.ok() && (heads.empty() || heads.contains({layer, head}));
  };
  sinks.attention = [&](const AttentionBlock& block) {
    if (!status.ok() || !sink) return;
    const MatView<const float>& rows = block.weights;
    status = sink(
        {block.layer, block.head, block.query_begin, rows.rows, rows.cols, rows.stride, rows.data});
    if (status.ok() && cancel != nullptr && cancel->load(std::memory_order_relaxed)) {
      status = Cancelled("attention: stopped by its caller; call it again");
    }
  };
  if (!sink) sinks.attention = nullptr;
  Result<Inspection> result = Inspect(*impl_, text, selection.pair, selection.options, sinks);
  POZOR_RETURN_IF_ERROR(status);
  return result;
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<Inspection> Model::HiddenStates(std::string_view text, const HiddenSink& sink,
                                       const EncodeOptions& options,
                                       const std::optional<std::string>& pair) const try {
  Status status;
  Sinks sinks;
  sinks.hidden_states = [&](size_t layer, MatView<const float> rows) {
    if (status.ok()) status = sink(layer, rows.rows, rows.cols, rows.stride, rows.data);
  };
  Result<Inspection> result = Inspect(*impl_, text, pair, options, sinks);
  POZOR_RETURN_IF_ERROR(status);
  return result;
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

}  // namespace pozor
