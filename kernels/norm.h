// Row normalisations. Biased variance, two passes, true square root and division.
#ifndef POZOR_KERNELS_NORM_H_
#define POZOR_KERNELS_NORM_H_

#include <cstddef>

namespace pozor {

// out[r] = (s - mean(s)) / sqrt(var(s) + epsilon) * gamma + beta  with  s = x[r] + residual[r].
// residual and beta may be null; out may be x or residual. Any alignment. Strides in floats.
struct NormArgs {
  const float* x = nullptr;  // [rows, cols]
  size_t x_stride = 0;
  const float* residual = nullptr;  // [rows, cols] or null
  size_t residual_stride = 0;
  const float* gamma = nullptr;     // [cols]
  const float* beta = nullptr;      // [cols] or null
  const float* shortcut = nullptr;  // [rows, cols] or null, may be out; RmsNorm only
  size_t shortcut_stride = 0;
  float epsilon = 0;
  size_t rows = 0;
  size_t cols = 0;
  float* out = nullptr;  // [rows, cols]
  size_t out_stride = 0;
};
void LayerNorm(const NormArgs& args);

// out[r] = s / sqrt(mean(s^2) + epsilon) * gamma + shortcut[r] (beta ignored; residual or shortcut
// may be out, not both).
void RmsNorm(const NormArgs& args);

// out[r] = x[r] * gamma + beta (residual, shortcut and epsilon ignored).
void AffineNorm(const NormArgs& args);

}  // namespace pozor

#endif  // POZOR_KERNELS_NORM_H_
