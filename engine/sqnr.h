// How much of a product's input survives its bytes.
#ifndef POZOR_ENGINE_SQNR_H_
#define POZOR_ENGINE_SQNR_H_

#include <array>
#include <vector>

#include "engine/batch.h"
#include "engine/calibration.h"
#include "engine/encoder.h"
#include "engine/precision.h"
#include "pozor/status.h"

namespace pozor {

// Signal to quantisation noise in decibels, 10 log10(sum x'^2 / sum (x' - bytes)^2) over all rows
// and channels of the smoothed input x', by ProductKind; 0 for attention, which has no such input.
using LayerSqnr = std::array<double, kProductKinds>;

// Of each layer of an f32 encoder, quantised as QuantizeEncoder would by `calibration`.
Result<std::vector<LayerSqnr>> MeasureSqnr(const Encoder& encoder, const Calibration& calibration,
                                           const RaggedBatch& texts);

}  // namespace pozor

#endif  // POZOR_ENGINE_SQNR_H_
