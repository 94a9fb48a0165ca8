// What stands between the projections of Q, K and V and the attention kernel: norms and rotation of
// heads, and scores of content against positions.
#include <algorithm>

#include "engine/forward.h"
#include "kernels/norm.h"
#include "kernels/rotary.h"

namespace pozor {

// Queries and keys among the head units whose panels were just computed, from `rows` on.
template <class Visit>
void ForwardPass::VisitTurnedUnits(size_t l, Range rows, Range panels, const Visit& visit) {
  const size_t unit_panels = model_.head_stride / kPanelColumns;
  const size_t turned = model_.spec.heads + model_.kv_heads();
  const size_t end = panels.end == SIZE_MAX ? turned : std::min(turned, panels.end / unit_panels);
  for (size_t unit = panels.begin / unit_panels; unit < end; ++unit) {
    visit(unit, HeadUnit(l, unit) + rows.begin * model_.head_stride);
  }
}

void ForwardPass::NormHeads(size_t l, Range rows, Range panels) {
  const LayerWeights& layer = model_.layers[l];
  if (layer.query_norm.gamma == nullptr) return;
  NormArgs args;
  args.x_stride = args.out_stride = model_.head_stride;
  args.rows = std::min(rows.end, rows_) - rows.begin;
  args.cols = model_.spec.head_dim;
  args.epsilon = model_.spec.norm_epsilon;
  VisitTurnedUnits(l, rows, panels, [&](size_t unit, float* x) {
    args.gamma = unit < model_.spec.heads ? layer.query_norm.gamma : layer.key_norm.gamma;
    args.x = args.out = x;
    RmsNorm(args);
  });
}

// Queries and keys turn by their positions.
void ForwardPass::Rotate(size_t l, Range rows, Range panels) {
  const LayerSpec& layer = model_.spec.layers[l];
  if (layer.rotary == kNone) return;
  const RotarySpec& rotary = model_.spec.rotaries[layer.rotary];
  RotaryArgs args;
  args.x_stride = model_.head_stride;
  args.rows = std::min(rows.end, rows_) - rows.begin;
  args.columns = rotary.columns;
  args.pairs = rotary.pairs;
  args.table = model_.rotary_tables[layer.rotary];
  args.positions = positions_ + rows.begin;
  VisitTurnedUnits(l, rows, panels, [&](size_t, float* x) {
    args.x = x;
    pozor::Rotate(args);
  });
}

// q E^T for the queries of `args`, and k E^T for all keys if keys score as well, in `scratch`:
// [tokens, position_stride] each.
void ForwardPass::ScorePositions(size_t l, AttentionArgs* args, float* scratch) const {
  const Linear& distances = model_.layers[l].distances;
  if (!distances.present()) return;
  const size_t stride = model_.position_stride(), middle = model_.spec.embeddings.max_positions - 1;
  const auto score = [&](const float* rows, size_t begin, size_t end, float scale, float* out) {
    GemmArgs product = distances.Arguments(
        {rows + begin * args->head_stride, end - begin, args->head_dim, args->head_stride});
    product.panel_begin = (middle + 1 - args->tokens) / kPanelColumns;
    product.panel_end = DivCeil(middle + args->tokens, kPanelColumns);
    product.epilogue.scale = scale;
    product.epilogue.scaled_columns = stride;
    product.epilogue.c = out + begin * stride;
    product.epilogue.c_stride = stride;
    Gemm(product);
  };
  score(args->q, args->query_begin, args->query_end, 1.0f, scratch);  // Q is scaled already
  args->query_positions = scratch;
  if (model_.spec.distances_score_keys) {
    float* keys = scratch + args->tokens * stride;
    score(args->k, 0, args->tokens, model_.query_scale, keys);
    args->key_positions = keys;
  }
  args->position_stride = stride;
  args->position_index = model_.distance_index.data() + middle;
}

}  // namespace pozor
