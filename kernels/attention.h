// Scaled dot-product attention of one text and one head: softmax(Q K^T + bias) V.
//
// Texts of up to kTwoPassKeys keys take an exact two-pass softmax per query block; longer ones a
// streaming softmax over blocks of kTwoPassKeys keys from key 0. The choice looks at the text's own
// length only, and no query's result depends on the queries beside it.
#ifndef POZOR_KERNELS_ATTENTION_H_
#define POZOR_KERNELS_ATTENTION_H_

#include <cstddef>
#include <cstdint>

namespace pozor {

inline constexpr size_t kTwoPassKeys = 512;
inline constexpr size_t kQueryBlock = 64;
inline constexpr size_t kNoWindow = static_cast<size_t>(-1);

struct AttentionArgs {
  // Rows of this (text, head), as the split GEMM epilogue writes them. head_stride is head_dim
  // rounded up to 16; the padding holds zeros. Q is already scaled. 64-byte aligned.
  const float* q = nullptr;  // [tokens, head_stride]
  const float* k = nullptr;  // [tokens, head_stride]
  const float* v = nullptr;  // [tokens, head_stride]
  size_t head_dim = 0;
  size_t head_stride = 0;
  size_t tokens = 0;  // queries and keys of the text

  // Queries to compute: [query_begin, query_end). Results do not depend on how a text is cut.
  size_t query_begin = 0;
  size_t query_end = 0;

  // Query i sees key j if  i - window <= j <= i + window  and, when causal, j <= i.
  size_t window = kNoWindow;
  bool causal = false;

  // Added to the scores: relative_bias[j - i], defined for |j - i| < tokens; or null.
  const float* relative_bias = nullptr;

  // Scores of content against position (BERT's relative_key, DeBERTa), either null. Added are, with
  // b = position_index[i - j], which is defined for |i - j| < tokens:
  //   query_positions[i * position_stride + b] + key_positions[j * position_stride + b]
  const float* query_positions = nullptr;  // [tokens, position_stride]
  const float* key_positions = nullptr;    // [tokens, position_stride]
  size_t position_stride = 0;              // below 2^25
  const int32_t* position_index = nullptr;

  // Keys that every query sees, also outside its window (Longformer's global tokens).
  const int32_t* global_keys = nullptr;  // [global_count], ascending places in the text
  size_t global_count = 0;
  const float* global_k = nullptr;  // [global_count, head_stride]: their rows of K and V, 64-byte
  const float* global_v = nullptr;  // aligned

  // Context rows, any alignment: row i at out + i * out_stride, head_dim columns are written.
  float* out = nullptr;
  size_t out_stride = 0;
};

// Floats of scratch that one call needs, 64-byte aligned.
size_t AttentionScratchFloats(size_t tokens, size_t head_dim);

void Attention(const AttentionArgs& args, float* scratch);

// The softmax rows themselves, for those who want to look: weights[(i - query_begin) * stride + j],
// zero where query i does not see key j. `out` and `v` are not used.
void AttentionWeights(const AttentionArgs& args, float* scratch, float* weights, size_t stride);

}  // namespace pozor

#endif  // POZOR_KERNELS_ATTENTION_H_
