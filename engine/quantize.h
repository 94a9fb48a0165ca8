// From an f32 encoder to one whose products run in int8.
#ifndef POZOR_ENGINE_QUANTIZE_H_
#define POZOR_ENGINE_QUANTIZE_H_

#include <cstddef>
#include <memory>

#include "engine/calibration.h"
#include "engine/encoder.h"
#include "engine/precision.h"
#include "pozor/status.h"

namespace pozor {

// The inputs of the feed-forward's second product with the largest calibrated range stand first and
// form a group of their own.
inline constexpr size_t kWideInputs = 64;
constexpr size_t DownSplit(size_t inputs) { return inputs > kWideInputs ? kWideInputs : 0; }

// How an int8 product's input is made of a row: row * scale + shift, where the row is what the norm
// in front of the product has before gamma and beta, or, without such a norm, the input itself.
struct SmoothInput {
  const float* scale = nullptr;  // [columns of the layer]
  const float* shift = nullptr;  // [columns of the layer]
};

// Consumes `encoder`, which must be in f32. The result depends on the weights, `calibration` and
// `precision` alone. Products in f32 keep their weights.
Result<std::unique_ptr<Encoder>> QuantizeEncoder(std::unique_ptr<Encoder> encoder,
                                                 const Calibration& calibration,
                                                 PrecisionPlan precision, size_t threads = 0);

}  // namespace pozor

#endif  // POZOR_ENGINE_QUANTIZE_H_
