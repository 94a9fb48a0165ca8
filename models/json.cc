#include "models/json.h"

#include <algorithm>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/formats/file.h"
#include "simdjson.h"

namespace pozor {

// The document keeps the unescaped strings; nodes lie in blocks, children of one parent side by
// side.
struct JsonDocument::Storage {
  simdjson::dom::document document;
  std::vector<std::unique_ptr<std::byte[]>> blocks;
  JsonValue root;
};

class JsonBuilder {
 public:
  explicit JsonBuilder(JsonDocument::Storage& storage) : storage_(storage) {}

  JsonValue Build(simdjson::dom::element element) {
    JsonValue value;
    using simdjson::dom::element_type;
    switch (element.type()) {
      case element_type::NULL_VALUE:
        break;
      case element_type::BOOL:
        value.type_ = JsonType::kBool;
        value.integer_ = element.get_bool().value_unsafe() ? 1 : 0;
        break;
      case element_type::INT64:
        value.type_ = JsonType::kInt;
        value.integer_ = element.get_int64().value_unsafe();
        break;
      case element_type::UINT64:  // does not fit in int64
        value.type_ = JsonType::kDouble;
        value.number_ = static_cast<double>(element.get_uint64().value_unsafe());
        break;
      case element_type::DOUBLE:
        value.type_ = JsonType::kDouble;
        value.number_ = element.get_double().value_unsafe();
        break;
      case element_type::STRING: {
        const std::string_view text = element.get_string().value_unsafe();
        value.type_ = JsonType::kString;
        value.text_ = text.data();
        value.size_ = text.size();
        break;
      }
      case element_type::ARRAY:
        BuildArray(element.get_array().value_unsafe(), value);
        break;
      case element_type::OBJECT:
        BuildObject(element.get_object().value_unsafe(), value);
        break;
    }
    return value;
  }

 private:
  // The stored size saturates at 2^24 - 1; beyond that the elements are counted.
  template <class Container>
  static size_t Count(const Container& container) {
    const size_t stored = container.size();
    if (stored < 0xFFFFFF) return stored;
    size_t count = 0;
    for (auto it = container.begin(); it != container.end(); ++it) ++count;
    return count;
  }

  void BuildArray(const simdjson::dom::array& array, JsonValue& value) {
    value.type_ = JsonType::kArray;
    value.size_ = Count(array);
    JsonValue* items = Take<JsonValue>(value.size_);
    value.items_ = items;
    for (simdjson::dom::element child : array) *items++ = Build(child);
  }

  void BuildObject(const simdjson::dom::object& object, JsonValue& value) {
    value.type_ = JsonType::kObject;
    value.size_ = Count(object);
    JsonMember* members = Take<JsonMember>(value.size_);
    value.members_ = members;
    for (simdjson::dom::key_value_pair child : object) {
      members->key = child.key;
      members->value = Build(child.value);
      ++members;
    }
  }

  template <class T>
  T* Take(size_t count) {
    static_assert(std::is_trivially_destructible_v<T> && alignof(T) <= alignof(std::max_align_t));
    const size_t bytes = count * sizeof(T);
    if (bytes > room_) {
      room_ = std::max(bytes, size_t{1} << 14);
      storage_.blocks.push_back(std::make_unique_for_overwrite<std::byte[]>(room_));
      next_ = storage_.blocks.back().get();
    }
    T* out = reinterpret_cast<T*>(next_);
    std::uninitialized_default_construct_n(out, count);
    next_ += bytes;
    room_ -= bytes;
    return out;
  }

  JsonDocument::Storage& storage_;
  std::byte* next_ = nullptr;
  size_t room_ = 0;
};

namespace {

// Appends ".0" to integers of 20 digits or more, which simdjson refuses. Real files have them:
// "model_max_length": 1000000000000000019884624838656.
std::string LongIntegersAsDoubles(std::string_view text) {
  std::string out;
  out.reserve(text.size() + 16);
  size_t i = 0;
  while (i < text.size()) {
    const size_t begin = i;
    if (text[i] == '"') {
      for (++i; i < text.size() && text[i] != '"'; ++i) i += text[i] == '\\' ? 1 : 0;
      i = std::min(i + 1, text.size());
      out.append(text.substr(begin, i - begin));
      continue;
    }
    bool integer = true;
    while (i < text.size() && (('0' <= text[i] && text[i] <= '9') || text[i] == '.' ||
                               text[i] == 'e' || text[i] == 'E')) {
      integer = integer && '0' <= text[i] && text[i] <= '9';
      ++i;
    }
    if (i == begin) ++i;
    out.append(text.substr(begin, i - begin));
    if (integer && i - begin >= 19) out.append(".0");
  }
  return out;
}

simdjson::error_code ParseInto(std::string_view text, simdjson::dom::document& document,
                               simdjson::dom::element* root) {
  simdjson::dom::parser parser(kMaxJsonBytes);
  const simdjson::error_code allocated = parser.allocate(text.size(), kMaxJsonDepth);
  if (allocated) return allocated;
  return parser.parse_into_document(document, text.data(), text.size(), true).get(*root);
}

}  // namespace

const JsonValue* JsonValue::Find(std::string_view key) const {
  const std::span<const JsonMember> all = members();
  for (size_t i = all.size(); i > 0; --i) {
    if (all[i - 1].key == key) return &all[i - 1].value;
  }
  return nullptr;
}

std::optional<std::string_view> JsonValue::DuplicateKey() const {
  std::vector<std::string_view> keys;
  keys.reserve(members().size());
  for (const JsonMember& member : members()) keys.push_back(member.key);
  std::sort(keys.begin(), keys.end());
  const auto twice = std::adjacent_find(keys.begin(), keys.end());
  if (twice == keys.end()) return std::nullopt;
  return *twice;
}

std::string JsonValue::Describe() const {
  switch (type_) {
    case JsonType::kNull:
      return "null";
    case JsonType::kBool:
      return integer_ != 0 ? "true" : "false";
    case JsonType::kInt:
      return std::to_string(integer_);
    case JsonType::kDouble: {
      char buffer[40];
      std::snprintf(buffer, sizeof buffer, "%.9g", number_);
      return buffer;
    }
    case JsonType::kString:
      return "\"" + std::string(as_string().substr(0, 80)) + "\"";
    case JsonType::kArray:
      return "an array";
    case JsonType::kObject:
      return "an object";
  }
  return {};
}

JsonDocument::JsonDocument(std::shared_ptr<const Storage> storage)
    : storage_(std::move(storage)), root_(&storage_->root) {}

Result<JsonDocument> ParseJson(std::string_view text, const std::string& name) {
  if (text.size() > kMaxJsonBytes) {
    return Corrupt(name + ": " + std::to_string(text.size()) + " bytes of JSON, more than the " +
                   std::to_string(kMaxJsonBytes) + " admitted; check the file");
  }
  auto storage = std::make_shared<JsonDocument::Storage>();
  simdjson::dom::element root;
  simdjson::error_code error = ParseInto(text, storage->document, &root);
  if (error == simdjson::NUMBER_ERROR) {
    error = ParseInto(LongIntegersAsDoubles(text), storage->document, &root);
  }
  if (error) {
    return Corrupt(name + ": not valid JSON (" + simdjson::error_message(error) +
                   "); download the file again");
  }
  storage->root = JsonBuilder(*storage).Build(root);
  storage->document.tape.reset();  // the nodes have it all; strings stay in string_buf
  return JsonDocument(std::move(storage));
}

Result<JsonDocument> ReadJsonFile(const std::string& path) {
  POZOR_TRY(const std::string text, ReadWholeFile(path, kMaxJsonBytes));
  return ParseJson(text, path);
}

}  // namespace pozor
