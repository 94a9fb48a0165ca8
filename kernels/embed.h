// Gathers and sums embedding rows.
#ifndef POZOR_KERNELS_EMBED_H_
#define POZOR_KERNELS_EMBED_H_

#include <cstddef>
#include <cstdint>

namespace pozor {

// out[t] = (word[ids[t]] * word_scale + type[types[t]]) + position[positions[t]]
// Tables are row-major [rows, cols], any alignment; type and position may be null. Indices are the
// caller's to check. types may be null: row 0.
struct EmbedArgs {
  const float* word = nullptr;
  const float* position = nullptr;
  const float* type = nullptr;
  float word_scale = 1.0f;
  const int32_t* ids = nullptr;        // [tokens]
  const int32_t* positions = nullptr;  // [tokens]
  const int32_t* types = nullptr;      // [tokens] or null
  size_t tokens = 0;
  size_t cols = 0;
  float* out = nullptr;  // [tokens, cols]
  size_t out_stride = 0;
};
void EmbedSum(const EmbedArgs& args);

}  // namespace pozor

#endif  // POZOR_KERNELS_EMBED_H_
