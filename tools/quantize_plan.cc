#include "tools/quantize_plan.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>

#include "engine/precision_plan.h"

namespace pozor::tools {
namespace {

Status BadChoice(const std::string& choice, const std::string& why) {
  return InvalidArgument("--products: '" + choice + "' " + why +
                         "; write [LAYER.]PRODUCT=PRECISION, products qkv, attention, output, up, "
                         "down, precisions int8, bf16, f32");
}

// One "[LAYER.]PRODUCT=PRECISION"; in int8 and bf16 it is as the target's own plan has it.
Status ApplyChoice(const std::string& choice, const EncoderSpec& spec, PrecisionPlan* plan) {
  const size_t equals = choice.find('=');
  if (equals == std::string::npos) return BadChoice(choice, "has no '='");
  std::string product = choice.substr(0, equals);
  const std::string format = choice.substr(equals + 1);
  if (format != "int8" && format != "bf16" && format != "f32") {
    return BadChoice(choice, "names no precision");
  }
  size_t first = 0, last = plan->size();
  if (const size_t dot = product.find('.'); dot != std::string::npos) {
    const char* end = product.data() + dot;
    const auto parsed = std::from_chars(product.data(), end, first);
    if (parsed.ec != std::errc() || parsed.ptr != end || first >= plan->size()) {
      return BadChoice(choice, "names no layer of 0 to " + std::to_string(plan->size() - 1));
    }
    last = first + 1;
    product.erase(0, dot + 1);
  }
  const PrecisionPlan int8 = Int8Plan(spec), bf16 = Bf16Plan(spec);
  for (size_t kind = 0; kind < kProductKinds; ++kind) {
    if (product != ProductName(static_cast<ProductKind>(kind))) continue;
    for (size_t layer = first; layer < last; ++layer) {
      ProductChoice& chosen = (*plan)[layer].products[kind];
      if (format == "int8") chosen = int8[layer].products[kind];
      if (format == "bf16") chosen = bf16[layer].products[kind];
      if (format == "f32") chosen = {NumberFormat::kF32, "asked for"};
    }
    return {};
  }
  return BadChoice(choice, "names no product");
}

// What the gate puts a product in that loses too much in `format`. bf16 would do for any int8 one,
// but its bits depend on the CPU, which those of int8 and f32 do not: only a plan that has bf16
// anyhow gets more of it.
NumberFormat Promoted(QuantizeTarget target, NumberFormat format) {
  const bool to_bf16 = target == QuantizeTarget::kMixed && format == NumberFormat::kInt8;
  return to_bf16 ? NumberFormat::kBf16 : NumberFormat::kF32;
}

}  // namespace

Result<PrecisionPlan> MakePlan(QuantizeTarget target, const std::string& products,
                               const EncoderSpec& spec) {
  PrecisionPlan plan = target == QuantizeTarget::kInt8   ? Int8Plan(spec)
                       : target == QuantizeTarget::kBf16 ? Bf16Plan(spec)
                                                         : MixedPlan(spec);
  std::string rest = products;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    POZOR_RETURN_IF_ERROR(ApplyChoice(rest.substr(0, end), spec, &plan));
    rest.erase(0, end + 1);
  }
  CompletePlan(&plan);
  return plan;
}

bool PromoteWorst(QuantizeTarget target, std::span<const LayerSqnr> sqnr, PrecisionPlan* plan) {
  const NumberFormat lowest =
      HasFormat(*plan, NumberFormat::kInt8) ? NumberFormat::kInt8 : NumberFormat::kBf16;
  ProductChoice* chosen = nullptr;
  double worst = std::numeric_limits<double>::infinity();
  for (size_t layer = 0; layer < plan->size(); ++layer) {
    for (size_t kind = 0; kind < kProductKinds; ++kind) {
      ProductChoice& choice = (*plan)[layer].products[kind];
      const bool attention = static_cast<ProductKind>(kind) == ProductKind::kAttention;
      if (attention || choice.format != lowest || sqnr[layer][kind] >= worst) continue;
      worst = sqnr[layer][kind];
      chosen = &choice;
    }
  }
  if (chosen == nullptr) return false;
  char reason[64];
  std::snprintf(reason, sizeof reason, "promoted by the gate: SQNR %.1f dB", worst);
  *chosen = {Promoted(target, lowest), reason};
  CompletePlan(plan);
  return true;
}

}  // namespace pozor::tools
