#include "models/text/regex_classes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>

#include "models/text/unicode.h"

namespace pozor {
namespace {

// A class as whole categories that PCRE2 knows and the ranges kClassData[begin, end) beside them.
struct RegexClass {
  std::string_view name, categories;
  uint16_t begin, end;
};

#include "models/text/regex_classes.inc"

std::string HexRange(uint32_t low, uint32_t high) {
  const auto point = [](uint32_t c) {
    std::string digits;
    for (; c > 0 || digits.empty(); c /= 16) digits.insert(0, 1, "0123456789ABCDEF"[c % 16]);
    return "\\x{" + digits + "}";
  };
  return low == high ? point(low) : point(low) + "-" + point(high);
}

// First and last of each range, one after the other.
std::string Ranges(std::span<const uint32_t> ends) {
  std::string out;
  for (size_t i = 0; i + 1 < ends.size(); i += 2) out += HexRange(ends[i], ends[i + 1]);
  return out;
}

constexpr uint32_t kSpaces[] = {0x9,    0xD,    0x20,   0x20,   0x85,   0x85,   0xA0,
                                0xA0,   0x1680, 0x1680, 0x2000, 0x200A, 0x2028, 0x2029,
                                0x202F, 0x202F, 0x205F, 0x205F, 0x3000, 0x3000};

std::string Plain(std::string_view name) {
  std::string plain;
  for (const char c : name) {
    if (c == ' ' || c == '_' || c == '-') continue;
    plain += static_cast<char>(std::tolower(static_cast<uint8_t>(c)));
  }
  return plain;
}

std::optional<std::string> Listed(std::string_view name) {
  const auto* found = std::find_if(std::begin(kClasses), std::end(kClasses),
                                   [&](const RegexClass& entry) { return entry.name == name; });
  if (found == std::end(kClasses)) return std::nullopt;
  const std::span<const uint32_t> data = kClassData;
  return std::string(found->categories) +
         Ranges(data.subspan(found->begin, size_t{found->end} - found->begin));
}

}  // namespace

std::optional<std::string> PropertyClass(std::string_view name) {
  const std::string plain = Plain(name);
  if (plain.starts_with('[')) return std::nullopt;
  if (const auto listed = Listed(plain)) return listed;
  // \p{Word} takes some numbers that [:word:] does not.
  return plain == "punct" || plain == "word" ? std::nullopt : PosixClass(plain);
}

std::optional<std::string> PosixClass(std::string_view name) {
  if (name == "space") return EscapeClass('s');
  if (name == "word") return EscapeClass('w');
  if (name == "xdigit") return EscapeClass('h');
  if (name == "ascii") return HexRange(0, 0x7F);
  if (name == "blank") return "\\p{Zs}\\x{9}";
  if (name == "punct") return Listed("[[:punct:]]");
  for (const char* same : {"alnum", "alpha", "cntrl", "digit", "lower", "upper"}) {
    if (name == same) return Listed(name);
  }
  return std::nullopt;
}

std::string EscapeClass(char letter) {
  switch (letter) {
    case 'd':
      return *Listed("nd");
    case 'h':
      return "0-9a-fA-F";
    case 's':
      return Ranges(kSpaces);
    case 'v':
      return HexRange(0xB, 0xB);
    case 'w':
      return "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}" + Ranges(unicode::kWordExtras);
    default:
      return "";
  }
}

bool IgnoresCase(std::string_view property) {
  const std::string name = Plain(property);
  constexpr std::string_view kWithCase[] = {
      "lu",       "ll",       "lt",       "uppercaseletter", "lowercaseletter", "titlecaseletter",
      "upper",    "lower",    "m",        "uppercase",       "lowercase",       "mark",
      "mn",       "latin",    "greek",    "combiningmark",   "nonspacingmark",  "cyrillic",
      "armenian", "georgian", "cherokee",
  };
  return std::find(std::begin(kWithCase), std::end(kWithCase), name) == std::end(kWithCase);
}

}  // namespace pozor
