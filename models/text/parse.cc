#include "models/text/parse.h"

namespace pozor::parse {

Status Bad(const std::string& where, std::string_view key, const std::string& why) {
  return Unsupported(where + "." + std::string(key) + ": " + why +
                     "; correct the file or save the tokenizer again");
}

Status Missing(const std::string& where, std::string_view key) {
  return Corrupt(where + ": \"" + std::string(key) +
                 "\" is missing; correct the file or save the tokenizer again");
}

Result<std::string_view> Type(const JsonValue& object, const std::string& where) {
  if (!object.is_object()) return Bad(where, "type", object.Describe() + " is not an object");
  const JsonValue* type = object.Find("type");
  if (type == nullptr) return Missing(where, "type");
  if (!type->is_string()) return Bad(where, "type", type->Describe() + " is not a string");
  return type->as_string();
}

Result<bool> Bool(const JsonValue& object, std::string_view key, std::optional<bool> otherwise,
                  const std::string& where) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr || value->is_null()) {
    if (otherwise) return *otherwise;
    return Missing(where, key);
  }
  if (!value->is_bool()) return Bad(where, key, value->Describe() + " is not true or false");
  return value->as_bool();
}

Result<std::string> String(const JsonValue& object, std::string_view key,
                           std::optional<std::string> otherwise, const std::string& where) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr || value->is_null()) {
    if (otherwise) return std::move(*otherwise);
    return Missing(where, key);
  }
  if (!value->is_string()) return Bad(where, key, value->Describe() + " is not a string");
  return std::string(value->as_string());
}

Result<int64_t> Count(const JsonValue& object, std::string_view key,
                      std::optional<int64_t> otherwise, const std::string& where) {
  const JsonValue* value = object.Find(key);
  if (value == nullptr || value->is_null()) {
    if (otherwise) return *otherwise;
    return Missing(where, key);
  }
  if (!value->is_int() || value->as_int() < 0) {
    return Bad(where, key, value->Describe() + " is not a number from 0 up");
  }
  return value->as_int();
}

Result<Pattern> PatternOf(const JsonValue& object, const std::string& where) {
  const JsonValue* value = object.Find("pattern");
  if (value == nullptr) return Missing(where, "pattern");
  if (value->is_string()) return Pattern{std::string(value->as_string()), false};
  for (const char* kind : {"String", "Regex"}) {
    const JsonValue* text = value->is_object() ? value->Find(kind) : nullptr;
    if (text != nullptr && text->is_string()) {
      return Pattern{std::string(text->as_string()), kind[0] == 'R'};
    }
  }
  return Bad(where, "pattern", value->Describe() + " is neither a String nor a Regex");
}

}  // namespace pozor::parse
