// Small text helpers of the reports.
#ifndef POZOR_TOOLS_BENCH_TEXT_H_
#define POZOR_TOOLS_BENCH_TEXT_H_

#include <cstdio>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace pozor::tools {

inline std::string Cat(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text += part;
  return text;
}

// "12.34"
inline std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

// Three significant digits or whole numbers: "0.0123", "4.56", "78.9", "12345".
inline std::string Short(double value) {
  const double size = value < 0 ? -value : value;
  if (size >= 100) return Fixed(value, 0);
  if (size >= 10) return Fixed(value, 1);
  if (size >= 1) return Fixed(value, 2);
  char text[64];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

inline std::string Join(const std::vector<std::string>& parts, std::string_view between) {
  std::string text;
  for (const std::string& part : parts) {
    if (!text.empty()) text += between;
    text += part;
  }
  return text;
}

inline std::vector<std::string> SplitText(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_BENCH_TEXT_H_
