// Normalisation and row quantisation in one pass, with smoothed channels for the product behind it.
#ifndef POZOR_KERNELS_NORM_QUANTIZE_H_
#define POZOR_KERNELS_NORM_QUANTIZE_H_

#include "kernels/norm.h"
#include "kernels/quantize.h"

namespace pozor {

// n = (s - mean(s)) / sqrt(var(s) + epsilon), as in NormArgs; two results of it:
//   norm.out = n * gamma + beta, f32, the same bits as LayerNorm gives; skipped if norm.out is null
//   quantised rows of  n * smooth_gamma + smooth_beta:  gamma / s and (beta - c) / s
// norm.out may be norm.x. With norm.out null there can be no residual.
struct NormQuantizeArgs {
  NormArgs norm;
  const float* smooth_gamma = nullptr;  // [cols], any alignment
  const float* smooth_beta = nullptr;   // [cols] or null
  QuantizedRows out;                    // one group
};
void LayerNormQuantize(const NormQuantizeArgs& args);

// The same with n = s / sqrt(mean(s^2) + epsilon); norm.beta is ignored.
void RmsNormQuantize(const NormQuantizeArgs& args);

}  // namespace pozor

#endif  // POZOR_KERNELS_NORM_QUANTIZE_H_
