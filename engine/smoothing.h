// Preparing a product's weight for int8: smoothing and centring of its input, exact before
// rounding.
//
// With x' = (x - c) / s:  x W^T + b = x' W'^T + b',  W' = W s (input by input),  b' = b + W c.
// s moves range from inputs to weights (SmoothQuant, Xiao et al. 2023), with alpha = 0.6:
//   s_j = reach_j^0.6 / largest_j^0.4, divided by its geometric mean, within [1e-3, 1e3]
// where reach_j = max(|max - c|, |min - c|), c the mean, and largest_j = max |W_j| over all
// outputs.
#ifndef POZOR_ENGINE_SMOOTHING_H_
#define POZOR_ENGINE_SMOOTHING_H_

#include <cstddef>
#include <span>
#include <vector>

#include "engine/calibration.h"
#include "engine/linear.h"

namespace pozor {

// A product out of its packed form. Outputs are packed columns, those of padding included.
struct PlainProduct {
  size_t in = 0, out = 0;
  std::vector<float> weight;  // [out, in]
  std::vector<float> bias;    // [out]
  Activation activation = Activation::kNone;

  float* Row(size_t output) { return weight.data() + output * in; }
  const float* Row(size_t output) const { return weight.data() + output * in; }
};

// An absent layer gives an empty product.
PlainProduct Unpack(const Linear& f32);

struct Smoothing {
  std::vector<float> scale;   // s: [in]
  std::vector<float> centre;  // c: [in]
};

// For an input that all of `products` read.
Smoothing ChooseSmoothing(const ChannelStatistics& input, std::span<PlainProduct* const> products);

void ApplySmoothing(const Smoothing& smoothing, PlainProduct* product);

// The order in which FFN2 reads its inputs: by largest |x|, falling; equal ones by index.
std::vector<size_t> OrderByRange(const ChannelStatistics& input);

// Outputs `order` first to last; those beyond the order (padding) stay.
void PermuteOutputs(std::span<const size_t> order, PlainProduct* product);
void PermuteInputs(std::span<const size_t> order, PlainProduct* product);

}  // namespace pozor

#endif  // POZOR_ENGINE_SMOOTHING_H_
