// Norms around the sublayers, and the bottleneck that layers may stand behind.
#include "engine/forward.h"
#include "engine/forward_rows.h"
#include "kernels/norm.h"

namespace pozor {

NormArgs ForwardPass::NormArguments(const NormWeights& norm, MatView<float> x,
                                    MatView<float> out) const {
  NormArgs args;
  args.x = x.data;
  args.x_stride = x.stride;
  args.gamma = norm.gamma;
  args.beta = norm.beta;
  args.epsilon = model_.spec.norm_epsilon;
  args.rows = x.rows;
  args.cols = x.cols;
  args.out = out.data;
  args.out_stride = out.stride;
  return args;
}

void ForwardPass::NormRows(const NormWeights& norm, MatView<float> x, MatView<float> out) {
  if (norm.gamma == nullptr) return;
  const NormArgs args = NormArguments(norm, x, out);
  switch (model_.spec.norm_kind) {
    case NormKind::kLayerNorm:
      return LayerNorm(args);
    case NormKind::kRmsNorm:
      return RmsNorm(args);
    case NormKind::kAffine:
      return AffineNorm(args);
  }
}

// sum += norm(x); x may change.
void ForwardPass::AddNormedRows(const NormWeights& norm, MatView<float> x, MatView<float> sum) {
  if (model_.spec.norm_kind == NormKind::kLayerNorm) {
    NormRows(norm, x, x);
    for (size_t r = 0; r < x.rows; ++r) {
      for (size_t c = 0; c < x.cols; ++c) sum.Row(r)[c] += x.Row(r)[c];
    }
    return;
  }
  NormArgs args = NormArguments(norm, x, sum);
  args.shortcut = sum.data;
  args.shortcut_stride = sum.stride;
  RmsNorm(args);
}

const NormWeights& ForwardPass::NormOf(size_t l, Sublayer sublayer) const {
  const LayerWeights& layer = model_.layers[l];
  return sublayer == Sublayer::kAttention ? layer.attention_norm : layer.ffn_norm;
}

const NormWeights& ForwardPass::OutputNormOf(size_t l, Sublayer sublayer) const {
  const LayerWeights& layer = model_.layers[l];
  return sublayer == Sublayer::kAttention ? layer.attention_output_norm : layer.ffn_output_norm;
}

void ForwardPass::PreNorm(size_t l, Sublayer sublayer, Range rows) {
  rows = Clip(rows, rows_);
  const bool narrows = sublayer == Sublayer::kAttention && model_.layers[l].narrow.present();
  if (narrows) return Narrow(l, rows);
  if (model_.spec.norm_place != NormPlace::kPre) return;
  const ZoneTimer timer(profile_, Zone::kNorm);
  NormRowsInto(l, sublayer, NormOf(l, sublayer), Part(hidden_, rows), Part(normed_, rows),
               rows.begin);
}

void ForwardPass::PostNorm(size_t l, Sublayer sublayer, Range rows) {
  const bool pre = model_.spec.norm_place == NormPlace::kPre;
  if (pre && OutputNormOf(l, sublayer).gamma == nullptr) return;
  const ZoneTimer timer(profile_, Zone::kNorm);
  rows = Clip(rows, rows_);
  if (pre) {
    AddNormedRows(OutputNormOf(l, sublayer), Part(normed_, rows), Part(hidden_, rows));
    return;
  }
  const NormWeights& second = model_.layers[l].second_attention_norm;
  const bool ends_layer = sublayer == Sublayer::kFeedForward;
  if (!ends_layer && second.gamma != nullptr) {
    AddNormedRows(NormOf(l, sublayer), Part(normed_, rows), Part(hidden_, rows));
    NormRowsInto(l, Sublayer::kFeedForward, second, Part(hidden_, rows), Part(hidden_, rows),
                 rows.begin);
  } else if (l == 0 && ends_layer && model_.convolution.present()) {
    NormRows(NormOf(l, sublayer), Part(hidden_, rows), Part(hidden_, rows));
  } else {
    const MatView<float> x = Part(Stream(), rows);
    const bool continued = ends_layer && model_.Continues(l + 1);
    NormRowsInto(ends_layer ? l + 1 : l,
                 ends_layer && !continued ? Sublayer::kAttention : Sublayer::kFeedForward,
                 NormOf(l, sublayer), x, x, rows.begin);
    if (ends_layer && model_.layers[l].widen.present()) Widen(l, rows);
  }
}

void ForwardPass::Narrow(size_t l, Range rows) {
  const LayerWeights& layer = model_.layers[l];
  const ZoneTimer timer(profile_, Zone::kQkv);
  const MatView<const float> hidden = Const(Part(hidden_, rows));
  const auto make = [&](const Linear& linear, const NormWeights& norm, MatView<float> out) {
    if (!linear.present()) return;
    linear.Apply(hidden, out);
    NormRows(norm, out, out);
  };
  make(layer.narrow, layer.narrow_norm, Part(narrow_, rows));
  make(layer.narrow_query, layer.narrow_query_norm, Part(narrow_query_, rows));
}

void ForwardPass::Widen(size_t l, Range rows) {
  AddToHidden(model_.layers[l].widen, narrow_, rows);
  NormRows(model_.layers[l].widen_norm, Part(hidden_, rows), Part(hidden_, rows));
}

void ForwardPass::FinalNorm(Range rows) {
  const ZoneTimer timer(profile_, Zone::kNorm);
  rows = Clip(rows, rows_);
  NormRows(model_.final_norm, Part(hidden_, rows), Part(hidden_, rows));
}

}  // namespace pozor
