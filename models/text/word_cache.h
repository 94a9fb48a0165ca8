// A small table from words to their tokens: text is full of the same words.
#ifndef POZOR_MODELS_TEXT_WORD_CACHE_H_
#define POZOR_MODELS_TEXT_WORD_CACHE_H_

#include <algorithm>
#include <array>
#include <bit>
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

// Two-way associative; a word's whole text is compared, so a hit is always right. One thread's. It
// starts small and grows while new words keep coming.
class WordCache {
 public:
  static constexpr size_t kKeyBytes = 32;
  static constexpr size_t kIds = 7;
  using Key = std::array<uint64_t, 4>;  // the word, zero-padded

  struct Entry {
    Key key{};
    uint16_t size = 0;   // bytes of the word; 0: nothing here
    uint16_t count = 0;  // of ids
    int32_t ids[kIds] = {};
  };
  static_assert(sizeof(Entry) == 64, "one cache line");

  // Forgets everything unless it belongs to this owner already.
  void Own(uint64_t owner) {
    if (owner_ == owner) return;
    owner_ = owner;
    Resize(kFirstSetBits);
  }

  static uint64_t Hash(const Key& key) {
    uint64_t hash = key[0] * 0x9E3779B97F4A7C15u;
    hash ^= (key[1] * 0xC2B2AE3D27D4EB4Fu) ^ (hash >> 32);
    hash ^= (key[2] * 0x165667B19E3779F9u) + (key[3] * 0xD6E8FEB86659FD93u);
    return hash * 0x9E3779B97F4A7C15u;
  }
  // The same for keys of at most 16 bytes.
  static uint64_t Hash(uint64_t first, uint64_t second) {
    uint64_t hash = first * 0x9E3779B97F4A7C15u;
    hash ^= (second * 0xC2B2AE3D27D4EB4Fu) ^ (hash >> 32);
    return hash * 0x9E3779B97F4A7C15u;
  }

  const Entry* Find(uint64_t hash, const Key& key, size_t size) const {
    const Entry* entry = SetAt(hash);
    if (Same(entry->key, key) && entry->size == size) return entry;
    ++entry;
    return Same(entry->key, key) && entry->size == size ? entry : nullptr;
  }
  const Entry* Find(uint64_t hash, uint64_t first, uint64_t second, size_t size) const {
    const Entry* entry = SetAt(hash);
    if (entry->key[0] == first && entry->key[1] == second && entry->size == size) return entry;
    ++entry;
    if (entry->key[0] == first && entry->key[1] == second && entry->size == size) return entry;
    return nullptr;
  }

  // Keeps the tokens of a word unless there are too many; the older word of its place goes.
  void Insert(uint64_t hash, const Key& key, size_t size, const ModelToken* tokens, size_t count) {
    if (count > kIds) return;
    if (++inserted_ > entries_.size() && set_bits_ < kLastSetBits) Resize(set_bits_ + 2);
    Entry entry{key, static_cast<uint16_t>(size), static_cast<uint16_t>(count), {}};
    for (size_t i = 0; i < count; ++i) entry.ids[i] = tokens[i].id;
    Put(hash, entry);
  }

 private:
  static constexpr int kFirstSetBits = 9;  // 64 KB
  static constexpr int kLastSetBits = 13;  // 1 MB

  // Quicker than a call of memcmp, which == is.
  static bool Same(const Key& a, const Key& b) {
    return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])) == 0;
  }

  const Entry* SetAt(uint64_t hash) const { return &entries_[(hash >> (64 - set_bits_)) * 2]; }

  void Put(uint64_t hash, const Entry& entry) {
    Entry* set = &entries_[(hash >> (64 - set_bits_)) * 2];
    set[1] = set[0];
    set[0] = entry;
  }

  void Resize(int set_bits) {
    std::vector<Entry> old;
    if (set_bits > set_bits_) old.swap(entries_);
    set_bits_ = set_bits;
    inserted_ = 0;
    entries_.assign(size_t{2} << set_bits, Entry{});
    for (const Entry& entry : old) {
      if (entry.size > 0) Put(Hash(entry.key), entry);
    }
  }

  std::vector<Entry> entries_;
  int set_bits_ = kLastSetBits;
  size_t inserted_ = 0;
  uint64_t owner_ = 0;
};

// bytes[begin, begin + size) with size at most 32, zero-padded.
inline WordCache::Key WordKey(std::string_view bytes, size_t begin, size_t size) {
  WordCache::Key key{};
  if (begin + WordCache::kKeyBytes > bytes.size()) {
    std::memcpy(key.data(), bytes.data() + begin, size);
    return key;
  }
  for (size_t i = 0; i * 8 < size; ++i) {
    std::memcpy(&key[i], bytes.data() + begin + i * 8, 8);
    const size_t kept = size - i * 8;
    const auto drop = static_cast<int>(kept >= 8 ? 0 : 64 - 8 * kept);
    if constexpr (std::endian::native == std::endian::little) {
      key[i] = key[i] << drop >> drop;
    } else {
      key[i] = key[i] >> drop << drop;
    }
  }
  return key;
}

// Appends the ids of the word bytes[begin, end) through the cache. False as TokenModel::Tokenize.
inline bool AppendWord(const TokenModel& model, std::string_view bytes, size_t begin, size_t end,
                       WordCache& cache, ModelScratch& scratch, IdBuffer* ids) {
  WordCache::Key key;
  uint64_t hash = 0;
  const size_t size = end - begin;
  const bool cached = size <= WordCache::kKeyBytes;
  if (cached) {
    key = WordKey(bytes, begin, size);
    hash = WordCache::Hash(key);
    if (const WordCache::Entry* entry = cache.Find(hash, key, size)) {
      std::memcpy(ids->Room(WordCache::kIds), entry->ids, sizeof(entry->ids));
      ids->Advance(entry->count);
      return true;
    }
  }
  scratch.tokens.clear();
  if (!model.Tokenize(bytes.substr(begin, size), scratch)) return false;
  const size_t count = scratch.tokens.size();
  int32_t* out = ids->Room(count);
  for (size_t i = 0; i < count; ++i) out[i] = scratch.tokens[i].id;
  ids->Advance(count);
  if (cached) cache.Insert(hash, key, size, scratch.tokens.data(), count);
  return true;
}

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_WORD_CACHE_H_
