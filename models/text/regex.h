// Regular expressions of tokenizer.json (the only user of PCRE2). They are written for Oniguruma,
// as Hugging Face `tokenizers` runs them; what that reads in another way than PCRE2 is translated.
#ifndef POZOR_MODELS_TEXT_REGEX_H_
#define POZOR_MODELS_TEXT_REGEX_H_

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "pozor/status.h"

namespace pozor {

class Regex {
 public:
  // `where` names the place in messages.
  static Result<std::shared_ptr<const Regex>> Compile(std::string_view source,
                                                      const std::string& where);
  ~Regex();
  Regex(const Regex&) = delete;
  Regex& operator=(const Regex&) = delete;

  enum class Found { kNo, kYes, kGaveUp };
  // The leftmost match that begins at or after `from`. `text` is valid UTF-8. Expressions that
  // take too many steps are given up.
  Found Search(std::string_view text, size_t from, size_t* begin, size_t* end) const;

 private:
  Regex() = default;
  void* code_ = nullptr;  // pcre2_code
};

// The same expression for PCRE2 with UTF and UCP on and ^ and $ at line ends; an error if it needs
// what PCRE2 lacks.
Result<std::string> TranslateOniguruma(std::string_view source);

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_REGEX_H_
