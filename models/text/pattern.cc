#include "models/text/pattern.h"

#include <array>
#include <cstdint>
#include <utility>

#include "models/text/regex.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

using unicode::Decode;

enum class Sort { kLetter, kNumber, kSpace, kOther };

Sort SortOf(char32_t c) {
  const uint16_t bits = unicode::RecordOf(c).bits;
  if ((bits & unicode::kLetterBit) != 0) return Sort::kLetter;
  if ((bits & unicode::kNumberBit) != 0) return Sort::kNumber;
  return (bits & unicode::kSpaceBit) != 0 ? Sort::kSpace : Sort::kOther;
}

constexpr std::array<Sort, 128> MakeAsciiSorts() {
  std::array<Sort, 128> sorts{};
  for (size_t c = 0; c < 128; ++c) {
    const size_t small = c | 0x20;
    sorts[c] = small >= 'a' && small <= 'z'           ? Sort::kLetter
               : c >= '0' && c <= '9'                 ? Sort::kNumber
               : c == ' ' || (c >= '\t' && c <= '\r') ? Sort::kSpace
                                                      : Sort::kOther;
  }
  return sorts;
}

constexpr std::array<Sort, 128> kAsciiSorts = MakeAsciiSorts();

// Sort of the character at i, and its size.
inline Sort SortAt(std::string_view text, size_t i, size_t* size) {
  const auto byte = static_cast<uint8_t>(text[i]);
  if (byte < 0x80) {
    *size = 1;
    return kAsciiSorts[byte];
  }
  return SortOf(Decode(text.data() + i, size));
}

// End of the run of one sort from `i` on, at most `most` characters.
size_t RunEnd(std::string_view text, size_t i, Sort sort, size_t most = SIZE_MAX) {
  size_t size = 0;
  for (; most > 0 && i < text.size() && SortAt(text, i, &size) == sort; --most) i += size;
  return i;
}

// Length of a contraction such as 's or 'll at i, which holds an apostrophe; 0 if there is none.
size_t Contraction(std::string_view text, size_t i, bool any_case) {
  const auto at = [&](size_t k) -> char {
    if (i + k >= text.size()) return '\0';
    const char c = text[i + k];
    return any_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  const char first = at(1), second = at(2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  const bool two = (first == 'r' && second == 'e') || (first == 'v' && second == 'e') ||
                   (first == 'l' && second == 'l');
  if (two) return 3;
  // U+017F, the long s, is an s in another case.
  return any_case && text.substr(i + 1, 2) == "\u017F" ? 3 : 0;
}

// A run of spaces before a word leaves its last character to the word.
size_t SpacesEnd(std::string_view text, size_t begin, size_t end) {
  if (end == text.size()) return end;
  size_t size = 0;
  unicode::DecodeBefore(text, end, &size);
  return end - size > begin ? end - size : end;
}

// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t Gpt2End(std::string_view text, size_t i) {
  if (text[i] == '\'') {
    if (const size_t size = Contraction(text, i, false)) return i + size;
  }
  const size_t word = i + (text[i] == ' ' && i + 1 < text.size() ? 1 : 0);
  size_t size = 0;
  const Sort sort = SortAt(text, word, &size);
  if (sort != Sort::kSpace) return RunEnd(text, word + size, sort);
  return SpacesEnd(text, i, RunEnd(text, i, Sort::kSpace));
}

bool IsLineBreak(char c) { return c == '\r' || c == '\n'; }

// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,k}| ?[^\s\p{L}\p{N}]+[\r\n]*|
// \s*[\r\n]+|\s+(?!\S)|\s+
size_t Gpt4End(std::string_view text, size_t i, size_t digits) {
  if (text[i] == '\'') {
    if (const size_t size = Contraction(text, i, true)) return i + size;
  }
  size_t size = 0, next_size = 0;
  const Sort sort = SortAt(text, i, &size);
  if (sort == Sort::kLetter) return RunEnd(text, i + size, sort);
  if (sort == Sort::kNumber) return RunEnd(text, i, sort, digits);
  const size_t next = i + size;
  const bool more = next < text.size();
  const Sort next_sort = more ? SortAt(text, next, &next_size) : Sort::kSpace;
  if (!IsLineBreak(text[i]) && more && next_sort == Sort::kLetter) {
    return RunEnd(text, next + next_size, next_sort);
  }
  const bool spaced = text[i] == ' ' && more && next_sort == Sort::kOther;
  if (sort == Sort::kOther || spaced) {
    size_t end = RunEnd(text, spaced ? next : i, Sort::kOther);
    while (end < text.size() && IsLineBreak(text[end])) ++end;
    return end;
  }
  const size_t end = RunEnd(text, i, Sort::kSpace);
  for (size_t k = end; k > i; --k) {
    if (IsLineBreak(text[k - 1])) return k;
  }
  return SpacesEnd(text, i, end);
}

constexpr std::string_view kGpt2Source =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4Head = R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|)";
constexpr std::string_view kGpt4Tail = R"(| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

}  // namespace

Pattern Pattern::Gpt2() {
  Pattern pattern;
  pattern.kind_ = Kind::kGpt2;
  return pattern;
}

Pattern Pattern::Gpt4(size_t digits) {
  Pattern pattern;
  pattern.kind_ = Kind::kGpt4;
  pattern.digits_ = digits;
  return pattern;
}

Result<Pattern> Pattern::Compile(std::string_view source, bool regex, const std::string& where) {
  Pattern pattern;
  if (source.empty()) {
    return Unsupported(where + ".pattern: it is empty; correct the file");
  }
  if (!regex) {
    pattern.literal_ = source;
    return pattern;
  }
  if (source == " {2,}") {
    pattern.kind_ = Kind::kSpaces;
    return pattern;
  }
  if (source == kGpt2Source) return Gpt2();
  for (const size_t digits : {size_t{1}, size_t{3}}) {
    const std::string number = digits == 1 ? R"(\p{N})" : R"(\p{N}{1,3})";
    if (source == std::string(kGpt4Head) + number + std::string(kGpt4Tail)) return Gpt4(digits);
  }
  POZOR_TRY(pattern.regex_, Regex::Compile(source, where));
  pattern.kind_ = Kind::kRegex;
  return pattern;
}

bool Pattern::Find(std::string_view text, size_t from, Match* match) const {
  switch (kind_) {
    case Kind::kLiteral: {
      const size_t at = text.find(literal_, from);
      if (at == std::string_view::npos) return false;
      *match = {at, at + literal_.size(), at + literal_.size()};
      return true;
    }
    case Kind::kSpaces: {
      const size_t at = text.find("  ", from);
      if (at == std::string_view::npos) return false;
      const size_t end = std::min(text.find_first_not_of(' ', at), text.size());
      *match = {at, end, end};
      return true;
    }
    case Kind::kGpt2:
    case Kind::kGpt4: {
      if (from >= text.size()) return false;
      const size_t end = kind_ == Kind::kGpt2 ? Gpt2End(text, from) : Gpt4End(text, from, digits_);
      *match = {from, end, end};
      return true;
    }
    case Kind::kRegex:
      return FindRegex(text, from, match);
  }
  return false;
}

bool Pattern::FindRegex(std::string_view text, size_t from, Match* match) const {
  const size_t before = from == 0 ? SIZE_MAX : match->end;
  while (from <= text.size()) {
    size_t begin = 0, end = 0;
    const Regex::Found found = regex_->Search(text, from, &begin, &end);
    if (found != Regex::Found::kYes) {
      match->failed = found == Regex::Found::kGaveUp;
      return false;
    }
    *match = {begin, end, end};
    if (end > begin) return true;
    // An empty match counts unless it stands where the last match ended; the search goes on one
    // character later.
    match->next = end + (end < text.size() ? unicode::SequenceLength(text[end]) : 1);
    if (end != before) return true;
    from = match->next;
  }
  return false;
}

namespace {

constexpr bool StandsForItself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE;
}

constexpr std::array<char16_t, 256> MakeByteChars() {
  std::array<char16_t, 256> chars{};
  char16_t next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    chars[static_cast<size_t>(byte)] = StandsForItself(byte) ? static_cast<char16_t>(byte) : next++;
  }
  return chars;
}

constexpr std::array<char16_t, 256> kByteChars = MakeByteChars();

constexpr std::array<int16_t, 512> MakeCharBytes() {
  std::array<int16_t, 512> bytes{};
  for (int16_t& byte : bytes) byte = -1;
  for (size_t byte = 0; byte < 256; ++byte) bytes[kByteChars[byte]] = static_cast<int16_t>(byte);
  return bytes;
}

constexpr std::array<int16_t, 512> kCharBytes = MakeCharBytes();

}  // namespace

char32_t ByteChar(uint8_t byte) { return kByteChars[byte]; }
int CharByte(char32_t c) { return c < kCharBytes.size() ? kCharBytes[c] : -1; }

}  // namespace pozor
