// Where a word of a SentencePiece model falls into parts that no token reaches across.
#ifndef POZOR_MODELS_TEXT_SPACE_CUTS_H_
#define POZOR_MODELS_TEXT_SPACE_CUTS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace pozor {

// Words of these models begin with U+2581, and where no pre-tokenizer cuts there a whole text is
// one word. Few tokens hold a U+2581 that is not their first character: before all others a part
// begins.
class SpaceCuts {
 public:
  static constexpr std::string_view kSpace = "\u2581";

  // Some token joins a text that ends in `last` with a following U+2581.
  void Join(char last) { joins_[static_cast<uint8_t>(last)] = true; }

  // The length of the first part of `word`.
  size_t FirstPart(std::string_view word) const {
    size_t at = 0;
    while ((at = word.find(kSpace, at + 1)) != std::string_view::npos) {
      if (!joins_[static_cast<uint8_t>(word[at - 1])]) return at;
    }
    return word.size();
  }

 private:
  bool joins_[256] = {};
};

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_SPACE_CUTS_H_
