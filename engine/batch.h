// Ragged batches: texts of any lengths one after another, without padding.
#ifndef POZOR_ENGINE_BATCH_H_
#define POZOR_ENGINE_BATCH_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pozor {

// View of `texts` token sequences. Text i owns tokens [starts[i], starts[i + 1]).
struct RaggedBatch {
  std::span<const int32_t> ids;     // [tokens]
  std::span<const int32_t> types;   // [tokens], or empty: all 0
  std::span<const int32_t> starts;  // [texts + 1]

  size_t texts() const { return starts.empty() ? 0 : starts.size() - 1; }
  size_t tokens() const { return ids.size(); }
  size_t length(size_t text) const { return static_cast<size_t>(starts[text + 1] - starts[text]); }
};

// Owning form, filled text by text.
struct TokenBatch {
  std::vector<int32_t> ids;
  std::vector<int32_t> types;
  std::vector<int32_t> starts = {0};

  size_t texts() const { return starts.size() - 1; }
  void EndText() { starts.push_back(static_cast<int32_t>(ids.size())); }
  void Clear() {
    ids.clear();
    types.clear();
    starts.assign(1, 0);
  }
  RaggedBatch View() const { return {ids, types, starts}; }
};

}  // namespace pozor

#endif  // POZOR_ENGINE_BATCH_H_
