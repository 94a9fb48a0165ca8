#include "models/text/unicode.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "models/text/regex.h"

namespace pozor::unicode {
namespace {

TEST_CASE("UTF-8 of every character, there and back") {
  for (char32_t c = 0; c < 0x110000; ++c) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string text;
    AppendUtf8(c, &text);
    size_t size = 0, before = 0;
    const bool right = Decode(text.data(), &size) == c && size == text.size() &&
                       DecodeBefore(text, text.size(), &before) == c && before == size &&
                       FindInvalidUtf8(text) == text.size() && CountCodePoints(text) == 1;
    if (!right) FAIL("U+" << static_cast<uint32_t>(c));
  }
}

TEST_CASE("the first byte that is not UTF-8") {
  const std::pair<std::string, size_t> texts[] = {
      {"", 0},
      {"plain ascii, longer than a word", 31},
      {"\x80", 0},
      {"ab\xC3", 2},
      {"\xC0\x80", 0},          // overlong
      {"\xE0\x80\x80", 0},      // overlong
      {"\xF0\x80\x80\x80", 0},  // overlong
      {"\xED\xA0\x80", 0},      // surrogate
      {"\xF4\x90\x80\x80", 0},  // above U+10FFFF
      {"\xE4\xB8\xAD\xE4\xB8", 3},
      {std::string("a\0b\xFF", 4), 3},
  };
  for (const auto& [text, place] : texts) CHECK(FindInvalidUtf8(text) == place);
  CHECK(BeginsCharacter("\xF0\x9F\x98"));
  CHECK(BeginsCharacter("\xE0\xA0"));
  CHECK_FALSE(BeginsCharacter("\xE0\x80"));
  CHECK_FALSE(BeginsCharacter("\xFF"));
}

TEST_CASE("classes and case at their corners") {
  CHECK(Is(0xAD, kBertRemovedBit));
  CHECK(Is(0x85, kBertRemovedBit));
  CHECK(Is(0xA0, kBertToSpaceBit));
  CHECK(Is('$', kPunctuationBit));
  CHECK_FALSE(Is(0x20AC, kPunctuationBit));  // the euro sign
  CHECK(Is(0x2B920, kCjkBit));
  CHECK_FALSE(Is(0x2B820, kCjkBit));
  CHECK_FALSE(Is(0x3042, kCjkBit));  // kana
  CHECK(Is(0xBD, kNumericBit));
  CHECK_FALSE(Is(0x10FFFF, kWordBit));
  CHECK(ToLower('A') == 'a');
  CHECK(ToLower('[') == '[');
  CHECK(ToLower(0x3A3) == 0x3C3);  // never the final sigma
  CHECK(ToLower(0x1E9E) == 0xDF);
}

TEST_CASE("decomposition and composition are inverse for Hangul and primary composites") {
  char32_t buffer[kMaxDecomposition];
  for (char32_t c = 0xAC00; c <= 0xD7A3; ++c) {
    const auto parts = Decompose(c, false, buffer);
    char32_t whole = Compose(parts[0], parts[1]);
    if (parts.size() == 3) whole = Compose(whole, parts[2]);
    if (whole != c) FAIL("U+" << static_cast<uint32_t>(c));
  }
  CHECK(Compose('e', 0x301) == 0xE9);
  CHECK(Compose('e', 'f') == 0);
  const auto ligature = Decompose(0xFB01, true, buffer);
  CHECK(std::vector<char32_t>(ligature.begin(), ligature.end()) == std::vector<char32_t>{'f', 'i'});
  CHECK(Decompose(0xFB01, false, buffer).size() == 1);
}

TEST_CASE("grapheme clusters") {
  const std::vector<std::vector<std::string>> texts = {
      {"a", "b"},
      {"\r\n", "\n", "\r"},
      {"e\u0301", "x"},
      {"\u1112\u1161\u11AB", "\uAC00\u11A8"},
      {"\U0001F1E8\U0001F1FF", "\U0001F1E8", "a"},
      {"\U0001F469\u200D\U0001F469\u200D\U0001F467", "!"},
      {"\U0001F44D\U0001F3FD", "\u00A0"},
      {"\u0915\u094D\u0937", "\u0915"},
      {"\u0600a"},
      {"\x01", "\u0301"},
  };
  for (const auto& clusters : texts) {
    std::string text;
    for (const std::string& cluster : clusters) text += cluster;
    size_t at = 0;
    for (const std::string& cluster : clusters) {
      const size_t end = GraphemeEnd(text, at);
      CHECK(text.substr(at, end - at) == cluster);
      at = end;
    }
  }
}

TEST_CASE("expressions are read as Oniguruma reads them") {
  struct Case {
    const char* pattern;
    std::string text;
    const char* first;  // the first match; null: none
  };
  const Case cases[] = {
      {R"(\s)", "\u180E", nullptr},
      {R"(\s)", "\u0085", "\u0085"},
      {R"(\w+)", "-\u0915\u094D\u0937-", "\u0915\u094D\u0937"},
      {R"(\w)", "\u00BD", "\u00BD"},
      {R"([^\w])", "\u00BD", "\u00BD"},
      {R"(\h+)", "xFa9g", "Fa9"},
      {R"((?m)a.b)", "a\nb", "a\nb"},
      {R"(^b)", "a\nb", "b"},
      {R"(a{,2})", "aaa", "aa"},
      {R"(a{1,2}+)", "aaaaa", "aaaaa"},
      {R"(\u00e9)", "\u00E9", "\u00E9"},
      {R"(foo\b)", "foo\u0301 foo.", "foo"},
      // Scripts are those of the characters alone, not of what uses them.
      {R"(\p{Han}+)", "\u3001\u4E00\u3002", "\u4E00"},
      {R"(\p{Hiragana}+)", "\u304B\u3099", "\u304B"},
      {R"([\p{Katakana}]+)", "\u30AB\u30FC", "\u30AB"},
      // Characters of Unicode 15 and 16.
      {R"(\p{Lu})", "\U00010D50", "\U00010D50"},
      {R"(\P{Lu})", "\U00010D50", nullptr},
      {R"(\p{^Lu})", "\U00010D50", nullptr},
      {R"(\p{lowercase_letter})", "\uA7DB", "\uA7DB"},
      {R"([\p{P}\p{S}])", "\U0001F6DC", "\U0001F6DC"},
      {R"(\p{Mn})", "\U0001171E\u0301", "\u0301"},
      {R"(\d)", "\U0001E4F0", "\U0001E4F0"},
      {R"(\D)", "\U0001E4F0", nullptr},
      {R"(\p{C})", "\U0001F6DC", nullptr},
      {R"([[:alpha:]]+)", "1\u2160a\u0345", "\u2160a\u0345"},
      {R"([[:punct:]]+)", "a$\u00A2!", "$\u00A2!"},
      {R"([[:alnum:]])", "\u00BD", nullptr},
      {R"([[:^alpha:]]+)", "a1-", "1-"},
      {R"(\v)", "\n", nullptr},
      // Complements in a class.
      {R"([\W_]+)", "a_-b", "_-"},
      {R"([^\W\d]+)", "-1ab2", "ab"},
      {R"([^\P{L}a]+)", "-abc", "bc"},
      {R"([\P{L}^]+)", "a^1", "^1"},
      {R"([\w-]+)", ".a-b", "a-b"},
      {R"([-\w.]+)", "!a-.", "a-."},
      {R"((?i)[ks]+)", "\u212A\u017F", "\u212A\u017F"},
      {R"((?i:'ll|'s))", "x'LL", "'LL"},
      {R"((?i)a|b)", "B", "B"},
  };
  for (const Case& c : cases) {
    INFO("pattern: ", std::string(c.pattern), " text: ", c.text);
    const auto regex = Regex::Compile(c.pattern, "test");
    REQUIRE_MESSAGE(regex.ok(), regex.status().message());
    size_t begin = 0, end = 0;
    const Regex::Found found = (*regex)->Search(c.text, 0, &begin, &end);
    CHECK((found == Regex::Found::kYes) == (c.first != nullptr));
    if (c.first != nullptr) CHECK(c.text.substr(begin, end - begin) == c.first);
  }
  for (const char* lacking :
       {"[a-z&&[^b]]", "[a[b]]", "(?s).", "(open", "[open", "\\p{Emoji}", "\\pL", "[[:graph:]]",
        "[+-\\d]", "a{2}?", "\\Qa\\E", "\\g<1>",
        // One letter in the other case: sharp s, ligatures.
        "(?i)ss", "(?i:stra\u00DFe)", "(?i)[\u00DF]", "(?i:find)", "a(?i)b|c", "(?i)\\p{Lu}"}) {
    INFO("pattern: ", std::string(lacking));
    CHECK_FALSE(Regex::Compile(lacking, "test").ok());
  }
}

}  // namespace
}  // namespace pozor::unicode
