// The feed-forward sublayer without experts.
#include "engine/forward.h"

#include <algorithm>

#include "engine/forward_rows.h"
#include "kernels/activation.h"

namespace pozor {

void ForwardPass::FeedForwardUp(size_t l, Range rows, Range panels) {
  const LayerWeights& layer = model_.layers[l];
  if (layer.experts.present()) return ExpertsUp(l, rows, panels);
  const ProductInput x = InputOf(l, Sublayer::kFeedForward);
  GemmArgs args = Product(layer.ffn_up, x, rows, panels);
  const bool gated = layer.ffn_gate.present();
  const ZoneTimer timer(profile_, Zone::kFeedForwardUp, Flops(args) * (gated ? 2 : 1));
  args.epilogue.c = up_.Row(rows.begin);
  args.epilogue.c_stride = up_.stride;
  Gemm(args);
  if (!gated) return;

  args = Product(layer.ffn_gate, x, rows, panels);
  args.epilogue.c = gate_.Row(rows.begin);
  args.epilogue.c_stride = gate_.stride;
  Gemm(args);
  const size_t first = args.panel_begin * kPanelColumns;
  const size_t columns = std::min(args.panel_end * kPanelColumns, up_.cols) - first;
  for (size_t row = rows.begin; row < rows.begin + args.m; ++row) {
    float* up = up_.Row(row) + first;
    ActivateGated(model_.spec.activation, gate_.Row(row) + first, up, up, columns);
  }
}

void ForwardPass::FeedForwardDown(size_t l, Range rows, Range panels) {
  if (model_.layers[l].experts.present()) return ExpertsDown(l, rows, panels);
  const Linear& linear = model_.layers[l].ffn_down;
  const ProductInput x = {Const(up_), up_bytes_};
  const ZoneTimer timer(profile_, Zone::kFeedForwardDown, Flops(Product(linear, x, rows, panels)));
  const bool normed = OutputNormOf(l, Sublayer::kFeedForward).gamma != nullptr;
  AddProduct(linear, normed ? Sum::kAside : Sum::kHidden, x, rows, panels);
}

}  // namespace pozor
