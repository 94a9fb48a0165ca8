// SentencePiece's precompiled_charsmap: a double-array trie from strings to their replacements.
#ifndef POZOR_MODELS_TEXT_CHARSMAP_H_
#define POZOR_MODELS_TEXT_CHARSMAP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pozor/status.h"

namespace pozor {

class CharsMap {
 public:
  // As tokenizer.json holds it. `where` names the place in messages.
  static Result<CharsMap> FromBase64(std::string_view text, const std::string& where);
  // The bytes themselves, as a SentencePiece model holds them: a little-endian size of the trie in
  // bytes, its 32-bit units, then the replacements, each ended by a zero byte.
  static Result<CharsMap> FromBytes(std::string_view bytes, const std::string& where);

  // The replacement of the shortest prefix of `key` that has one.
  bool Find(std::string_view key, std::string_view* replacement) const;

  // Whether an ASCII character alone has a replacement.
  bool Replaces(uint8_t ascii) const { return ascii_[ascii]; }

 private:
  std::vector<uint32_t> trie_;
  std::string replacements_;
  bool ascii_[128] = {};
};

// Decodes RFC 4648 base64, line breaks and missing padding allowed. False if it is something else.
bool DecodeBase64(std::string_view text, std::string* out);

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_CHARSMAP_H_
