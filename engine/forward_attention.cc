// The attention sublayer: Q, K and V, the attention of every text and head, its output.
#include <algorithm>

#include "engine/forward.h"
#include "engine/forward_rows.h"
#include "kernels/attention.h"
#include "kernels/attention_s8.h"

namespace pozor {

float* ForwardPass::HeadUnit(size_t l, size_t unit) const {
  return qkv_[model_.numbers[l] % 2] + unit * unit_stride_;
}

// Those heads of the product whose panels, counted from unit 0, are in `panels`. Returns the work.
uint64_t ForwardPass::ProjectHeads(const Linear& linear, const ProductInput& x,
                                   const HeadUnits& heads, Range rows, Range panels) {
  const size_t before = heads.first * model_.head_stride / kPanelColumns;
  panels = Clip(panels, before + linear.panels());
  panels.begin = std::max(panels.begin, before);
  if (panels.begin >= panels.end) return 0;
  GemmArgs args = Product(linear, x, rows, {panels.begin - before, panels.end - before});
  args.epilogue.scale = heads.query_scale;
  args.epilogue.scaled_columns = heads.first == 0 ? model_.spec.heads * model_.head_stride : 0;
  args.epilogue.c = heads.units + heads.first * unit_stride_ + rows.begin * model_.head_stride;
  args.epilogue.c_stride = model_.head_stride;
  args.epilogue.split_columns = model_.head_stride;
  args.epilogue.unit_stride = unit_stride_;
  Gemm(args);
  return Flops(args);
}

void ForwardPass::Qkv(size_t l, Range rows, Range panels) {
  const LayerWeights& layer = model_.layers[l];
  const ProductInput x = InputOf(l, Sublayer::kAttention);
  ZoneTimer timer(profile_, Zone::kQkv);
  const float scale = layer.query_norm.gamma == nullptr ? model_.query_scale : 1.0f;
  timer.AddFlops(ProjectHeads(layer.qkv, x, {HeadUnit(l, 0), 0, scale}, rows, panels));
  if (layer.value.present()) {
    const HeadUnits values = {HeadUnit(l, 0), model_.spec.heads + model_.kv_heads()};
    timer.AddFlops(ProjectHeads(layer.value, {Const(hidden_), {}}, values, rows, panels));
  }
  if (!global_keys_.empty()) {
    const HeadUnits global = {global_qkv_[model_.numbers[l] % 2], 0, model_.query_scale};
    ProjectHeads(layer.global_qkv, x, global, rows, panels);
  }
  if (model_.norms_whole_rows()) return;  // FinishQkv does it
  NormHeads(l, rows, panels);
  Rotate(l, rows, panels);
}

AttentionArgs ForwardPass::AttentionOf(size_t l, size_t text, size_t head) const {
  const EncoderSpec& spec = model_.spec;
  const size_t first = static_cast<size_t>(batch_.starts[text]) * model_.head_stride;
  AttentionArgs args;
  args.q = HeadUnit(l, head) + first;
  const size_t kv_heads = model_.kv_heads(), kv_head = head / (spec.heads / kv_heads);
  args.k = HeadUnit(l, spec.heads + kv_head) + first;
  args.v = HeadUnit(l, spec.heads + kv_heads + kv_head) + first;
  args.head_dim = spec.head_dim;
  args.head_stride = model_.head_stride;
  args.tokens = batch_.length(text);
  args.query_end = args.tokens;
  args.window = spec.layers[l].window;
  args.causal = spec.causal;
  if (model_.score_bias != nullptr) {
    const size_t longest = model_.max_tokens();
    args.relative_bias = model_.score_bias + head * (2 * longest - 1) + longest - 1;
  }
  return args;
}

void ForwardPass::Attend(size_t l, Range rows, Range heads, size_t worker) {
  rows = Clip(rows, rows_);
  heads = Clip(heads, model_.spec.heads);
  ZoneTimer timer(profile_, Zone::kAttention);
  const auto attend = model_.IsInt8(l, ProductKind::kAttention) ? AttentionS8 : Attention;
  for (size_t text = 0; text < batch_.texts(); ++text) {
    const size_t first = static_cast<size_t>(batch_.starts[text]);
    const size_t begin = std::max(rows.begin, first);
    const size_t end = std::min(rows.end, first + batch_.length(text));
    if (begin >= end) continue;
    for (size_t head = heads.begin; head < heads.end; ++head) {
      AttentionArgs args = AttentionOf(l, text, head);
      args.query_begin = begin - first;
      args.query_end = end - first;
      args.out = context_.Row(first) + head * args.head_dim;
      args.out_stride = context_.stride;
      float* scratch = scratch_ + worker * scratch_floats_;
      ScorePositions(l, head, &args, scratch + attention_floats_);
      ShowGlobals(text, &args, scratch + attention_floats_);
      attend(args, scratch);
      for (const int32_t query : GlobalQueries(text, args)) {
        Attention(GlobalAttentionOf(l, text, head, query, args), scratch);
      }
      timer.AddFlops(4 * (end - begin) * args.tokens * args.head_dim);
    }
  }
}

void ForwardPass::AttentionOutput(size_t l, Range rows, Range panels) {
  const Linear& linear = model_.layers[l].attention_output;
  const ProductInput x = {Const(context_), context_bytes_};
  const ZoneTimer timer(profile_, Zone::kAttentionOutput, Flops(Product(linear, x, rows, panels)));
  const bool second = model_.layers[l].second_attention_norm.gamma != nullptr;
  const bool normed = OutputNormOf(l, Sublayer::kAttention).gamma != nullptr;
  const Sum sum = second ? Sum::kAsideWithHidden : normed ? Sum::kAside : Sum::kHidden;
  AddProduct(linear, sum, x, rows, panels);
}

}  // namespace pozor
