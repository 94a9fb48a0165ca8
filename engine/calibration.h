// What the inputs of an encoder's products look like on a text: the f32 encoder runs over it, and
// the range and mean of every input channel are kept.
#ifndef POZOR_ENGINE_CALIBRATION_H_
#define POZOR_ENGINE_CALIBRATION_H_

#include <array>
#include <cstddef>
#include <vector>

#include "engine/batch.h"
#include "engine/encoder.h"
#include "engine/precision.h"
#include "kernels/types.h"
#include "pozor/status.h"

namespace pozor {

// Channels of one input over all rows seen.
struct ChannelStatistics {
  std::vector<float> min, max;  // [channels]
  std::vector<double> sum;      // [channels]
  size_t rows = 0;

  void Add(MatView<const float> x);
  void Add(const ChannelStatistics& other);

  float Mean(size_t channel) const {
    return rows == 0 ? 0.0f : static_cast<float>(sum[channel] / static_cast<double>(rows));
  }
  // max |x|
  float Largest(size_t channel) const;
};

// By ProductKind; attention has no entry of its own.
struct LayerStatistics {
  std::array<ChannelStatistics, kProductKinds> products;
  std::vector<ChannelStatistics> experts;  // of each one's second product, in place of kDown

  ChannelStatistics& operator[](ProductKind kind) { return products[static_cast<size_t>(kind)]; }
  const ChannelStatistics& operator[](ProductKind kind) const {
    return products[static_cast<size_t>(kind)];
  }
  void Add(const LayerStatistics& other);
};
using Calibration = std::vector<LayerStatistics>;  // [layers]

// The encoder must be in f32. The result does not depend on the number of threads. Corrupt if an
// input is not finite.
Result<Calibration> Calibrate(const Encoder& encoder, const RaggedBatch& texts, size_t threads);

// Tokens for a model without a tokenizer: ids of the whole vocabulary in a fixed random order.
TokenBatch RandomCalibrationTokens(const EncoderSpec& spec, size_t longest_text);

}  // namespace pozor

#endif  // POZOR_ENGINE_CALIBRATION_H_
