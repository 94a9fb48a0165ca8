// Characters as tokenizers see them: UTF-8, classes, lower-casing, decompositions, grapheme
// clusters. The tables say what Hugging Face `tokenizers` really does, which is a mixture of
// several versions of Unicode; see tools/gen_unicode.py.
#ifndef POZOR_MODELS_TEXT_UNICODE_H_
#define POZOR_MODELS_TEXT_UNICODE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace pozor::unicode {

struct CharRecord {
  uint16_t bits;
  uint8_t combining;  // canonical combining class
  uint8_t grapheme;   // Grapheme
  uint8_t conjunct;   // 0 none, 1 consonant, 2 linker, 3 extend (rule GB9c)
};

enum Grapheme : uint8_t {
  kOther,
  kCarriageReturn,
  kLineFeed,
  kControl,
  kExtend,
  kJoiner,
  kRegional,
  kPrepend,
  kSpacingMark,
  kHangulL,
  kHangulV,
  kHangulT,
  kHangulLV,
  kHangulLVT,
  kPictograph,
};

#include "models/text/unicode_tables.inc"

inline constexpr char32_t kDottedCapitalI = 0x130;  // the one letter whose lower case is two

template <class Index, size_t kBlocks, class Data, size_t kSize>
inline Data Lookup(const Index (&index)[kBlocks], const Data (&data)[kSize], char32_t c) {
  const size_t block = c / 128 < kBlocks ? c / 128 : kBlocks - 1;
  return data[size_t{index[block]} * 128 + c % 128];
}

inline const CharRecord& RecordOf(char32_t c) {
  return kCharRecords[Lookup(kCharIndex, kCharData, c)];
}
inline bool Is(char32_t c, uint16_t bit) { return (RecordOf(c).bits & bit) != 0; }

inline char32_t ToLower(char32_t c) {
  if (c < 0x80) return c - 'A' < 26u ? c + 32 : c;
  const int64_t lower = int64_t{c} + kLowerDeltas[Lookup(kLowerIndex, kLowerData, c)];
  return static_cast<char32_t>(lower);
}

inline uint8_t ScriptOf(char32_t c) { return Lookup(kScriptIndex, kScriptData, c); }

// Bytes of the character that starts with this byte; 1 for a byte that starts none.
inline size_t SequenceLength(char lead) {
  const auto byte = static_cast<uint8_t>(lead);
  return byte < 0xC0 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

// The character at `text`, which is valid UTF-8; *size becomes its bytes.
inline char32_t Decode(const char* text, size_t* size) {
  const auto byte = [text](size_t i) { return static_cast<uint8_t>(text[i]); };
  *size = SequenceLength(text[0]);
  switch (*size) {
    case 1:
      return byte(0);
    case 2:
      return (byte(0) & 0x1Fu) << 6 | (byte(1) & 0x3Fu);
    case 3:
      return (byte(0) & 0x0Fu) << 12 | (byte(1) & 0x3Fu) << 6 | (byte(2) & 0x3Fu);
    default:
      return (byte(0) & 0x07u) << 18 | (byte(1) & 0x3Fu) << 12 | (byte(2) & 0x3Fu) << 6 |
             (byte(3) & 0x3Fu);
  }
}

// The character that ends right before `end` (end > 0) in valid UTF-8.
inline char32_t DecodeBefore(std::string_view text, size_t end, size_t* size) {
  size_t begin = end - 1;
  while (begin > 0 && (static_cast<uint8_t>(text[begin]) & 0xC0u) == 0x80u) --begin;
  return Decode(text.data() + begin, size);
}

// Writes the UTF-8 form to `out` (4 bytes) and returns its length.
size_t EncodeUtf8(char32_t c, char* out);
void AppendUtf8(char32_t c, std::string* out);

// End of the run of ASCII bytes that starts at `begin`.
size_t AsciiEnd(std::string_view text, size_t begin);

// Offset of the first byte that is not valid UTF-8 (RFC 3629), text.size() if there is none.
size_t FindInvalidUtf8(std::string_view text);

// Whether a valid character begins with these 1 to 4 bytes.
bool BeginsCharacter(std::string_view bytes);

size_t CountCodePoints(std::string_view text);

// The full canonical (or compatibility) decomposition, up to 18 characters; of a character without
// one, the character itself. Combining classes order the result of neighbours, see NFD.
inline constexpr size_t kMaxDecomposition = 18;
std::span<const char32_t> Decompose(char32_t c, bool compatibility,
                                    char32_t (&out)[kMaxDecomposition]);

// The primary composite of two characters, 0 if they have none.
char32_t Compose(char32_t first, char32_t second);

// End of the extended grapheme cluster (UAX 29) that starts at `begin` in valid UTF-8.
size_t GraphemeEnd(std::string_view text, size_t begin);

}  // namespace pozor::unicode

#endif  // POZOR_MODELS_TEXT_UNICODE_H_
