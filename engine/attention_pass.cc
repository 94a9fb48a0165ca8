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

// Q, then K, as whole rows in the context's place, which is free until attention fills it.
void ForwardPass::FinishQkv(size_t l, Range rows) {
  if (!model_.norms_whole_rows()) return;
  const ZoneTimer timer(profile_, Zone::kNorm);
  rows = {rows.begin, std::min(rows.end, rows_)};
  const LayerWeights& layer = model_.layers[l];
  NormWholeRows(layer.query_norm, HeadUnit(l, 0), model_.spec.heads, rows);
  NormWholeRows(layer.key_norm, HeadUnit(l, model_.spec.heads), model_.kv_heads(), rows);
  Rotate(l, rows, {});
}

void ForwardPass::NormWholeRows(const NormWeights& norm, float* units, size_t heads, Range rows) {
  const size_t size = model_.spec.head_dim;
  MatView<float> x = {context_.Row(rows.begin), rows.end - rows.begin, heads * size,
                      context_.stride};
  const auto visit = [&](const auto& copy) {
    for (size_t head = 0; head < heads; ++head) {
      for (size_t r = 0; r < x.rows; ++r) {
        float* unit = units + head * unit_stride_ + (rows.begin + r) * model_.head_stride;
        copy(unit, x.Row(r) + head * size);
      }
    }
  };
  visit([size](const float* unit, float* row) { std::copy_n(unit, size, row); });
  NormRows(norm, x, x);
  visit([size](float* unit, const float* row) { std::copy_n(row, size, unit); });
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

namespace {

// What the rows of one head are scored by: all columns of `linear`, or, where each head has its own
// side by side, `columns` of them.
PackedMatrix ColumnsOf(const Linear& linear, size_t head, size_t columns) {
  PackedMatrix matrix = linear.matrix();
  if (matrix.n <= columns) return matrix;
  const size_t panel_bytes = PackedPanelBytes(matrix.layout, matrix.k);
  matrix.panels =
      static_cast<const char*>(matrix.panels) + head * (columns / kPanelColumns) * panel_bytes;
  matrix.n = columns;
  return matrix;
}

}  // namespace

// Scores of content against positions in `scratch`, [tokens, position_stride] each: of the queries
// of `args`, and of all keys, as far as the model has them.
void ForwardPass::ScorePositions(size_t l, size_t head, AttentionArgs* args, float* scratch) const {
  const LayerWeights& layer = model_.layers[l];
  const bool learned = layer.distances.present();
  const Linear none;
  const Linear& for_keys = model_.spec.distances_score_keys ? layer.distances : none;
  const Linear& by_query = learned ? layer.distances : layer.position_keys;
  const Linear& by_key = learned ? for_keys : layer.position_queries;
  if (!by_query.present() && !by_key.present()) return;
  const size_t stride = model_.position_stride(), apart = args->tokens - 1;
  const float key_scale = learned ? model_.query_scale : 1.0f;  // else the weights have it
  args->position_index = model_.distance_index.data() + model_.distance_index.size() / 2;
  args->position_stride = stride;
  const auto column_of = [&](ptrdiff_t distance) {
    return static_cast<size_t>(args->position_index[distance]);
  };
  const auto score = [&](const Linear& linear, const float* rows, Range of, float scale,
                         float* out) {
    const PackedMatrix columns = ColumnsOf(linear, head, model_.position_columns());
    GemmArgs product = linear.Arguments({rows + of.begin * args->head_stride, of.end - of.begin,
                                         args->head_dim, args->head_stride});
    product.b = &columns;
    product.panel_begin = column_of(-static_cast<ptrdiff_t>(apart)) / kPanelColumns;
    product.panel_end = column_of(static_cast<ptrdiff_t>(apart)) / kPanelColumns + 1;
    product.epilogue.scale = scale;
    product.epilogue.scaled_columns = scale == 1.0f ? 0 : stride;
    product.epilogue.c = out + of.begin * stride;
    product.epilogue.c_stride = stride;
    Gemm(product);
  };
  if (by_query.present()) {  // Q is scaled already
    score(by_query, args->q, {args->query_begin, args->query_end}, 1.0f, scratch);
    args->query_positions = scratch;
  }
  if (by_key.present()) {
    float* keys = scratch + args->tokens * stride;
    score(by_key, args->k, {0, args->tokens}, key_scale, keys);
    args->key_positions = keys;
  }
}

}  // namespace pozor
