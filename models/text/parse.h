// Typed members of the JSON objects that make up a tokenizer.json, with messages that name them.
#ifndef POZOR_MODELS_TEXT_PARSE_H_
#define POZOR_MODELS_TEXT_PARSE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "models/json.h"
#include "pozor/status.h"

namespace pozor::parse {

// "<where>.<key>: <why>; <what to do>".
Status Bad(const std::string& where, std::string_view key, const std::string& why);
Status Missing(const std::string& where, std::string_view key);

// The value of "type".
Result<std::string_view> Type(const JsonValue& object, const std::string& where);

Result<bool> Bool(const JsonValue& object, std::string_view key, std::optional<bool> otherwise,
                  const std::string& where);
Result<std::string> String(const JsonValue& object, std::string_view key,
                           std::optional<std::string> otherwise, const std::string& where);
// At least 0.
Result<int64_t> Count(const JsonValue& object, std::string_view key,
                      std::optional<int64_t> otherwise, const std::string& where);

// {"String": s} or {"Regex": s}, or a plain string.
struct Pattern {
  std::string text;
  bool regex = false;
};
Result<Pattern> PatternOf(const JsonValue& object, const std::string& where);

// Deepest nesting of Sequence objects that is read.
inline constexpr int kMaxDepth = 16;

}  // namespace pozor::parse

#endif  // POZOR_MODELS_TEXT_PARSE_H_
