#include "models/text/added_tokens.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "models/text/parse.h"
#include "models/text/unicode.h"

namespace pozor {

namespace {

size_t ByteIndex(char byte) { return static_cast<uint8_t>(byte); }

// A token in a message, which is one line.
std::string Shown(std::string_view content) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out = "\"";
  for (const char c : content.substr(0, 80)) {
    const size_t byte = ByteIndex(c);
    if (byte >= 0x20 && byte != 0x7F) {
      out += c;
    } else {
      out += {'\\', 'x', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return out + "\"";
}

bool SameSettings(const AddedToken& a, const AddedToken& b) {
  return a.single_word == b.single_word && a.lstrip == b.lstrip && a.rstrip == b.rstrip &&
         a.normalized == b.normalized && a.special == b.special;
}

}  // namespace

int32_t StringMatcher::Child(int32_t node, char byte) const {
  if (node == 0) return rooted_ ? roots_[ByteIndex(byte)] : -1;
  int32_t child = nodes_[static_cast<size_t>(node)].child;
  while (child >= 0 && nodes_[static_cast<size_t>(child)].byte != byte) {
    child = nodes_[static_cast<size_t>(child)].sibling;
  }
  return child;
}

void StringMatcher::Add(std::string_view text, int32_t value) {
  if (text.empty()) return;
  if (!rooted_) {
    std::fill(std::begin(roots_), std::end(roots_), -1);
    rooted_ = true;
  }
  int32_t node = 0;
  for (const char byte : text) {
    int32_t child = Child(node, byte);
    if (child < 0) {
      child = static_cast<int32_t>(nodes_.size());
      nodes_.push_back({-1, -1, -1, byte});
      if (node == 0) {
        roots_[ByteIndex(byte)] = child;
        first_bytes_.push_back(byte);
      } else {
        Node& parent = nodes_[static_cast<size_t>(node)];
        nodes_.back().sibling = parent.child;
        parent.child = child;
      }
    }
    node = child;
  }
  int32_t& held = nodes_[static_cast<size_t>(node)].value;
  if (held < 0) held = value;
}

size_t StringMatcher::LongestAt(std::string_view text, size_t begin, int32_t* value) const {
  size_t longest = 0;
  int32_t node = 0;
  for (size_t i = begin; i < text.size(); ++i) {
    node = Child(node, text[i]);
    if (node < 0) break;
    if (nodes_[static_cast<size_t>(node)].value < 0) continue;
    longest = i + 1 - begin;
    *value = nodes_[static_cast<size_t>(node)].value;
  }
  return longest;
}

size_t StringMatcher::NextStart(std::string_view text, size_t begin) const {
  if (empty()) return text.size();
  // A few searches by memchr are quicker than a look at every byte.
  if (first_bytes_.size() <= 3) {
    size_t first = text.size();
    for (const char byte : first_bytes_) {
      if (first <= begin) break;
      const void* found = std::memchr(text.data() + begin, byte, first - begin);
      if (found != nullptr)
        first = static_cast<size_t>(static_cast<const char*>(found) - text.data());
    }
    return first;
  }
  size_t i = begin;
  while (i < text.size() && roots_[ByteIndex(text[i])] < 0) ++i;
  return i;
}

Result<AddedTokens> AddedTokens::FromJson(const JsonValue& json, const TokenModel& model,
                                          const std::string& where,
                                          std::vector<std::string>* warnings) {
  AddedTokens added;
  if (json.is_null()) return added;
  if (!json.is_array()) return parse::Bad(where, "added_tokens", "it is not an array");
  const auto limit = static_cast<int64_t>(model.vocabulary().id_limit() + json.size());
  for (const JsonValue& item : json.items()) {
    const std::string at = where + ".added_tokens";
    if (!item.is_object()) return parse::Bad(where, "added_tokens", "an entry is no object");
    AddedToken token;
    POZOR_TRY(token.content, parse::String(item, "content", std::nullopt, at));
    POZOR_TRY(token.single_word, parse::Bool(item, "single_word", false, at));
    POZOR_TRY(token.lstrip, parse::Bool(item, "lstrip", false, at));
    POZOR_TRY(token.rstrip, parse::Bool(item, "rstrip", false, at));
    POZOR_TRY(token.special, parse::Bool(item, "special", false, at));
    POZOR_TRY(token.normalized, parse::Bool(item, "normalized", !token.special, at));
    const JsonValue* id = item.Find("id");
    if (id == nullptr || !id->is_int() || id->as_int() < 0 || id->as_int() > limit + 65536) {
      return parse::Bad(at, "id",
                        "the id of " + Shown(token.content) + " is " +
                            (id == nullptr ? "missing" : id->Describe()));
    }
    if (token.content.empty()) continue;
    const std::string content = token.content;
    const AddedToken* before = added.ById(added.Find(content));
    if (before != nullptr && !SameSettings(*before, token)) {
      return parse::Bad(where, "added_tokens",
                        Shown(content) + " stands there twice, with different settings");
    }
    POZOR_RETURN_IF_ERROR(added.Add(std::move(token), model));
    if (warnings != nullptr && added.Find(content) != id->as_int()) {
      warnings->push_back(at + ": the id of " + Shown(content) + " is " +
                          std::to_string(added.Find(content)) + ", not " + id->Describe() +
                          " as the file says");
    }
  }
  return added;
}

Status AddedTokens::Add(AddedToken token, const TokenModel& model) {
  token.id = Find(token.content);
  if (token.id < 0) token.id = model.vocabulary().Find(token.content);
  if (token.id < 0) token.id = std::max(static_cast<int32_t>(model.entries()), id_limit_);
  const auto found = by_id_.find(token.id);
  if (found != by_id_.end() && tokens_[found->second].content != token.content) {
    return Unsupported("added token " + Shown(token.content) + ": its id " +
                       std::to_string(token.id) + " is that of " +
                       Shown(tokens_[found->second].content) + "; save the tokenizer again");
  }
  id_limit_ = std::max(id_limit_, token.id + 1);
  by_content_[token.content] = token.id;
  if (found != by_id_.end()) {
    tokens_[found->second] = std::move(token);
  } else {
    by_id_[token.id] = tokens_.size();
    tokens_.push_back(std::move(token));
  }
  return Status();
}

Status AddedTokens::Check() const {
  for (const AddedToken& token : tokens_) {
    const std::string name = "added token " + Shown(token.content) + ": ";
    if (token.vanishes) {
      return Unsupported(name + "the normalizer removes all of it; set normalized to false");
    }
    if (token.same_as >= 0) {
      return Unsupported(name + "the normalizer makes the same of it as of " +
                         Shown(ById(token.same_as)->content) + "; set normalized to false");
    }
  }
  return Status();
}

void AddedTokens::Prepare(const Normalizer* normalizer) {
  raw_ = StringMatcher();
  normalized_ = StringMatcher();
  AlignedText text, spare;
  std::unordered_map<std::string, int32_t> by_normal;
  for (AddedToken& token : tokens_) {
    token.normal.clear();
    token.vanishes = false;
    token.same_as = -1;
    if (!token.normalized) {
      raw_.Add(token.content, token.id);
      continue;
    }
    text.Start(token.content, 0, false);
    if (normalizer != nullptr) normalizer->Apply(text, spare);
    normalized_.Add(text.bytes, token.id);
    token.vanishes = text.bytes.empty();
    const auto [entry, is_new] = by_normal.emplace(text.bytes, token.id);
    if (!is_new) token.same_as = entry->second;
    if (text.bytes != token.content) token.normal = text.bytes;
  }
}

namespace {

bool WordBefore(std::string_view text, size_t i) {
  size_t size = 0;
  return i > 0 && unicode::Is(unicode::DecodeBefore(text, i, &size), unicode::kWordBit);
}

bool WordAfter(std::string_view text, size_t i) {
  size_t size = 0;
  return i < text.size() && unicode::Is(unicode::Decode(text.data() + i, &size), unicode::kWordBit);
}

size_t SpaceBegin(std::string_view text, size_t i) {
  size_t size = 0;
  while (i > 0 && unicode::Is(unicode::DecodeBefore(text, i, &size), unicode::kSpaceBit)) i -= size;
  return i;
}

size_t SpaceEnd(std::string_view text, size_t i) {
  size_t size = 0;
  while (i < text.size() &&
         unicode::Is(unicode::Decode(text.data() + i, &size), unicode::kSpaceBit)) {
    i += size;
  }
  return i;
}

}  // namespace

void AddedTokens::Split(bool normalized, size_t begin, size_t end, bool plain_specials,
                        std::string_view whole, std::vector<Piece>* pieces) const {
  const StringMatcher& matcher = normalized ? normalized_ : raw_;
  const std::string_view text(whole.data() + begin, end - begin);
  const auto emit = [&](size_t from, size_t to, int32_t id) {
    pieces->push_back({static_cast<uint32_t>(begin + from), static_cast<uint32_t>(begin + to), id});
  };
  size_t done = 0, at = 0;
  while ((at = matcher.NextStart(text, at)) < text.size()) {
    int32_t id = -1;
    const size_t size = matcher.LongestAt(text, at, &id);
    if (size == 0) {
      ++at;
      continue;
    }
    size_t from = at, to = at + size;
    at = to;  // whether it counts or not, the search goes on behind it
    const AddedToken& token = *ById(id);
    if (plain_specials && token.special) continue;
    if (token.single_word && (WordBefore(text, from) || WordAfter(text, to))) continue;
    if (token.lstrip) from = std::max(SpaceBegin(text, from), done);
    if (token.rstrip) to = SpaceEnd(text, to);
    // The white space that another token took is no more there to be matched.
    if (from >= to) continue;
    if (done < from) emit(done, from, -1);
    emit(from, to, id);
    done = to;
  }
  if (done < text.size()) emit(done, text.size(), -1);
}

int32_t AddedTokens::Find(std::string_view content) const {
  const auto found = by_content_.find(std::string(content));
  return found == by_content_.end() ? -1 : found->second;
}

const AddedToken* AddedTokens::ById(int32_t id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : &tokens_[found->second];
}

}  // namespace pozor
