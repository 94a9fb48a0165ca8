// Encoder::Create: from a spec and named tensors to packed weights.
#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/distances.h"
#include "engine/encoder_loader.h"
#include "engine/executor.h"
#include "engine/forward.h"
#include "engine/machine.h"
#include "engine/precision_plan.h"
#include "engine/spec_check.h"
#include "kernels/gemm.h"

namespace pozor {

Status EncoderLoader::Walk() {
  POZOR_RETURN_IF_ERROR(Embeddings());
  POZOR_RETURN_IF_ERROR(ScoreBiases());
  POZOR_RETURN_IF_ERROR(Rotations());
  POZOR_RETURN_IF_ERROR(RelativeTable());
  POZOR_RETURN_IF_ERROR(Convolution());
  for (size_t l = 0; l < model_.layers.size(); ++l) POZOR_RETURN_IF_ERROR(Layer(l));
  return Norm(model_.spec.final_norm, model_.spec.hidden, &model_.final_norm);
}

Status EncoderLoader::Product(std::span<const LinearBlock> blocks, size_t in, Activation activation,
                              Linear* linear, NumberFormat format) {
  const PackedLayout layout = LayoutOf(format);
  if (packing_) {
    POZOR_TRY(*linear, Linear::CreateIn(model_.arena, weights_, blocks, in, activation, layout));
    return {};
  }
  size_t columns = 0;
  for (const LinearBlock& block : blocks) {
    POZOR_RETURN_IF_ERROR(Linear::Check(weights_, block, in));
    columns += block.packed_columns();
  }
  bytes_ += Linear::PackedBytes(in, columns, layout);
  return {};
}

Status EncoderLoader::Norm(const NormRef& ref, size_t cols, NormWeights* norm, float scale) {
  if (!ref.gamma.present()) return {};
  POZOR_RETURN_IF_ERROR(Vector(ref.gamma, cols, model_.spec.gain_offset, scale, &norm->gamma));
  return ref.beta.present() ? Vector(ref.beta, cols, 0, scale, &norm->beta) : Status();
}

// (x + offset) * scale
Status EncoderLoader::Vector(const TensorRef& ref, size_t cols, float offset, float scale,
                             const float** vector) {
  const std::array<size_t, 1> shape = {cols};
  POZOR_TRY(const TensorInfo* tensor, weights_.Take(ref.name, shape));
  float* values = Take(cols);
  if (!packing_) return {};
  *vector = values;
  POZOR_RETURN_IF_ERROR(weights_.source().Read(*tensor, 0, cols, values));
  std::transform(values, values + cols, values,
                 [=](float value) { return (value + offset) * scale; });
  return {};
}

// Tables are read a row at a time, so they stay in the file if their rows can be used there.
Status EncoderLoader::Table(const TensorRef& ref, size_t rows, size_t cols, const float** table) {
  const std::array<size_t, 2> shape = {rows, cols};
  POZOR_TRY(const TensorInfo* tensor, weights_.Take(ref.name, shape));
  const TensorSource& source = weights_.source();
  if (const float* mapped = source.Map(*tensor)) {
    *table = mapped;
    model_.source = weights_.shared_source();
    if (packing_) model_.mapped_bytes += rows * cols * sizeof(float);
    return {};
  }
  float* copy = Take(rows * cols);
  if (!packing_) return {};
  *table = copy;
  POZOR_RETURN_IF_ERROR(source.Read(*tensor, 0, rows * cols, copy));
  source.Release(*tensor);
  return {};
}

float* EncoderLoader::Take(size_t floats) {
  if (packing_) return model_.arena.Take(floats);
  bytes_ += RoundUp(floats * sizeof(float), kAlignment);
  return nullptr;
}

Result<std::unique_ptr<Encoder::Impl>> Encoder::Impl::Make(EncoderSpec spec) {
  POZOR_RETURN_IF_ERROR(CheckSpec(spec));
  auto model = std::make_unique<Impl>();
  model->spec = std::move(spec);
  model->head_stride = RoundUp(model->spec.head_dim, kPanelColumns);
  model->query_scale = model->spec.score_scale != 0
                           ? model->spec.score_scale
                           : 1.0f / std::sqrt(static_cast<float>(model->spec.head_dim));
  model->layers.resize(model->spec.layers.size());
  model->IndexDistances();
  for (size_t l = 0, number = 0; l < model->layers.size(); ++l) {
    if (l != 0 && !model->spec.layers[l].continues) ++number;
    model->numbers.push_back(number);
  }
  return model;
}

void Encoder::Impl::IndexDistances() {
  if (position_columns() == 0) return;
  const auto last = static_cast<ptrdiff_t>(max_tokens()) - 1;
  const auto middle = static_cast<ptrdiff_t>(spec.embeddings.max_positions) - 1;
  for (ptrdiff_t distance = -last; distance <= last; ++distance) {
    const size_t column = spec.relative_positions.span != 0
                              ? RelativePositionRow(distance, spec.relative_positions)
                              : static_cast<size_t>(middle + distance);
    distance_index.push_back(static_cast<int32_t>(column));
  }
}

Result<std::unique_ptr<Encoder>> Encoder::Create(EncoderSpec spec, WeightReader& weights,
                                                 const EncoderOptions& options) try {
  POZOR_TRY(std::unique_ptr<Impl> model, Impl::Make(std::move(spec)));
  if (options.weights == NumberFormat::kBf16) model->precision = Bf16Plan(model->spec);
  if (options.weights == NumberFormat::kBf16x3) {
    model->precision = Bf16x3Plan(model->spec, HasGemmKernel(LayoutOf(options.weights)));
  }
  EncoderLoader loader(weights, *model);
  POZOR_RETURN_IF_ERROR(loader.Check());
  POZOR_RETURN_IF_ERROR(
      CheckCeiling("the model's weights", options.max_memory, ResidentBytes() + loader.bytes()));
  POZOR_RETURN_IF_ERROR(loader.Pack(options.huge_pages));
  return std::unique_ptr<Encoder>(new Encoder(std::move(model)));
} catch (const std::bad_alloc&) {
  return ResourceExhausted("memory: the system has too little for the model; free some");
}

}  // namespace pozor
