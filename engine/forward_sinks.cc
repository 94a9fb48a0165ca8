// What a forward pass shows to those who asked: inputs of products, rows of attention.
#include <algorithm>
#include <vector>

#include "engine/forward.h"
#include "engine/forward_rows.h"
#include "kernels/attention.h"
#include "kernels/attention_s8.h"

namespace pozor {

void ForwardPass::EmitInput(size_t l, ProductKind kind, const Sinks& sinks) const {
  if (!sinks.product_inputs) return;
  const Range all = {0, rows_};
  if (kind == ProductKind::kDown && model_.layers[l].experts.present()) {
    const Slots slots = SlotsOf(l, all);
    for (size_t e = 0; e < model_.layers[l].experts.up.size(); ++e) {
      sinks.expert_inputs(l, e, Part(Const(slot_up_), {slots.first[e], slots.first[e + 1]}));
    }
    return;
  }
  switch (kind) {
    case ProductKind::kQkv:
      return sinks.product_inputs(l, kind, Part(Input(l, Sublayer::kAttention), all));
    case ProductKind::kAttention:
      return;
    case ProductKind::kOutput:
      return sinks.product_inputs(l, kind, Part(Const(context_), all));
    case ProductKind::kUp:
      return sinks.product_inputs(l, kind, Part(Input(l, Sublayer::kFeedForward), all));
    case ProductKind::kDown:
      return sinks.product_inputs(l, kind, Part(Const(up_), all));
  }
}

void ForwardPass::EmitAttention(size_t l, const Sinks& sinks) {
  if (!sinks.attention) return;
  const size_t number = model_.numbers[l];
  const auto weigh =
      model_.IsInt8(l, ProductKind::kAttention) ? AttentionS8Weights : AttentionWeights;
  std::vector<size_t> heads;
  for (size_t head = 0; head < model_.spec.heads; ++head) {
    if (!sinks.wants_attention || sinks.wants_attention(number, head)) heads.push_back(head);
  }
  for (size_t text = 0; text < batch_.texts() && !heads.empty(); ++text) {
    const size_t tokens = batch_.length(text);
    const size_t end = std::min(sinks.query_end, tokens);
    if (sinks.query_begin >= end) continue;
    const size_t blocks = (end - sinks.query_begin + kQueryBlock - 1) / kQueryBlock;
    const size_t stride = RoundUp(tokens, kPanelColumns);
    const AlignedBuffer rows(std::min(kQueryBlock, tokens) * stride * sizeof(float));
    for (size_t i = 0; i < blocks * heads.size(); ++i) {
      const size_t block = sinks.heads_together ? i / heads.size() : i % blocks;
      const size_t head = heads[sinks.heads_together ? i % heads.size() : i / blocks];
      AttentionArgs args = AttentionOf(l, text, head);
      args.query_begin = sinks.query_begin + block * kQueryBlock;
      args.query_end = std::min(args.query_begin + kQueryBlock, end);
      ScorePositions(l, head, &args, scratch_ + attention_floats_);
      ShowGlobals(text, &args, scratch_ + attention_floats_);
      weigh(args, scratch_, rows.As<float>(), stride);
      for (const int32_t query : GlobalQueries(text, args)) {
        AttentionWeights(
            GlobalAttentionOf(l, text, head, query, args), scratch_,
            rows.As<float>() + (static_cast<size_t>(query) - args.query_begin) * stride, stride);
      }
      const MatView<const float> weights = {rows.As<float>(), args.query_end - args.query_begin,
                                            tokens, stride};
      sinks.attention({number, head, text, args.query_begin, weights});
    }
  }
}

}  // namespace pozor
