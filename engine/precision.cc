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
    case NumberFormat::kBf16x3:
      return "bf16x3";
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

bool KeysShiftFreely(const EncoderSpec&, const LayerSpec& layer) {
  return layer.rotary == kNone && !layer.distances.present() && !layer.key_norm.gamma.present() &&
         !layer.global_query.weight.present() && !layer.position_query.weight.present();
}

namespace {

void LeaveAttention(LayerPrecision* layer) {
  for (const ProductKind kind :
       {ProductKind::kQkv, ProductKind::kAttention, ProductKind::kOutput}) {
    (*layer)[kind] = {NumberFormat::kF32, "a part without attention"};
  }
}

// What is no product of the plan, and runs in f32 beside those that are.
void NoteBeside(const EncoderSpec& spec, PrecisionPlan* plan) {
  for (size_t l = 0; l < plan->size(); ++l) {
    const LayerSpec& layer = spec.layers[l];
    if (layer.position_key.weight.present() || layer.position_query.weight.present()) {
      (*plan)[l][ProductKind::kAttention].reason += "; scores of positions in f32";
    }
    if (layer.experts.count != 0) {
      (*plan)[l][ProductKind::kUp].reason += "; experts are chosen in f32";
    }
  }
  if (spec.convolution.linear.weight.present()) {
    plan->front()[ProductKind::kDown].reason += "; the convolution after it in f32";
  }
}

}  // namespace

PrecisionPlan Int8Plan(const EncoderSpec& spec) {
  PrecisionPlan plan(spec.layers.size());
  for (size_t l = 0; l < plan.size(); ++l) {
    for (ProductChoice& choice : plan[l].products) {
      choice = {NumberFormat::kInt8, "exact int32 sums; scales a row and a column"};
    }
    ProductChoice& attention = plan[l][ProductKind::kAttention];
    attention.reason = "exact int32 sums; scales a row and head, P with 14 bits";
    if (spec.layers[l].continues) LeaveAttention(&plan[l]);
    if (spec.bottleneck != 0 && !spec.layers[l].continues) {
      plan[l][ProductKind::kQkv] = {NumberFormat::kF32, "reads rows of more than one width"};
      attention = {NumberFormat::kF32, "as Q, K and V"};
    }
    if (KeysShiftFreely(spec, spec.layers[l])) continue;
    attention = {NumberFormat::kF32, "keys that depend on positions cannot be centred"};
  }
  NoteBeside(spec, &plan);
  return plan;
}

void CompletePlan(PrecisionPlan* plan) {
  for (LayerPrecision& layer : *plan) {
    if (layer.IsInt8(ProductKind::kQkv) || !layer.IsInt8(ProductKind::kAttention)) continue;
    layer[ProductKind::kAttention] = {NumberFormat::kF32, "as Q, K and V"};
  }
}

namespace {

// Every product with weights as `choice` says.
PrecisionPlan WeightsPlan(const EncoderSpec& spec, const ProductChoice& choice) {
  LayerPrecision layer;
  layer.products.fill(choice);
  layer[ProductKind::kAttention] = {NumberFormat::kF32, "no weights"};
  PrecisionPlan plan(spec.layers.size(), layer);
  NoteBeside(spec, &plan);
  for (size_t l = 0; l < plan.size(); ++l) {
    if (spec.layers[l].continues) LeaveAttention(&plan[l]);
  }
  return plan;
}

}  // namespace

PrecisionPlan Bf16Plan(const EncoderSpec& spec) {
  return WeightsPlan(spec, {NumberFormat::kBf16, "weights rounded to bf16; sums in f32"});
}

bool CanHavePlan(const EncoderSpec& spec, const PrecisionPlan& plan) {
  const PrecisionPlan int8 = Int8Plan(spec), bf16 = Bf16Plan(spec);
  if (plan.size() != int8.size()) return false;
  for (size_t l = 0; l < plan.size(); ++l) {
    for (size_t kind = 0; kind < kProductKinds; ++kind) {
      const NumberFormat format = plan[l].products[kind].format;
      if (format != NumberFormat::kF32 && format != int8[l].products[kind].format &&
          format != bf16[l].products[kind].format) {
        return false;
      }
    }
    if (plan[l].IsInt8(ProductKind::kAttention) && !plan[l].IsInt8(ProductKind::kQkv)) return false;
  }
  return true;
}

PrecisionPlan Bf16x3Plan(const EncoderSpec& spec, bool runs) {
  if (!runs) return WeightsPlan(spec, {NumberFormat::kF32, "bf16x3 needs AMX; f32 in its place"});
  return WeightsPlan(spec, {NumberFormat::kBf16x3, "values in two bf16 parts; sums in f32"});
}

}  // namespace pozor
