// What Replace and Split look for: a literal, one of the patterns that nearly every published
// tokenizer uses (matched by hand), or any other regular expression (PCRE2).
#ifndef POZOR_MODELS_TEXT_PATTERN_H_
#define POZOR_MODELS_TEXT_PATTERN_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "pozor/status.h"

namespace pozor {

class Regex;

class Pattern {
 public:
  struct Match {
    size_t begin = 0, end = 0;
    size_t next = 0;      // where to look for the one after it
    bool failed = false;  // the expression took too many steps; there is no answer
  };

  // `where` names the place in messages.
  static Result<Pattern> Compile(std::string_view source, bool regex, const std::string& where);
  // GPT-2's words, which a ByteLevel pre-tokenizer cuts.
  static Pattern Gpt2();
  // GPT-4's, with numbers of at most so many digits: Llama 3 has 3, Qwen 1.
  static Pattern Gpt4(size_t digits);

  // The first match at or after `from`, which is 0 or `match->next` of the one before. `text` is
  // valid UTF-8.
  bool Find(std::string_view text, size_t from, Match* match) const;

  // Whether its matches, one after the other, are the whole of any text.
  bool covers() const { return kind_ == Kind::kGpt2 || kind_ == Kind::kGpt4; }

 private:
  enum class Kind { kLiteral, kSpaces, kGpt2, kGpt4, kRegex };
  bool FindRegex(std::string_view text, size_t from, Match* match) const;

  Kind kind_ = Kind::kLiteral;
  std::string literal_;
  size_t digits_ = 1;  // of a kGpt4 number
  std::shared_ptr<const Regex> regex_;
};

// The character that stands for a byte in the vocabulary of a byte-level model.
char32_t ByteChar(uint8_t byte);
// The byte that a character stands for; -1 for other characters.
int CharByte(char32_t c);

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_PATTERN_H_
