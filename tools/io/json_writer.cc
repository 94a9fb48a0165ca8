#include "tools/io/json_writer.h"

#include <charconv>
#include <cmath>
#include <cstdio>

namespace pozor::tools {

JsonWriter& JsonWriter::Add(std::string_view name, std::string_view value) {
  Separate(name);
  Quote(value);
  return *this;
}

JsonWriter& JsonWriter::Add(std::string_view name, double value) {
  if (!std::isfinite(value)) return AddNull(name);
  char text[40];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return Raw(name, std::string_view(text, static_cast<size_t>(end.ptr - text)));
}

JsonWriter& JsonWriter::Append(std::string_view value) {
  Separate({});
  Quote(value);
  return *this;
}

JsonWriter& JsonWriter::Begin(std::string_view name, char bracket) {
  Separate(name);
  text_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::End(char bracket) {
  text_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::Raw(std::string_view name, std::string_view value) {
  Separate(name);
  text_ += value;
  return *this;
}

void JsonWriter::Separate(std::string_view name) {
  const char last = text_.empty() ? '[' : text_.back();
  if (last != '{' && last != '[') text_ += ',';
  if (name.empty()) return;
  Quote(name);
  text_ += ':';
}

// Control characters, quotes and backslashes are escaped; so are U+2028 and U+2029, which end a
// line for some readers of JSON lines.
void JsonWriter::Quote(std::string_view value) {
  text_ += '"';
  for (size_t i = 0; i < value.size(); ++i) {
    const auto byte = static_cast<unsigned char>(value[i]);
    const std::string_view three = value.substr(i, 3);
    if (byte == '"' || byte == '\\') {
      text_ += '\\';
      text_ += value[i];
    } else if (byte < 0x20 || byte == 0x7F) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", byte);
      text_ += escape;
    } else if (three == "\xE2\x80\xA8" || three == "\xE2\x80\xA9") {
      text_ += three.back() == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      text_ += value[i];
    }
  }
  text_ += '"';
}

}  // namespace pozor::tools
