// Attention rows of one layer in the layouts in which transformers' Longformer returns them.
#ifndef POZOR_TOOLS_WINDOWED_ATTENTION_H_
#define POZOR_TOOLS_WINDOWED_ATTENTION_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pozor::tools {

struct AttentionRows {
  const float* weights = nullptr;  // [heads, tokens, tokens]
  size_t heads = 0;
  size_t tokens = 0;
  std::span<const int32_t> globals;  // global tokens, ascending, below `tokens`
};

// For each head and query the global keys, then those from `window` before to `window` after it;
// global keys among the latter, and all keys of global queries, are 0.
// [heads, tokens, globals + 2 * window + 1]
std::vector<float> WindowedLayout(const AttentionRows& rows, size_t window);

// For each head and key what the global queries give it, filled up with zeros to `length` keys.
// [heads, length, globals]
std::vector<float> GlobalLayout(const AttentionRows& rows, size_t length);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_WINDOWED_ATTENTION_H_
