#include "tools/bench/json_writer.h"

#include <cmath>
#include <cstdio>

namespace pozor::tools {

std::string JsonQuote(std::string_view text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (c == '\n') {
      quoted += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      quoted += escape;
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string JsonNumber(double number, int digits) {
  if (!std::isfinite(number)) return "null";
  char text[40];
  std::snprintf(text, sizeof text, "%.*g", digits, number);
  return text;
}

void JsonWriter::NewLine() {
  if (indent_ == 0) return;
  text_ += '\n';
  text_.append(levels_.size() * static_cast<size_t>(indent_), ' ');
}

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (levels_.empty()) return;
  if (!levels_.back().first) text_ += indent_ == 0 ? ", " : ",";
  levels_.back().first = false;
  NewLine();
}

JsonWriter& JsonWriter::Begin(char bracket) {
  Separate();
  text_ += bracket;
  levels_.push_back({});
  return *this;
}

JsonWriter& JsonWriter::End(char bracket) {
  const bool empty = levels_.back().first;
  levels_.pop_back();
  if (!empty) NewLine();
  text_ += bracket;
  return *this;
}

JsonWriter& JsonWriter::Key(std::string_view key) {
  Separate();
  text_ += JsonQuote(key) + ": ";
  after_key_ = true;
  return *this;
}

JsonWriter& JsonWriter::Raw(std::string_view json) {
  Separate();
  text_ += json;
  return *this;
}

JsonWriter& JsonWriter::Value(std::string_view text) { return Raw(JsonQuote(text)); }
JsonWriter& JsonWriter::Value(double number) { return Raw(JsonNumber(number)); }
JsonWriter& JsonWriter::Value(bool flag) { return Raw(flag ? "true" : "false"); }

JsonWriter& JsonWriter::Array(std::span<const double> numbers, int digits) {
  std::string json = "[";
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) json += ", ";
    json += JsonNumber(numbers[i], digits);
  }
  return Raw(json + "]");
}

JsonWriter& JsonWriter::Array(std::span<const std::string> texts) {
  std::string json = "[";
  for (size_t i = 0; i < texts.size(); ++i) {
    if (i > 0) json += ", ";
    json += JsonQuote(texts[i]);
  }
  return Raw(json + "]");
}

}  // namespace pozor::tools
