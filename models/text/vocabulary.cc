#include "models/text/vocabulary.h"

#include <algorithm>
#include <bit>

#include "models/text/parse.h"

namespace pozor {

void HashIndex::Reserve(size_t count) {
  const size_t size = std::bit_ceil(std::max<size_t>(16, count * 2));
  if (size <= slots_.size()) return;
  std::vector<Slot> old(size);
  old.swap(slots_);
  mask_ = size - 1;
  // Slots keep too little of the hash to be moved: an index is reserved before it is filled.
  used_ = 0;
}

void HashIndex::Insert(uint64_t hash, int32_t id) {
  size_t i = Start(hash);
  while (slots_[i].id >= 0) i = (i + 1) & mask_;
  slots_[i] = {id, Check(hash)};
  ++used_;
}

Result<Vocabulary> Vocabulary::FromJson(const JsonValue& object, const std::string& where) {
  if (!object.is_object()) {
    return parse::Bad(where, "vocab", object.Describe() + " is not an object of tokens and ids");
  }
  // Enough for holes, too little for a lie to hurt.
  const auto limit = static_cast<int64_t>(object.size() * 8 + 65536);
  int64_t highest = -1;
  size_t bytes = 0;
  for (const JsonMember& member : object.members()) {
    const JsonValue& id = member.value;
    if (!id.is_int() || id.as_int() < 0 || id.as_int() >= limit) {
      return parse::Bad(where, "vocab",
                        "the id of " + std::string(member.key.substr(0, 80)) + " is " +
                            id.Describe() + ", which is no number from 0 to " +
                            std::to_string(limit - 1));
    }
    highest = std::max(highest, id.as_int());
    bytes += member.key.size();
  }
  if (bytes > UINT32_MAX) return parse::Bad(where, "vocab", "it is larger than 4 GB");
  Vocabulary vocabulary;
  vocabulary.bytes_.reserve(bytes);
  vocabulary.texts_.resize(static_cast<size_t>(highest + 1));
  vocabulary.index_.Reserve(object.size());
  // From the end: of equal tokens the last one counts.
  const std::span<const JsonMember> members = object.members();
  for (size_t i = members.size(); i > 0; --i) {
    vocabulary.Insert(members[i - 1].key, static_cast<int32_t>(members[i - 1].value.as_int()));
  }
  return vocabulary;
}

Vocabulary Vocabulary::FromList(const std::vector<std::string>& tokens) {
  Vocabulary vocabulary;
  vocabulary.texts_.resize(tokens.size());
  vocabulary.index_.Reserve(tokens.size());
  for (size_t i = tokens.size(); i > 0; --i) {
    vocabulary.Insert(tokens[i - 1], static_cast<int32_t>(i - 1));
  }
  return vocabulary;
}

void Vocabulary::Insert(std::string_view token, int32_t id) {
  const uint64_t hash = ByteHash::Of(token);
  if (Find(token, hash) >= 0) return;
  Entry& entry = texts_[static_cast<size_t>(id)];
  entry.begin = static_cast<uint32_t>(bytes_.size());
  bytes_.append(token);
  entry.end = static_cast<uint32_t>(bytes_.size());
  entry.held = true;
  index_.Insert(hash, id);
  ++count_;
  longest_ = std::max(longest_, token.size());
}

}  // namespace pozor
