#include "engine/precision_plan.h"

namespace pozor {

PackedLayout LayoutOf(NumberFormat format) {
  switch (format) {
    case NumberFormat::kF32:
      return PackedLayout::kF32x16;
    case NumberFormat::kBf16:
      return PackedLayout::kBf16x16x2;
    case NumberFormat::kInt8:
      return PackedLayout::kS8x16x4;
    case NumberFormat::kBf16x3:
      return PackedLayout::kSplitBf16x16x2;
  }
  return PackedLayout::kF32x16;
}

NumberFormat FormatOf(const PrecisionPlan& plan, size_t layer, ProductKind kind) {
  return plan.empty() ? NumberFormat::kF32 : plan[layer][kind].format;
}

bool HasFormat(const PrecisionPlan& plan, NumberFormat format) {
  for (const LayerPrecision& layer : plan) {
    for (const ProductChoice& choice : layer.products) {
      if (choice.format == format) return true;
    }
  }
  return false;
}

NumberFormat LowestFormat(const PrecisionPlan& plan) {
  for (const NumberFormat format :
       {NumberFormat::kInt8, NumberFormat::kBf16, NumberFormat::kBf16x3}) {
    if (HasFormat(plan, format)) return format;
  }
  return NumberFormat::kF32;
}

std::string_view PrecisionName(const PrecisionPlan& plan) {
  return NumberFormatName(LowestFormat(plan));
}

PrecisionPlan MixedPlan(const EncoderSpec& spec) {
  PrecisionPlan plan = Int8Plan(spec);
  for (LayerPrecision& layer : plan) {
    layer[ProductKind::kDown] = {NumberFormat::kBf16, "mixed: loses most in int8"};
  }
  return plan;
}

bool RepeatsArrays(const EncoderSpec& spec, const PrecisionPlan& plan, size_t l) {
  const size_t source = spec.layers[l].same_as;
  if (source == kNone) return false;
  if (plan.empty()) return true;
  for (size_t kind = 0; kind < kProductKinds; ++kind) {
    const NumberFormat format = plan[l].products[kind].format;
    if (format == NumberFormat::kInt8 || plan[source].products[kind].format != format) return false;
  }
  return true;
}

}  // namespace pozor
