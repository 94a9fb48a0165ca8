// A small table from words to their tokens: text is full of the same words.
#ifndef POZOR_MODELS_TEXT_WORD_CACHE_H_
#define POZOR_MODELS_TEXT_WORD_CACHE_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <vector>

#include "models/text/token_model.h"

namespace pozor {

// Ids that grow without being cleared first.
class IdBuffer {
 public:
  const int32_t* data() const { return data_.get(); }
  size_t size() const { return size_; }
  void Clear() { size_ = 0; }

  // Room for `count` more; some writes go beyond that by up to kSlack.
  int32_t* Room(size_t count) {
    if (size_ + count + kSlack > capacity_) Grow(size_ + count + kSlack);
    return data_.get() + size_;
  }
  void Advance(size_t count) { size_ += count; }
  void Push(int32_t id) {
    *Room(1) = id;
    ++size_;
  }

 private:
  static constexpr size_t kSlack = 8;
  void Grow(size_t needed) {
    const size_t capacity = std::max(needed, capacity_ * 2);
    std::unique_ptr<int32_t[]> larger(new int32_t[capacity]);
    if (size_ > 0) std::memcpy(larger.get(), data_.get(), size_ * sizeof(int32_t));
    data_ = std::move(larger);
    capacity_ = capacity;
  }

  std::unique_ptr<int32_t[]> data_;
  size_t size_ = 0, capacity_ = 0;
};

// Two-way associative; a word's whole text is compared, so a hit is always right. One thread's.
class WordCache {
 public:
  static constexpr size_t kKeyBytes = 32;
  static constexpr size_t kIds = 7;

  struct Entry {
    uint64_t key[4];  // the word, zero-padded
    uint16_t size;    // bytes of the word; 0: nothing here
    uint16_t count;   // of ids
    int32_t ids[kIds];
  };
  static_assert(sizeof(Entry) == 64, "one cache line");

  // Forgets everything unless it belongs to this owner already.
  void Own(uint64_t owner) {
    if (owner_ == owner) return;
    entries_.assign(kSets * 2, Entry{});
    owner_ = owner;
  }

  static size_t SetOf(const uint64_t (&key)[4]) {
    uint64_t hash = key[0] * 0x9E3779B97F4A7C15u;
    hash ^= (key[1] * 0xC2B2AE3D27D4EB4Fu) ^ (hash >> 32);
    hash ^= (key[2] * 0x165667B19E3779F9u) + (key[3] * 0xD6E8FEB86659FD93u);
    return (hash * 0x9E3779B97F4A7C15u) >> (64 - kSetBits);
  }
  // The same for keys of at most 16 and at most 8 bytes.
  static size_t SetOf(uint64_t first, uint64_t second) {
    uint64_t hash = first * 0x9E3779B97F4A7C15u;
    hash ^= (second * 0xC2B2AE3D27D4EB4Fu) ^ (hash >> 32);
    return (hash * 0x9E3779B97F4A7C15u) >> (64 - kSetBits);
  }

  const Entry* Find(size_t set, const uint64_t (&key)[4], size_t size) const {
    const Entry* entry = &entries_[set * 2];
    for (size_t way = 0; way < 2; ++way, ++entry) {
      if (entry->key[0] == key[0] && entry->size == size && entry->key[1] == key[1] &&
          entry->key[2] == key[2] && entry->key[3] == key[3]) {
        return entry;
      }
    }
    return nullptr;
  }

  const Entry* Find(size_t set, uint64_t first, uint64_t second, size_t size) const {
    const Entry* entry = &entries_[set * 2];
    if (entry->key[0] == first && entry->key[1] == second && entry->size == size) return entry;
    ++entry;
    if (entry->key[0] == first && entry->key[1] == second && entry->size == size) return entry;
    return nullptr;
  }

  // Keeps the tokens of a word unless there are too many; the older word of the set goes.
  void Insert(size_t set, const uint64_t (&key)[4], size_t size, const ModelToken* tokens,
              size_t count) {
    if (count > kIds) return;
    Entry* entry = &entries_[set * 2];
    entry[1] = entry[0];
    std::memcpy(entry->key, key, sizeof(key));
    entry->size = static_cast<uint16_t>(size);
    entry->count = static_cast<uint16_t>(count);
    for (size_t i = 0; i < count; ++i) entry->ids[i] = tokens[i].id;
  }

 private:
  static constexpr int kSetBits = 12;
  static constexpr size_t kSets = size_t{1} << kSetBits;  // two lines each: 512 KB

  std::vector<Entry> entries_;
  uint64_t owner_ = 0;
};

// Appends the ids of a word through the cache. False as TokenModel::Tokenize.
inline bool AppendWord(const TokenModel& model, std::string_view word, WordCache& cache,
                       ModelScratch& scratch, IdBuffer* ids) {
  uint64_t key[4] = {};
  size_t set = 0;
  const bool cached = word.size() <= WordCache::kKeyBytes;
  if (cached) {
    std::memcpy(key, word.data(), word.size());
    set = WordCache::SetOf(key);
    if (const WordCache::Entry* entry = cache.Find(set, key, word.size())) {
      std::memcpy(ids->Room(WordCache::kIds), entry->ids, sizeof(entry->ids));
      ids->Advance(entry->count);
      return true;
    }
  }
  scratch.tokens.clear();
  if (!model.Tokenize(word, scratch)) return false;
  const size_t count = scratch.tokens.size();
  int32_t* out = ids->Room(count);
  for (size_t i = 0; i < count; ++i) out[i] = scratch.tokens[i].id;
  ids->Advance(count);
  if (cached) cache.Insert(set, key, word.size(), scratch.tokens.data(), count);
  return true;
}

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_WORD_CACHE_H_
