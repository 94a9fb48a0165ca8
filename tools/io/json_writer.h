// Writes JSON on one line, in the order of the calls.
#ifndef POZOR_TOOLS_IO_JSON_WRITER_H_
#define POZOR_TOOLS_IO_JSON_WRITER_H_

#include <concepts>
#include <string>
#include <string_view>

namespace pozor::tools {

class JsonWriter {
 public:
  // Containers; a name is given inside objects only.
  JsonWriter& BeginObject(std::string_view name = {}) { return Begin(name, '{'); }
  JsonWriter& EndObject() { return End('}'); }
  JsonWriter& BeginArray(std::string_view name = {}) { return Begin(name, '['); }
  JsonWriter& EndArray() { return End(']'); }

  // Members of an object.
  JsonWriter& Add(std::string_view name, std::string_view value);
  JsonWriter& Add(std::string_view name, const char* value) {
    return Add(name, std::string_view(value));
  }
  template <std::integral T>
  JsonWriter& Add(std::string_view name, T value) {
    if constexpr (std::same_as<T, bool>) {
      return Raw(name, value ? "true" : "false");
    } else {
      return Raw(name, std::to_string(value));
    }
  }
  JsonWriter& Add(std::string_view name, double value);  // null if it is not finite
  JsonWriter& AddNull(std::string_view name) { return Raw(name, "null"); }

  // Elements of an array.
  JsonWriter& Append(std::string_view value);
  template <std::integral T>
  JsonWriter& Append(T value) {
    return Raw({}, std::to_string(value));
  }

  const std::string& text() const { return text_; }

 private:
  JsonWriter& Begin(std::string_view name, char bracket);
  JsonWriter& End(char bracket);
  JsonWriter& Raw(std::string_view name, std::string_view value);
  void Separate(std::string_view name);
  void Quote(std::string_view value);

  std::string text_;
};

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_IO_JSON_WRITER_H_
