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
  // [tokens], 1: sees and is seen by all tokens of its text, in models with global attention; or
  // empty: no token does.
  std::span<const uint8_t> globals = {};

  size_t texts() const { return starts.empty() ? 0 : starts.size() - 1; }
  size_t tokens() const { return ids.size(); }
  size_t length(size_t text) const { return static_cast<size_t>(starts[text + 1] - starts[text]); }
};

// Owning form, filled text by text.
struct TokenBatch {
  std::vector<int32_t> ids;
  std::vector<int32_t> types;
  std::vector<int32_t> starts = {0};
  std::vector<uint8_t> globals;

  size_t texts() const { return starts.size() - 1; }
  void EndText() { starts.push_back(static_cast<int32_t>(ids.size())); }
  void Clear() {
    ids.clear();
    types.clear();
    globals.clear();
    starts.assign(1, 0);
  }
  // Adds the texts of another batch. Types are all there or not at all, as are globals: a batch
  // without them gets zeros beside one with them.
  void Append(const RaggedBatch& batch) {
    const size_t before = ids.size();
    ids.insert(ids.end(), batch.ids.begin(), batch.ids.end());
    AppendTo(types, batch.types, before);
    AppendTo(globals, batch.globals, before);
    const int32_t base = starts.back();
    for (size_t i = 1; i < batch.starts.size(); ++i) starts.push_back(base + batch.starts[i]);
  }
  RaggedBatch View() const { return {ids, types, starts, globals}; }

 private:
  template <class T>
  void AppendTo(std::vector<T>& all, std::span<const T> added, size_t before) const {
    if (added.empty() && all.empty()) return;
    all.resize(before);
    all.insert(all.end(), added.begin(), added.end());
    all.resize(ids.size());
  }
};

}  // namespace pozor

#endif  // POZOR_ENGINE_BATCH_H_
