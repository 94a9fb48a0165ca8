// Writes JSON text value by value: commas, indentation, escapes and numbers.
#ifndef POZOR_TOOLS_BENCH_JSON_WRITER_H_
#define POZOR_TOOLS_BENCH_JSON_WRITER_H_

#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pozor::tools {

// Calls must nest as the JSON does. Not-a-number and infinities are written as null, which is all
// that JSON has for them.
class JsonWriter {
 public:
  // indent 0: everything on one line.
  explicit JsonWriter(int indent = 0) : indent_(indent) {}

  JsonWriter& BeginObject() { return Begin('{'); }
  JsonWriter& EndObject() { return End('}'); }
  JsonWriter& BeginArray() { return Begin('['); }
  JsonWriter& EndArray() { return End(']'); }
  JsonWriter& Key(std::string_view key);

  JsonWriter& Value(std::string_view text);
  JsonWriter& Value(const char* text) { return Value(std::string_view(text)); }
  JsonWriter& Value(const std::string& text) { return Value(std::string_view(text)); }
  JsonWriter& Value(double number);
  JsonWriter& Value(bool flag);
  template <std::integral T>
  JsonWriter& Value(T number) {
    return Raw(std::to_string(number));
  }
  JsonWriter& Null() { return Raw("null"); }
  JsonWriter& Raw(std::string_view json);  // already JSON

  // An array of scalars on one line, `digits` significant digits a number.
  JsonWriter& Array(std::span<const double> numbers, int digits = 7);
  JsonWriter& Array(std::span<const std::string> texts);

  template <class T>
  JsonWriter& Field(std::string_view key, const T& value) {
    return Key(key).Value(value);
  }

  const std::string& text() const { return text_; }

 private:
  struct Level {
    bool first = true;
  };
  JsonWriter& Begin(char bracket);
  JsonWriter& End(char bracket);
  void Separate();
  void NewLine();

  int indent_;
  bool after_key_ = false;
  std::vector<Level> levels_;
  std::string text_;
};

// "text" with quotes and escapes.
std::string JsonQuote(std::string_view text);

// Shortest text of `digits` significant digits, or "null".
std::string JsonNumber(double number, int digits = 9);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_BENCH_JSON_WRITER_H_
