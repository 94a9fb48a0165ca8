// Attention of one text and one head with int8 products.
//
// Q, K and V rows become integers in [-127, 127] with a scale of their own (max|x| / 127, rne):
//   score = float(sum_d q8 k8) * sq[i] * sk[j] (+ biases);  e = exp(score - rowmax);
//   sum = sum_j e;  p = rne(16383 e sv[j] / max sv)
//   context = float(sum_j p v8) * (max sv / 16383 / sum)
// Q comes already scaled, as for Attention(). Integer sums are exact. Texts of more than kExactKeys
// keys take a streaming softmax over blocks of kExactKeys keys from key 0, each with a `max sv` of
// its own; the choice looks at the text's own length only. A row with a NaN or an infinity gets the
// scale NaN; rows below 1e-35 count as zero.
#ifndef POZOR_KERNELS_ATTENTION_S8_H_
#define POZOR_KERNELS_ATTENTION_S8_H_

#include <cstddef>

#include "kernels/attention.h"

namespace pozor {

// Integer sums of 14-bit weights and 7-bit values stay below 2^31 up to here.
inline constexpr size_t kExactKeys = 1024;

// Floats of scratch that one call needs, 64-byte aligned.
size_t AttentionS8ScratchFloats(size_t tokens, size_t head_dim);

// Arguments as for Attention(), but no global keys. Keys and values of the whole text are read
// whatever the window.
void AttentionS8(const AttentionArgs& args, float* scratch);

// The softmax rows e / sum, as AttentionWeights() gives them.
void AttentionS8Weights(const AttentionArgs& args, float* scratch, float* weights, size_t stride);

}  // namespace pozor

#endif  // POZOR_KERNELS_ATTENTION_S8_H_
