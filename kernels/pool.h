// Pooling of a text's token rows to one vector, and vector normalisation.
#ifndef POZOR_KERNELS_POOL_H_
#define POZOR_KERNELS_POOL_H_

#include <cstddef>
#include <cstdint>

namespace pozor {

enum class Pooling : uint8_t {
  kCls,           // first row
  kMax,           // element-wise maximum
  kMean,          // sum / n
  kMeanSqrt,      // sum / sqrt(n)
  kWeightedMean,  // sum (i + 1) x_i / sum (i + 1), i the absolute row
  kLastToken,     // last row
};

// Rows [first, tokens) of `x` [tokens, cols] take part, in ascending order; none: zeros.
// Any alignment. out: [cols].
void Pool(Pooling pooling, const float* x, size_t stride, size_t first, size_t tokens, size_t cols,
          float* out);

// x / max(|x|, 1e-12), in place.
void L2Normalize(float* x, size_t cols);

// sum a_i b_i, |a| and the like, with the fixed reduction order of all kernels.
float Dot(const float* a, const float* b, size_t n);

}  // namespace pozor

#endif  // POZOR_KERNELS_POOL_H_
