// The int8 side of a forward pass: rows become bytes where a product reads them.
#include <algorithm>

#include "engine/forward.h"
#include "kernels/norm_quantize.h"
#include "kernels/quantize.h"

namespace pozor {

const NormWeights* Encoder::Impl::NormBefore(size_t l, Sublayer sublayer) const {
  const NormWeights* norm = nullptr;
  if (spec.norm_kind == NormKind::kAffine) return nullptr;
  if (spec.norm_place == NormPlace::kPre) {
    norm = sublayer == Sublayer::kAttention ? &layers[l].attention_norm : &layers[l].ffn_norm;
  } else if (sublayer == Sublayer::kFeedForward && !Continues(l)) {
    const NormWeights& second = layers[l].second_attention_norm;
    norm = second.gamma != nullptr ? &second : &layers[l].attention_norm;
  } else if (l == 1 && convolution.present()) {
    norm = &convolution_norm;
  } else if (l > 0) {
    norm = &layers[l - 1].ffn_norm;
  } else if (!norms_before_projection()) {
    norm = &embedding_norm;
  }
  return norm == nullptr || norm->gamma == nullptr ? nullptr : norm;
}

bool ForwardPass::QuantizesInput(size_t l, Sublayer sublayer) const {
  const ProductKind kind = sublayer == Sublayer::kAttention ? ProductKind::kQkv : ProductKind::kUp;
  return l < model_.layers.size() && model_.IsInt8(l, kind);
}

// A pre-norm's own result has no other reader than the product behind it.
void ForwardPass::NormRowsInto(size_t l, Sublayer sublayer, const NormWeights& norm,
                               MatView<float> x, MatView<float> out, size_t first_row) {
  if (!QuantizesInput(l, sublayer)) return NormRows(norm, x, out);
  const SmoothInput& input = model_.smooth_inputs[l][static_cast<size_t>(sublayer)];
  if (model_.NormBefore(l, sublayer) != &norm) {
    NormRows(norm, x, out);
    const MatView<const float> from = Input(l, sublayer);
    QuantizeArgs args;
    args.x = from.Row(first_row);
    args.x_stride = from.stride;
    args.rows = x.rows;
    args.cols = from.cols;
    args.column_scale = input.scale;
    args.column_shift = input.shift;
    args.out = input_bytes_.From(first_row);
    return QuantizeRows(args);
  }
  NormQuantizeArgs args;
  args.norm = NormArguments(norm, x, out);
  const bool routed = sublayer == Sublayer::kFeedForward && model_.layers[l].experts.present();
  const bool has_other_reader = routed || model_.layers[l].global_qkv.present();
  if (out.data != x.data && !has_other_reader) args.norm.out = nullptr;
  args.smooth_gamma = input.scale;
  args.smooth_beta = input.shift;
  args.out = input_bytes_.From(first_row);
  model_.spec.norm_kind == NormKind::kRmsNorm ? RmsNormQuantize(args) : LayerNormQuantize(args);
}

void ForwardPass::QuantizeContext(size_t l, Range rows) {
  if (!model_.IsInt8(l, ProductKind::kOutput)) return;
  const ZoneTimer timer(profile_, Zone::kQuantize);
  QuantizePlain(context_, 0, context_bytes_, {rows.begin, std::min(rows.end, rows_)});
}

void ForwardPass::QuantizeIntermediate(size_t l, Range rows) {
  if (!model_.IsInt8(l, ProductKind::kDown)) return;
  const ZoneTimer timer(profile_, Zone::kQuantize);
  const LayerWeights& layer = model_.layers[l];
  rows.end = std::min(rows.end, rows_);
  if (!layer.experts.present()) {
    return QuantizePlain(up_, layer.ffn_down.matrix().split, up_bytes_, rows);
  }
  const size_t each = model_.spec.layers[l].experts.chosen;
  QuantizePlain(slot_up_, layer.experts.down.front().matrix().split, slot_up_bytes_,
                {rows.begin * each, rows.end * each});
}

void ForwardPass::QuantizePlain(MatView<float> x, size_t split, const QuantizedRows& out,
                                Range rows) {
  QuantizeArgs args;
  args.x = x.Row(rows.begin);
  args.x_stride = x.stride;
  args.rows = rows.end - rows.begin;
  args.cols = x.cols;
  args.split = split;
  args.out = out.From(rows.begin);
  QuantizeRows(args);
}

}  // namespace pozor
