#include "tools/quantize_plan.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/precision_plan.h"

namespace pozor::tools {
namespace {

Status BadChoice(const std::string& choice, const std::string& why) {
  return InvalidArgument("--products: '" + choice + "' " + why +
                         "; write [LAYER[.PART].]PRODUCT=PRECISION, products qkv, attention, "
                         "output, up, down, precisions int8, bf16, f32");
}

// One "[LAYER[.PART].]PRODUCT=PRECISION".
struct Choice {
  std::string text;
  std::string layer, part;  // as they are written, or empty
  ProductKind kind = ProductKind::kQkv;
  NumberFormat format = NumberFormat::kF32;
};

Result<Choice> ParseChoice(const std::string& text) {
  Choice choice;
  choice.text = text;
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return BadChoice(text, "has no '='");
  std::string product = text.substr(0, equals);
  for (std::string* number : {&choice.layer, &choice.part}) {
    const size_t dot = product.find('.');
    if (dot == std::string::npos) break;
    *number = product.substr(0, dot);
    if (number->empty()) return BadChoice(text, "names no layer");
    product.erase(0, dot + 1);
  }
  const auto names = [](std::string_view wanted, auto name_of, auto count, auto* found) {
    for (size_t i = 0; i < count; ++i) {
      const auto value = static_cast<std::remove_reference_t<decltype(*found)>>(i);
      if (name_of(value) != wanted) continue;
      *found = value;
      return true;
    }
    return false;
  };
  constexpr size_t kFormats = 3;
  if (!names(text.substr(equals + 1), NumberFormatName, kFormats, &choice.format)) {
    return BadChoice(text, "names no precision");
  }
  if (!names(product, ProductName, kProductKinds, &choice.kind)) {
    return BadChoice(text, "names no product");
  }
  return choice;
}

// A number below `count`.
bool ParseIndex(const std::string& text, size_t count, size_t* index) {
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, *index);
  return parsed.ec == std::errc() && parsed.ptr == end && *index < count;
}

// The places in EncoderSpec::layers that have the product.
Result<std::vector<size_t>> PlacesOf(const Choice& choice, const EncoderSpec& spec) {
  size_t first = 0, last = spec.layers.size();
  if (!choice.layer.empty()) {
    size_t layer = 0, part = 0;
    if (!ParseIndex(choice.layer, spec.layer_count(), &layer)) {
      return BadChoice(choice.text,
                       "names no layer of 0 to " + std::to_string(spec.layer_count() - 1));
    }
    first = spec.AttentionPlace(layer);
    const size_t parts = spec.PartsOf(layer);
    if (!choice.part.empty() && !ParseIndex(choice.part, parts, &part)) {
      return BadChoice(choice.text, parts == 1 ? "names a part, and the layers have none"
                                               : "names no part of 0 to " +
                                                     std::to_string(parts - 1) + " of the layer");
    }
    last = first + (choice.part.empty() ? parts : part + 1);
    first += part;
  }
  const bool in_every_part = choice.kind == ProductKind::kUp || choice.kind == ProductKind::kDown;
  std::vector<size_t> places;
  for (size_t place = first; place < last; ++place) {
    if (in_every_part || !spec.layers[place].continues) places.push_back(place);
  }
  if (places.empty()) return BadChoice(choice.text, "names a part without attention");
  return places;
}

// In int8 and bf16 a product is as the target's own plan has it.
Status ApplyChoice(const Choice& choice, const EncoderSpec& spec, PrecisionPlan* plan) {
  const PrecisionPlan own = choice.format == NumberFormat::kInt8   ? Int8Plan(spec)
                            : choice.format == NumberFormat::kBf16 ? Bf16Plan(spec)
                                                                   : PrecisionPlan();
  POZOR_TRY(const std::vector<size_t> places, PlacesOf(choice, spec));
  bool any = false;
  for (const size_t place : places) {
    ProductChoice& chosen = (*plan)[place][choice.kind];
    chosen = own.empty() ? ProductChoice{NumberFormat::kF32, "asked for"} : own[place][choice.kind];
    any = any || chosen.format == choice.format;
  }
  if (any) return {};
  return BadChoice(choice.text, "cannot be: " + (*plan)[places.front()][choice.kind].reason);
}

// Whether attention that was asked for in int8 is so after CompletePlan.
Status CheckAttention(const Choice& choice, const EncoderSpec& spec, const PrecisionPlan& asked,
                      const PrecisionPlan& plan) {
  if (choice.kind != ProductKind::kAttention || choice.format != NumberFormat::kInt8) return {};
  POZOR_TRY(const std::vector<size_t> places, PlacesOf(choice, spec));
  const auto has_int8 = [&](const PrecisionPlan& of) {
    return std::any_of(places.begin(), places.end(),
                       [&](size_t place) { return of[place].IsInt8(choice.kind); });
  };
  if (has_int8(plan) || !has_int8(asked)) return {};
  return BadChoice(choice.text, "cannot be where qkv is not in int8");
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
  std::vector<Choice> choices;
  std::string rest = products;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(','), rest.size());
    POZOR_TRY(Choice choice, ParseChoice(rest.substr(0, end)));
    POZOR_RETURN_IF_ERROR(ApplyChoice(choice, spec, &plan));
    choices.push_back(std::move(choice));
    rest.erase(0, end + 1);
  }
  const PrecisionPlan asked = plan;
  CompletePlan(&plan);
  for (const Choice& choice : choices) {
    POZOR_RETURN_IF_ERROR(CheckAttention(choice, spec, asked, plan));
  }
  return plan;
}

size_t CountProducts(const EncoderSpec& spec) {
  size_t count = 0;
  for (const LayerSpec& layer : spec.layers) count += layer.continues ? 2 : 4;
  return count;
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
