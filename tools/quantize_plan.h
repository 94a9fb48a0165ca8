// Which products pozor quantize puts in which format.
#ifndef POZOR_TOOLS_QUANTIZE_PLAN_H_
#define POZOR_TOOLS_QUANTIZE_PLAN_H_

#include <span>
#include <string>

#include "engine/precision.h"
#include "engine/sqnr.h"
#include "pozor/status.h"
#include "tools/quantize.h"

namespace pozor::tools {

// The target's plan with `products` ("down=bf16,5.qkv=f32") as they say; "5.1.up=f32" names a part
// of a layer that has some. InvalidArgument names what is wrong with them, or does not exist in
// this encoder.
Result<PrecisionPlan> MakePlan(QuantizeTarget target, const std::string& products,
                               const EncoderSpec& spec);

// Products with weights: of every layer Q, K and V together, the output, up and down.
size_t CountProducts(const EncoderSpec& spec);

// Puts the product whose input has the lowest signal to noise, among those in the lowest precision
// that is left, in a better one. False if there is none.
bool PromoteWorst(QuantizeTarget target, std::span<const LayerSqnr> sqnr, PrecisionPlan* plan);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_QUANTIZE_PLAN_H_
