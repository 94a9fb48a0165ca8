// Named character classes of regular expressions, as Oniguruma has them (Unicode 16), in PCRE2's
// words.
#ifndef POZOR_MODELS_TEXT_REGEX_CLASSES_H_
#define POZOR_MODELS_TEXT_REGEX_CLASSES_H_

#include <optional>
#include <string>
#include <string_view>

namespace pozor {

// What stands for \p{name} inside brackets; nothing if the name is unknown. Names are those of
// general categories and scripts, without regard to case, spaces, "_" and "-".
std::optional<std::string> PropertyClass(std::string_view name);

// What stands for [:name:] inside brackets.
std::optional<std::string> PosixClass(std::string_view name);

// What stands inside brackets for \d, \h, \s, \v or \w; empty for any other letter.
std::string EscapeClass(char letter);

// Whether upper and lower case of every letter are both in the property, or both are not.
bool IgnoresCase(std::string_view property);

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_REGEX_CLASSES_H_
