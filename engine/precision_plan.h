// What a precision plan comes to: its formats, its name, and what layers share under it.
#ifndef POZOR_ENGINE_PRECISION_PLAN_H_
#define POZOR_ENGINE_PRECISION_PLAN_H_

#include <cstddef>
#include <string_view>

#include "engine/precision.h"
#include "engine/spec.h"
#include "kernels/pack.h"

namespace pozor {

// How the weights of a product in this format are packed.
PackedLayout LayoutOf(NumberFormat format);

NumberFormat FormatOf(const PrecisionPlan& plan, size_t layer, ProductKind kind);

bool HasFormat(const PrecisionPlan& plan, NumberFormat format);

// The lowest format of a product, which is what a user asks for: int8 (others may be in bf16 or
// f32), bf16, bf16x3 or f32. What each product runs in is the plan's to say.
NumberFormat LowestFormat(const PrecisionPlan& plan);

// The name of that.
std::string_view PrecisionName(const PrecisionPlan& plan);

// Int8Plan, but for the feed-forward's second product, which loses most in int8: bf16.
PrecisionPlan MixedPlan(const EncoderSpec& spec);

// True if layer `l` repeats an earlier one (LayerSpec::same_as) with arrays and all: in the same
// formats, none of them int8, whose arrays depend on the layer's own calibration.
bool RepeatsArrays(const EncoderSpec& spec, const PrecisionPlan& plan, size_t l);

}  // namespace pozor

#endif  // POZOR_ENGINE_PRECISION_PLAN_H_
