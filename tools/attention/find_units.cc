#include "tools/attention/find_units.h"

#include <algorithm>
#include <charconv>

namespace pozor::tools {
namespace {

constexpr size_t kMostListed = 20;

std::string Lower(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// Columns of a terminal, roughly: East Asian wide characters and emoji take two, marks none.
size_t ColumnsOf(uint32_t point) {
  const bool mark = (point >= 0x300 && point < 0x370) || (point >= 0x200B && point <= 0x200D) ||
                    (point >= 0xFE00 && point <= 0xFE0F);
  const bool wide = (point >= 0x1100 && point < 0x1160) || (point >= 0x2E80 && point < 0xA4D0) ||
                    (point >= 0xAC00 && point < 0xD7A4) || (point >= 0xF900 && point < 0xFB00) ||
                    (point >= 0xFF00 && point < 0xFF61) || (point >= 0x1F300 && point < 0x1FB00) ||
                    (point >= 0x20000 && point < 0x40000);
  return mark ? 0 : wide ? 2 : 1;
}

bool IsControl(uint32_t point) {
  return point < 0x20 || (point >= 0x7F && point < 0xA0) || (point >= 0x200E && point <= 0x200F) ||
         (point >= 0x2028 && point <= 0x202E) || (point >= 0x2066 && point <= 0x2069) ||
         point == 0xFEFF;
}

// Calls use(bytes, code point) for each character of well-formed UTF-8.
template <class Use>
void ForEachCharacter(std::string_view text, Use&& use) {
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i]);
    const size_t length = std::min<size_t>(first >= 0xF0   ? 4
                                           : first >= 0xE0 ? 3
                                           : first >= 0xC0 ? 2
                                                           : 1,
                                           text.size() - i);
    uint32_t point = length == 1 ? first : first & (0x7Fu >> length);
    for (size_t k = 1; k < length; ++k) {
      point = point << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3F);
    }
    use(text.substr(i, length), point);
    i += length;
  }
}

}  // namespace

Result<std::vector<size_t>> FindUnits(const std::vector<Unit>& units, const std::string& name,
                                      const std::string& option) {
  std::vector<size_t> found;
  size_t number = 0;
  const char* end = name.data() + name.size();
  if (name.starts_with('@') && name.size() > 1) {
    const auto parsed = std::from_chars(name.data() + 1, end, number);
    if (parsed.ec == std::errc() && parsed.ptr == end && number < units.size())
      return std::vector{number};
  }
  for (size_t i = 0; i < units.size(); ++i) {
    if (units[i].text == name) found.push_back(i);
  }
  if (found.empty()) {
    for (size_t i = 0; i < units.size(); ++i) {
      if (Lower(units[i].text) == Lower(name)) found.push_back(i);
    }
  }
  if (!found.empty()) return found;
  std::string list;
  for (size_t i = 0; i < std::min(units.size(), kMostListed); ++i) list += " " + units[i].text;
  if (units.size() > kMostListed) list += " ...";
  return InvalidArgument(option + ": '" + name + "' is not in the text, which has" + list +
                         "; name one of them, or @ and a number from 0");
}

std::string Printable(const std::string& text, size_t width) {
  std::string line;
  size_t columns = 0, kept = 0;
  ForEachCharacter(text, [&](std::string_view bytes, uint32_t point) {
    line += IsControl(point) ? std::string_view("?") : bytes;
    columns += IsControl(point) ? 1 : ColumnsOf(point);
    if (columns + 1 <= width) kept = line.size();
  });
  if (columns <= width) return line;
  return line.substr(0, kept) + "~";
}

std::string PadTo(const std::string& text, size_t width) {
  size_t columns = 0;
  ForEachCharacter(text, [&](std::string_view, uint32_t point) { columns += ColumnsOf(point); });
  return columns < width ? text + std::string(width - columns, ' ') : text;
}

}  // namespace pozor::tools
