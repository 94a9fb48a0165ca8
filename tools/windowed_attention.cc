#include "tools/windowed_attention.h"

#include <algorithm>

namespace pozor::tools {

std::vector<float> WindowedLayout(const AttentionRows& rows, size_t window) {
  std::vector<bool> is_global(rows.tokens);
  for (const int32_t token : rows.globals) is_global[static_cast<size_t>(token)] = true;
  const size_t columns = rows.globals.size() + 2 * window + 1;
  std::vector<float> layout(rows.heads * rows.tokens * columns);
  for (size_t row = 0; row < rows.heads * rows.tokens; ++row) {
    const size_t query = row % rows.tokens;
    if (is_global[query]) continue;
    const float* weights = rows.weights + row * rows.tokens;
    float* out = layout.data() + row * columns;
    for (const int32_t token : rows.globals) *out++ = weights[token];
    for (size_t i = 0; i <= 2 * window; ++i) {
      const size_t key = query + i - window;  // wraps around below 0
      if (key < rows.tokens && !is_global[key]) out[i] = weights[key];
    }
  }
  return layout;
}

std::vector<float> GlobalLayout(const AttentionRows& rows, size_t length) {
  const size_t columns = rows.globals.size();
  std::vector<float> layout(rows.heads * length * columns);
  for (size_t head = 0; head < rows.heads; ++head) {
    for (size_t key = 0; key < std::min(length, rows.tokens); ++key) {
      for (size_t g = 0; g < columns; ++g) {
        const size_t query = head * rows.tokens + static_cast<size_t>(rows.globals[g]);
        layout[(head * length + key) * columns + g] = rows.weights[query * rows.tokens + key];
      }
    }
  }
  return layout;
}

}  // namespace pozor::tools
