#include "models/text/charsmap.h"

#include <cstring>
#include <utility>

#include "models/text/parse.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

int SixBits(char c) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

// Fields of a unit of a double-array trie (Darts-clone).
bool HasLeaf(uint32_t unit) { return (unit >> 8 & 1) != 0; }
uint32_t Value(uint32_t unit) { return unit & 0x7FFFFFFFu; }
uint32_t Label(uint32_t unit) { return unit & 0x800000FFu; }
uint32_t Offset(uint32_t unit) { return (unit >> 10) << ((unit & 0x200u) >> 6); }

}  // namespace

bool DecodeBase64(std::string_view text, std::string* out) {
  out->clear();
  out->reserve(text.size() / 4 * 3);
  while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    if (c == '\n' || c == '\r') continue;
    const int value = SixBits(c);
    if (value < 0) return false;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out->push_back(static_cast<char>(bits >> count & 0xFF));
  }
  return true;
}

Result<CharsMap> CharsMap::FromBase64(std::string_view text, const std::string& where) {
  std::string bytes;
  if (!DecodeBase64(text, &bytes)) {
    return parse::Bad(where, "precompiled_charsmap", "it is not base64");
  }
  return FromBytes(bytes, where);
}

Result<CharsMap> CharsMap::FromBytes(std::string_view bytes, const std::string& where) {
  constexpr const char* kKey = "precompiled_charsmap";
  if (bytes.size() < 4) {
    return parse::Bad(where, kKey, std::to_string(bytes.size()) + " bytes are too short");
  }
  uint32_t size = 0;
  for (size_t i = 0; i < 4; ++i) size |= uint32_t{static_cast<uint8_t>(bytes[i])} << (8 * i);
  if (size % 4 != 0 || size == 0 || size > bytes.size() - 4) {
    return parse::Bad(where, kKey,
                      "it claims a trie of " + std::to_string(size) + " bytes, " +
                          std::to_string(bytes.size() - 4) + " are there");
  }
  CharsMap map;
  map.trie_.resize(size / 4);
  for (size_t i = 0; i < size; ++i) {
    map.trie_[i / 4] |= uint32_t{static_cast<uint8_t>(bytes[4 + i])} << (8 * (i % 4));
  }
  map.replacements_ = bytes.substr(4 + size);
  if (unicode::FindInvalidUtf8(map.replacements_) != map.replacements_.size()) {
    return parse::Bad(where, kKey, "a replacement is not valid UTF-8");
  }
  for (uint8_t c = 1; c < 128; ++c) {
    const char key = static_cast<char>(c);
    std::string_view unused;
    map.ascii_[c] = map.Find({&key, 1}, &unused);
  }
  return map;
}

bool CharsMap::Find(std::string_view key, std::string_view* replacement) const {
  size_t node = Offset(trie_[0]);
  for (const char c : key) {
    const auto byte = static_cast<uint8_t>(c);
    if (byte == 0) return false;
    node ^= byte;
    if (node >= trie_.size() || Label(trie_[node]) != byte) return false;
    const uint32_t unit = trie_[node];
    node ^= Offset(unit);
    if (!HasLeaf(unit)) continue;
    const size_t at = node < trie_.size() ? Value(trie_[node]) : replacements_.size();
    if (at >= replacements_.size() || (replacements_[at] & 0xC0) == 0x80) return false;
    *replacement = std::string_view(replacements_.data() + at);
    return true;
  }
  return false;
}

}  // namespace pozor
