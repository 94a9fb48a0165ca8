#include "engine/precision.h"

namespace pozor {

std::string_view NumberFormatName(NumberFormat format) {
  switch (format) {
    case NumberFormat::kF32:
      return "f32";
    case NumberFormat::kBf16:
      return "bf16";
    case NumberFormat::kInt8:
      return "int8";
  }
  return "?";
}

std::string_view ProductName(ProductKind kind) {
  switch (kind) {
    case ProductKind::kQkv:
      return "qkv";
    case ProductKind::kAttention:
      return "attention";
    case ProductKind::kOutput:
      return "output";
    case ProductKind::kUp:
      return "up";
    case ProductKind::kDown:
      return "down";
  }
  return "?";
}

PrecisionPlan Int8Plan(const EncoderSpec& spec) {
  LayerPrecision layer;
  for (ProductChoice& choice : layer.products) {
    choice = {NumberFormat::kInt8, "exact int32 sums; scales a row and a column"};
  }
  layer[ProductKind::kAttention].reason = "exact int32 sums; scales a row and head, P with 14 bits";
  return PrecisionPlan(spec.layers.size(), layer);
}

void CompletePlan(PrecisionPlan* plan) {
  for (LayerPrecision& layer : *plan) {
    if (layer.IsInt8(ProductKind::kQkv) || !layer.IsInt8(ProductKind::kAttention)) continue;
    layer[ProductKind::kAttention] = {NumberFormat::kF32, "as Q, K and V"};
  }
}

}  // namespace pozor
