// Strict JSON as a small immutable tree: what every model file except the weights is read with.
#ifndef POZOR_MODELS_JSON_H_
#define POZOR_MODELS_JSON_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "pozor/status.h"

namespace pozor {

inline constexpr size_t kMaxJsonBytes = size_t{256} << 20;
inline constexpr size_t kMaxJsonDepth = 128;

enum class JsonType : uint8_t { kNull, kBool, kInt, kDouble, kString, kArray, kObject };

struct JsonMember;

// A view into its JsonDocument, which must outlive it. Cheap to copy.
class JsonValue {
 public:
  JsonType type() const { return type_; }
  bool is_null() const { return type_ == JsonType::kNull; }
  bool is_bool() const { return type_ == JsonType::kBool; }
  bool is_int() const { return type_ == JsonType::kInt; }
  bool is_number() const { return type_ == JsonType::kInt || type_ == JsonType::kDouble; }
  bool is_string() const { return type_ == JsonType::kString; }
  bool is_array() const { return type_ == JsonType::kArray; }
  bool is_object() const { return type_ == JsonType::kObject; }

  // Of the value's own type only; another type gives false, 0 or an empty view.
  bool as_bool() const { return is_bool() && integer_ != 0; }
  int64_t as_int() const { return is_int() ? integer_ : 0; }
  double as_double() const {
    return is_int() ? static_cast<double>(integer_) : type_ == JsonType::kDouble ? number_ : 0.0;
  }
  std::string_view as_string() const {
    return is_string() ? std::string_view(text_, size_) : std::string_view();
  }

  // Elements of an array, members of an object in the order of the file.
  std::span<const JsonValue> items() const {
    return is_array() ? std::span<const JsonValue>(items_, size_) : std::span<const JsonValue>();
  }
  inline std::span<const JsonMember> members() const;
  size_t size() const { return size_; }  // of an array, an object or a string

  // The member of an object; null if there is none. The last one wins if the key is repeated.
  // Linear: for large objects use members().
  const JsonValue* Find(std::string_view key) const;

  // A key that an object holds twice.
  std::optional<std::string_view> DuplicateKey() const;

  // What it is, for messages: "null", "true", "12", "\"text\"", "an array", "an object".
  std::string Describe() const;

 private:
  friend class JsonBuilder;
  JsonType type_ = JsonType::kNull;
  size_t size_ = 0;
  union {
    int64_t integer_ = 0;
    double number_;
    const char* text_;
    const JsonValue* items_;
    const JsonMember* members_;
  };
};

struct JsonMember {
  std::string_view key;
  JsonValue value;
};

std::span<const JsonMember> JsonValue::members() const {
  return is_object() ? std::span<const JsonMember>(members_, size_) : std::span<const JsonMember>();
}

// Owns the tree. Copies share it.
class JsonDocument {
 public:
  struct Storage;
  explicit JsonDocument(std::shared_ptr<const Storage> storage);

  const JsonValue& root() const { return *root_; }
  const JsonValue* operator->() const { return root_; }
  const JsonValue& operator*() const { return *root_; }

 private:
  std::shared_ptr<const Storage> storage_;
  const JsonValue* root_;
};

// RFC 8259 without exceptions: valid UTF-8, no trailing text, at most kMaxJsonDepth levels and
// kMaxJsonBytes bytes. Integers beyond 64 bits are read as doubles. `name` stands in the messages.
// The text need not outlive the document.
Result<JsonDocument> ParseJson(std::string_view text, const std::string& name);

// The same of a regular file.
Result<JsonDocument> ReadJsonFile(const std::string& path);

}  // namespace pozor

#endif  // POZOR_MODELS_JSON_H_
