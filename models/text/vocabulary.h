// Tokens and their ids, both ways.
#ifndef POZOR_MODELS_TEXT_VOCABULARY_H_
#define POZOR_MODELS_TEXT_VOCABULARY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/json.h"

namespace pozor {

// A hash of bytes that can be carried on byte by byte (FNV-1a, 64 bits).
struct ByteHash {
  uint64_t value = 0xCBF29CE484222325u;
  void Add(char c) { value = (value ^ static_cast<uint8_t>(c)) * 0x100000001B3u; }
  static uint64_t Of(std::string_view text) {
    ByteHash hash;
    for (const char c : text) hash.Add(c);
    return hash.value;
  }
};

// Open addressing from hashes to ids; whoever asks compares the texts.
class HashIndex {
 public:
  void Reserve(size_t count);
  void Insert(uint64_t hash, int32_t id);

  // Calls same(id) for candidates until one is right; its id, or -1.
  template <class Same>
  int32_t Find(uint64_t hash, Same&& same) const {
    if (slots_.empty()) return -1;
    const uint32_t check = Check(hash);
    for (size_t i = Start(hash);; i = (i + 1) & mask_) {
      const Slot& slot = slots_[i];
      if (slot.id < 0) return -1;
      if (slot.check == check && same(slot.id)) return slot.id;
    }
  }

 private:
  struct Slot {
    int32_t id = -1;
    uint32_t check = 0;
  };
  // FNV leaves the low bits poor.
  static uint64_t Mix(uint64_t hash) { return hash * 0x9E3779B97F4A7C15u; }
  size_t Start(uint64_t hash) const { return (Mix(hash) >> 20) & mask_; }
  static uint32_t Check(uint64_t hash) { return static_cast<uint32_t>(Mix(hash) >> 32); }

  std::vector<Slot> slots_;
  size_t mask_ = 0;
  size_t used_ = 0;
};

class Vocabulary {
 public:
  // From {"token": id}. Ids must be whole numbers that are not far above the number of tokens.
  // `where` names the place in messages.
  static Result<Vocabulary> FromJson(const JsonValue& object, const std::string& where);
  // One token an id, in order; an equal token that comes later takes the name over.
  static Vocabulary FromList(const std::vector<std::string>& tokens);

  int32_t Find(std::string_view token) const { return Find(token, ByteHash::Of(token)); }
  int32_t Find(std::string_view token, uint64_t hash) const {
    return index_.Find(hash, [&](int32_t id) { return Text(id) == token; });
  }
  // Empty if there is no such id.
  std::string_view Text(int32_t id) const {
    const auto i = static_cast<size_t>(id);
    if (i >= texts_.size()) return {};
    return {bytes_.data() + texts_[i].begin, texts_[i].end - texts_[i].begin};
  }
  bool Holds(int32_t id) const {
    return static_cast<size_t>(id) < texts_.size() && texts_[static_cast<size_t>(id)].held;
  }

  size_t count() const { return count_; }            // different tokens
  size_t id_limit() const { return texts_.size(); }  // highest id + 1
  size_t longest() const { return longest_; }        // bytes

 private:
  struct Entry {
    uint32_t begin = 0, end = 0;
    bool held = false;
  };

  void Insert(std::string_view token, int32_t id);

  std::string bytes_;
  std::vector<Entry> texts_;  // by id
  HashIndex index_;
  size_t count_ = 0, longest_ = 0;
};

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_VOCABULARY_H_
