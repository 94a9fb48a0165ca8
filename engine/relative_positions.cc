#include "engine/relative_positions.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "engine/distances.h"
#include "kernels/norm.h"
#include "kernels/pack.h"

namespace pozor {
namespace {

size_t TableRows(const EncoderSpec& spec) { return 2 * spec.relative_positions.span; }

LinearBlock HeadsOf(const EncoderSpec& spec, const LinearRef& ref) {
  return {.ref = &ref,
          .out = spec.heads * spec.head_dim,
          .group = spec.head_dim,
          .padded_group = RoundUp(spec.head_dim, kPanelColumns)};
}

Status ReadVector(WeightReader& weights, const TensorRef& ref, size_t cols, float* out) {
  const std::array<size_t, 1> shape = {cols};
  POZOR_TRY(const TensorInfo* tensor, weights.Take(ref.name, shape));
  return weights.source().Read(*tensor, 0, cols, out);
}

Status NormRows(const EncoderSpec& spec, WeightReader& weights, float* rows) {
  const NormRef& norm = spec.relative_positions.norm;
  if (!norm.gamma.present()) return {};
  std::vector<float> gamma(spec.hidden), beta(spec.hidden);
  POZOR_RETURN_IF_ERROR(ReadVector(weights, norm.gamma, spec.hidden, gamma.data()));
  POZOR_RETURN_IF_ERROR(ReadVector(weights, norm.beta, spec.hidden, beta.data()));
  NormArgs args;
  args.x = args.out = rows;
  args.x_stride = args.out_stride = spec.hidden;
  args.gamma = gamma.data();
  args.beta = beta.data();
  args.epsilon = spec.norm_epsilon;
  args.rows = TableRows(spec);
  args.cols = spec.hidden;
  LayerNorm(args);
  return {};
}

}  // namespace

Status CheckRelativePositions(const EncoderSpec& spec) {
  const RelativePositionSpec& positions = spec.relative_positions;
  const auto wrong = [&](const std::string& what) {
    return Unsupported(spec.architecture + ": " + what + "; check the model's config");
  };
  bool projected = false, learned = false;
  for (const LayerSpec& layer : spec.layers) {
    projected =
        projected || layer.position_key.weight.present() || layer.position_query.weight.present();
    learned = learned || layer.distances.present();
  }
  if (projected != (positions.span != 0)) {
    return wrong(projected ? "layers score relative positions that are not there"
                           : "relative positions are there that no layer scores");
  }
  if (!projected) return {};
  if (learned) return wrong("learned distances beside relative positions cannot be");
  if (spec.kv_heads != 0 && spec.kv_heads != spec.heads) {
    return wrong("relative positions with keys that heads share cannot be");
  }
  if (positions.norm.gamma.present() != positions.norm.beta.present()) {
    return wrong("a norm of relative positions without a shift cannot be");
  }
  const bool logarithmic = positions.rows == DistanceRows::kLogarithmic;
  const bool steps = !logarithmic || (positions.span >= 2 && positions.max_distance > 1 &&
                                      positions.max_distance - 1 > positions.span / 2);
  if (positions.span <= kLongestDistance && positions.max_distance <= kLongestDistance && steps) {
    return {};
  }
  return wrong("relative positions of " + std::to_string(positions.span) + " rows on either side" +
               (logarithmic ? " up to distance " + std::to_string(positions.max_distance) : "") +
               " cannot be");
}

size_t RelativePositionColumns(const EncoderSpec& spec) {
  return RoundUp(TableRows(spec), kPanelColumns);
}

Status RelativePositions::Check(const EncoderSpec& spec, WeightReader& weights) {
  const RelativePositionSpec& positions = spec.relative_positions;
  if (positions.span == 0) return {};
  const std::array<size_t, 2> shape = {TableRows(spec), spec.hidden};
  POZOR_RETURN_IF_ERROR(weights.Take(positions.table.name, shape).status());
  if (!positions.norm.gamma.present()) return {};
  const std::array<size_t, 1> norm_shape = {spec.hidden};
  POZOR_RETURN_IF_ERROR(weights.Take(positions.norm.gamma.name, norm_shape).status());
  return weights.Take(positions.norm.beta.name, norm_shape).status();
}

Status RelativePositions::Read(const EncoderSpec& spec, WeightReader& weights) {
  if (spec.relative_positions.span == 0) return {};
  const std::array<size_t, 2> shape = {TableRows(spec), spec.hidden};
  POZOR_TRY(const TensorInfo* tensor, weights.Take(spec.relative_positions.table.name, shape));
  rows_ = AlignedBuffer(tensor->elements() * sizeof(float));
  float* rows = rows_.As<float>();
  POZOR_RETURN_IF_ERROR(weights.source().Read(*tensor, 0, tensor->elements(), rows));
  weights.source().Release(*tensor);
  return NormRows(spec, weights, rows);
}

Status RelativePositions::CheckProjection(const EncoderSpec& spec, WeightReader& weights,
                                          const LinearRef& ref) {
  return Linear::Check(weights, HeadsOf(spec, ref), spec.hidden);
}

Result<Linear> RelativePositions::Project(const EncoderSpec& spec, WeightReader& weights,
                                          const LinearRef& ref, float scale,
                                          Workspace& arena) const {
  const LinearBlock block = HeadsOf(spec, ref);
  Workspace memory;
  memory.Reset(Linear::PackedBytes(spec.hidden, block.packed_columns()));
  POZOR_TRY(const Linear projection, Linear::CreateIn(memory, weights, {&block, 1}, spec.hidden));
  const size_t rows = TableRows(spec), stride = block.packed_columns();
  const AlignedBuffer projected(rows * stride * sizeof(float));
  projection.Apply({rows_.As<const float>(), rows, spec.hidden, spec.hidden},
                   {projected.As<float>(), rows, stride, stride});
  std::transform(projected.As<float>(), projected.As<float>() + rows * stride,
                 projected.As<float>(), [scale](float value) { return value * scale; });

  const size_t columns = RelativePositionColumns(spec), all = spec.heads * columns;
  float* panels = arena.Take(spec.head_dim * all);
  float* bias = arena.Take(all);
  std::fill_n(bias, all, 0.0f);
  for (size_t head = 0; head < spec.heads; ++head) {
    const WeightView view = {.data = projected.As<float>() + head * block.padded_group,
                             .k = spec.head_dim,
                             .n = rows,
                             .k_stride = 1,
                             .n_stride = stride};
    PackF32(view, nullptr, rows, 0, columns / kPanelColumns,
            panels + head * spec.head_dim * columns);
  }
  PackedMatrix matrix;
  matrix.layout = PackedLayout::kF32x16;
  matrix.panels = panels;
  matrix.k = spec.head_dim;
  matrix.n = all;
  return Linear::FromPacked(matrix, bias, Activation::kNone);
}

size_t RelativePositions::PackedBytes(const EncoderSpec& spec) {
  return Linear::PackedBytes(spec.head_dim, spec.heads * RelativePositionColumns(spec));
}

}  // namespace pozor
