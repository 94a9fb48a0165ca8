#include "engine/forward.h"

#include <algorithm>
#include <array>

#include "engine/forward_rows.h"

namespace pozor {

namespace {

// The products of every row of a layer; absent ones have no inputs and outputs.
std::array<const Linear*, 9> ProductsOf(const LayerWeights& layer) {
  return {&layer.qkv,      &layer.value,  &layer.attention_output, &layer.ffn_gate, &layer.ffn_up,
          &layer.ffn_down, &layer.narrow, &layer.narrow_query,     &layer.widen};
}

uint64_t PackedBytesOf(const Linear& linear) {
  if (!linear.present()) return 0;
  return uint64_t{linear.panels()} * PackedPanelBytes(linear.matrix().layout, linear.in());
}

}  // namespace

uint64_t Encoder::Impl::MultiplyAdds(size_t tokens) const {
  uint64_t each = 0;
  for (size_t l = 0; l < layers.size(); ++l) {
    for (const Linear* linear : ProductsOf(layers[l])) {
      each += uint64_t{linear->in()} * linear->out();
    }
    each += uint64_t{2} * spec.layers[l].experts.chosen * spec.hidden * spec.intermediate;
  }
  return tokens * each;
}

uint64_t Encoder::Impl::ProductBytes() const {
  uint64_t bytes = 0;
  for (const LayerWeights& layer : layers) {
    for (const Linear* linear : ProductsOf(layer)) bytes += PackedBytesOf(*linear);
    for (const Linear& expert : layer.experts.up) bytes += PackedBytesOf(expert);
    for (const Linear& expert : layer.experts.down) bytes += PackedBytesOf(expert);
  }
  return bytes;
}

GemmArgs ForwardPass::Product(const Linear& linear, const ProductInput& x, Range rows,
                              Range panels) const {
  rows = Clip(rows, rows_);
  panels = Clip(panels, linear.panels());
  GemmArgs args = linear.is_int8()
                      ? linear.Arguments(x.bytes.From(rows.begin), rows.end - rows.begin)
                      : linear.Arguments(Part(x.rows, rows));
  args.panel_begin = panels.begin;
  args.panel_end = panels.end;
  return args;
}

void ForwardPass::AddProduct(const Linear& linear, Sum sum, const ProductInput& x, Range rows,
                             Range panels) {
  GemmArgs args = Product(linear, x, rows, panels);
  const MatView<float> out = sum == Sum::kHidden ? Stream() : normed_;
  args.epilogue.c = out.Row(rows.begin);
  args.epilogue.c_stride = out.stride;
  if (sum != Sum::kAside) {
    args.epilogue.residual = Stream().Row(rows.begin);
    args.epilogue.residual_stride = Stream().stride;
  }
  Gemm(args);
}

// h += x W + b, of the wide rows.
void ForwardPass::AddToHidden(const Linear& linear, MatView<float> x, Range rows) {
  GemmArgs args = Product(linear, {Const(x), {}}, rows, {});
  args.epilogue.c = hidden_.Row(rows.begin);
  args.epilogue.c_stride = hidden_.stride;
  args.epilogue.residual = args.epilogue.c;
  args.epilogue.residual_stride = hidden_.stride;
  Gemm(args);
}

MatView<const float> ForwardPass::Input(size_t l, Sublayer sublayer) const {
  const bool normed =
      model_.spec.norm_place == NormPlace::kPre && NormOf(l, sublayer).gamma != nullptr;
  if (normed) return Const(normed_);
  const bool own = sublayer == Sublayer::kAttention && model_.layers[l].narrow_query.present();
  return Const(own ? narrow_query_ : Stream());
}

void ForwardPass::KeepFirstRows() {
  size_t kept = 0;
  for (size_t text = 0; text < batch_.texts(); ++text) {
    if (batch_.length(text) == 0) continue;
    const auto first = static_cast<size_t>(batch_.starts[text]);
    if (first != kept) {
      std::copy_n(hidden_.Row(first), hidden_.cols, hidden_.Row(kept));
      std::copy_n(context_.Row(first), context_.cols, context_.Row(kept));
      std::copy_n(narrow_.Row(first), narrow_.cols, narrow_.Row(kept));
    }
    ++kept;
  }
  rows_ = kept;
}

}  // namespace pozor
