// GGUF, versions 2 and 3: metadata and the list of tensors, checked against the size of the file
// (docs/gguf.md of the ggml project).
#ifndef POZOR_MODELS_FORMATS_GGUF_HEADER_H_
#define POZOR_MODELS_FORMATS_GGUF_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/formats/ggml_blocks.h"
#include "pozor/status.h"

namespace pozor {

struct GgufValue {
  enum class Kind : uint8_t { kInt, kFloat, kBool, kText, kArray };
  Kind kind = Kind::kInt;
  int64_t integer = 0;  // kInt, kBool
  double number = 0;    // kFloat
  std::string_view text;

  // Of an array: elements all of one kind.
  Kind element = Kind::kInt;
  std::vector<std::string_view> texts;
  std::vector<double> numbers;  // integers, floats and booleans
};

// The metadata, by key. Texts lie in the file.
class GgufMetadata {
 public:
  const GgufValue* Find(std::string_view key) const;
  // Nothing if the key is absent or of another type.
  std::optional<int64_t> Int(std::string_view key) const;
  std::optional<double> Number(std::string_view key) const;  // of an integer or a float
  std::optional<bool> Flag(std::string_view key) const;
  std::string_view Text(std::string_view key) const;  // empty if absent

  const std::map<std::string, GgufValue, std::less<>>& values() const { return values_; }
  bool Add(std::string key, GgufValue value);

 private:
  std::map<std::string, GgufValue, std::less<>> values_;
};

struct GgufTensor {
  std::string name;
  std::vector<size_t> shape;  // outermost first, the reverse of the file's order
  GgmlType type = GgmlType::kF32;
  size_t offset = 0;  // in the file
};

struct GgufHeader {
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;
};

// `name` stands in the messages. The metadata refers to `file`.
Result<GgufHeader> ParseGgufHeader(std::span<const uint8_t> file, const std::string& name);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_GGUF_HEADER_H_
