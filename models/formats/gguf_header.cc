#include "models/formats/gguf_header.h"

#include <algorithm>
#include <set>
#include <utility>

#include "models/formats/byte_cursor.h"
#include "models/formats/elements.h"

namespace pozor {
namespace {

constexpr uint32_t kMagic = 0x46554747;  // "GGUF"
constexpr uint64_t kMostKeys = uint64_t{1} << 16;
constexpr uint64_t kMostTensors = uint64_t{1} << 16;
constexpr uint64_t kMostElements = uint64_t{1} << 21;  // of an array
constexpr size_t kMostName = 64;                       // of a tensor, by the format
constexpr size_t kMostDimensions = 4;
constexpr size_t kDefaultAlignment = 32;
constexpr size_t kMostAlignment = size_t{1} << 20;

// Types of values, as numbered in the files.
enum ValueType : uint32_t {
  kUint8 = 0,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64
};

class GgufParser {
 public:
  GgufParser(std::span<const uint8_t> file, std::string name)
      : file_(file), cursor_(file), name_(std::move(name)) {}

  Result<GgufHeader> Parse() {
    POZOR_RETURN_IF_ERROR(ReadStart());
    for (uint64_t i = 0; i < keys_; ++i) POZOR_RETURN_IF_ERROR(ReadKey());
    for (uint64_t i = 0; i < tensors_; ++i) POZOR_RETURN_IF_ERROR(ReadTensor());
    POZOR_RETURN_IF_ERROR(Place());
    return std::move(header_);
  }

 private:
  Status Bad(const std::string& why) const {
    return Corrupt(name_ + ": " + why + "; download the file again");
  }
  Status CutShort() const {
    return Bad("the end of the file comes after byte " + std::to_string(file_.size()) +
               ", inside its header");
  }

  Status ReadStart() {
    if (cursor_.Take<uint32_t>() != kMagic) {
      return Bad("its magic is not GGUF: this is no GGUF file");
    }
    const uint32_t version = cursor_.Take<uint32_t>();
    if (version == 0x02000000 || version == 0x03000000) {
      return Unsupported(name_ + ": big-endian GGUF is not supported; convert the file");
    }
    if (version != 2 && version != 3) {
      return Unsupported(name_ + ": GGUF version " + std::to_string(version) +
                         " is not supported, only 2 and 3 are; convert the model again");
    }
    tensors_ = cursor_.Take<uint64_t>();
    keys_ = cursor_.Take<uint64_t>();
    if (cursor_.failed()) return CutShort();
    if (keys_ > kMostKeys || tensors_ > kMostTensors) {
      return Bad("the number of " + std::string(keys_ > kMostKeys ? "keys, " : "tensors, ") +
                 std::to_string(keys_ > kMostKeys ? keys_ : tensors_) + ", is that of no model");
    }
    return Status();
  }

  // A length and as many bytes.
  Result<std::string_view> ReadText() {
    const uint64_t size = cursor_.Take<uint64_t>();
    if (size > cursor_.left()) {
      return Bad("a string length of " + std::to_string(size) + " passes the end of the file, " +
                 std::to_string(cursor_.left()) + " bytes are left");
    }
    return cursor_.TakeText(size);
  }

  Status ReadKey() {
    POZOR_TRY(const std::string_view key, ReadText());
    const uint32_t type = cursor_.Take<uint32_t>();
    if (cursor_.failed()) return CutShort();
    GgufValue value;
    if (type == kArray) {
      POZOR_RETURN_IF_ERROR(ReadArray(key, &value));
    } else {
      POZOR_RETURN_IF_ERROR(ReadScalar(key, type, &value));
    }
    if (header_.metadata.Add(std::string(key), std::move(value))) return Status();
    return Bad("the key " + std::string(key.substr(0, 200)) + " is a duplicate");
  }

  Status ReadScalar(std::string_view key, uint32_t type, GgufValue* value) {
    using Kind = GgufValue::Kind;
    if (type == kString) {
      value->kind = Kind::kText;
      POZOR_TRY(value->text, ReadText());
      return Status();
    }
    if (type > kFloat64 || type == kArray) {
      return Bad("key " + std::string(key.substr(0, 200)) + " has the unknown value type " +
                 std::to_string(type));
    }
    value->kind = type == kBool                          ? Kind::kBool
                  : type == kFloat32 || type == kFloat64 ? Kind::kFloat
                                                         : Kind::kInt;
    if (type == kFloat32) value->number = cursor_.Take<float>();
    if (type == kFloat64) value->number = cursor_.Take<double>();
    if (value->kind != Kind::kFloat) value->integer = ReadInteger(type);
    return cursor_.failed() ? CutShort() : Status();
  }

  int64_t ReadInteger(uint32_t type) {
    switch (type) {
      case kUint8:
      case kBool:
        return cursor_.Take<uint8_t>();
      case kInt8:
        return cursor_.Take<int8_t>();
      case kUint16:
        return cursor_.Take<uint16_t>();
      case kInt16:
        return cursor_.Take<int16_t>();
      case kUint32:
        return cursor_.Take<uint32_t>();
      case kInt32:
        return cursor_.Take<int32_t>();
      default:
        return cursor_.Take<int64_t>();
    }
  }

  Status ReadArray(std::string_view key, GgufValue* value) {
    const uint32_t type = cursor_.Take<uint32_t>();
    const uint64_t count = cursor_.Take<uint64_t>();
    const std::string what = std::string(key.substr(0, 200));
    if (type == kArray) return Bad("key " + what + " nests arrays, which no model needs");
    const uint64_t least = type == kString || type >= kUint64 ? 8
                           : type >= kUint32 && type != kBool ? 4
                                                              : 1;
    if (count > std::min<uint64_t>(cursor_.left() / least, kMostElements)) {
      return Bad("key " + what + " has an array length of " + std::to_string(count) + ", " +
                 std::to_string(cursor_.left()) + " bytes are left");
    }
    value->kind = GgufValue::Kind::kArray;
    if (type == kString) value->texts.reserve(static_cast<size_t>(count));
    if (type != kString) value->numbers.reserve(static_cast<size_t>(count));
    for (uint64_t i = 0; i < count; ++i) {
      GgufValue element;
      POZOR_RETURN_IF_ERROR(ReadScalar(key, type, &element));
      value->element = element.kind;
      if (element.kind == GgufValue::Kind::kText) {
        value->texts.push_back(element.text);
      } else {
        value->numbers.push_back(element.kind == GgufValue::Kind::kFloat
                                     ? element.number
                                     : static_cast<double>(element.integer));
      }
    }
    return Status();
  }

  Status ReadTensor() {
    POZOR_TRY(const std::string_view name, ReadText());
    GgufTensor tensor;
    tensor.name = std::string(name.substr(0, 200));
    const std::string what = "tensor " + tensor.name;
    if (name.size() > kMostName) return Bad(what + " has a name longer than 64 bytes");
    if (!names_.insert(tensor.name).second) return Bad(what + " is a duplicate");
    const uint32_t dimensions = cursor_.Take<uint32_t>();
    if (dimensions > kMostDimensions) {
      return Bad(what + " has " + std::to_string(dimensions) + " dimensions, 4 are the most");
    }
    for (uint32_t i = 0; i < dimensions; ++i) {
      tensor.shape.push_back(static_cast<size_t>(cursor_.Take<uint64_t>()));
    }
    const size_t row = tensor.shape.empty() ? 1 : tensor.shape[0];
    std::reverse(tensor.shape.begin(), tensor.shape.end());
    tensor.type = static_cast<GgmlType>(cursor_.Take<uint32_t>());
    const uint64_t offset = cursor_.Take<uint64_t>();
    if (cursor_.failed()) return CutShort();
    const GgmlBlock block = BlockOf(tensor.type);
    if (block.weights == 0) {
      return Unsupported(name_ + ": " + what + " has the quantisation " +
                         GgmlTypeName(tensor.type) +
                         ", which is not supported; use a file of F32, F16, BF16, Q8_0, Q5_x, "
                         "Q4_x or K-quants");
    }
    if (row % block.weights != 0) {
      return Bad(what + ": a row of " + std::to_string(row) + " is not a multiple of " +
                 std::to_string(block.weights) + ", as " + GgmlTypeName(tensor.type) + " needs");
    }
    if (!ElementCount(tensor.shape).has_value()) return Bad(what + ": its size overflows");
    if (offset > file_.size()) return Bad(what + " lies outside the file");
    tensor.offset = static_cast<size_t>(offset);
    header_.tensors.push_back(std::move(tensor));
    return Status();
  }

  // Offsets become places in the file; each tensor lies there alone.
  Status Place() {
    size_t alignment = kDefaultAlignment;
    if (const GgufValue* value = header_.metadata.Find("general.alignment")) {
      const int64_t wanted = value->integer;
      const bool good = value->kind == GgufValue::Kind::kInt && wanted > 0 && wanted % 8 == 0 &&
                        static_cast<size_t>(wanted) <= kMostAlignment;
      if (!good) return Bad("general.alignment is not a multiple of 8");
      alignment = static_cast<size_t>(wanted);
    }
    const size_t begin = (cursor_.position() + alignment - 1) / alignment * alignment;
    std::vector<std::pair<size_t, size_t>> ranges;  // begin, index
    for (size_t i = 0; i < header_.tensors.size(); ++i) {
      GgufTensor& tensor = header_.tensors[i];
      const size_t offset = tensor.offset;
      if (offset % alignment != 0) {
        return Bad("tensor " + tensor.name + ": the offset " + std::to_string(offset) +
                   " is not aligned to " + std::to_string(alignment));
      }
      const size_t size = Bytes(tensor);
      if (begin > file_.size() || offset > file_.size() - begin ||
          size > file_.size() - begin - offset) {
        return Bad("tensor " + tensor.name + " lies outside the file (" + std::to_string(size) +
                   " bytes at offset " + std::to_string(offset) + ")");
      }
      tensor.offset += begin;
      if (size > 0) ranges.emplace_back(tensor.offset, i);
    }
    std::sort(ranges.begin(), ranges.end());
    for (size_t i = 1; i < ranges.size(); ++i) {
      const GgufTensor& before = header_.tensors[ranges[i - 1].second];
      if (before.offset + Bytes(before) <= ranges[i].first) continue;
      return Bad("tensor " + header_.tensors[ranges[i].second].name + " overlaps the tensor " +
                 before.name + " (overlap)");
    }
    return Status();
  }

  static size_t Bytes(const GgufTensor& tensor) {
    const GgmlBlock block = BlockOf(tensor.type);
    return *ElementCount(tensor.shape) / block.weights * block.bytes;
  }

  std::span<const uint8_t> file_;
  ByteCursor cursor_;
  std::string name_;
  uint64_t tensors_ = 0, keys_ = 0;
  std::set<std::string> names_;
  GgufHeader header_;
};

}  // namespace

const GgufValue* GgufMetadata::Find(std::string_view key) const {
  const auto found = values_.find(key);
  return found == values_.end() ? nullptr : &found->second;
}

std::optional<int64_t> GgufMetadata::Int(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr || value->kind != GgufValue::Kind::kInt) return std::nullopt;
  return value->integer;
}

std::optional<double> GgufMetadata::Number(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr) return std::nullopt;
  if (value->kind == GgufValue::Kind::kFloat) return value->number;
  if (value->kind == GgufValue::Kind::kInt) return static_cast<double>(value->integer);
  return std::nullopt;
}

std::optional<bool> GgufMetadata::Flag(std::string_view key) const {
  const GgufValue* value = Find(key);
  if (value == nullptr || value->kind != GgufValue::Kind::kBool) return std::nullopt;
  return value->integer != 0;
}

std::string_view GgufMetadata::Text(std::string_view key) const {
  const GgufValue* value = Find(key);
  return value == nullptr ? std::string_view() : value->text;
}

bool GgufMetadata::Add(std::string key, GgufValue value) {
  return values_.emplace(std::move(key), std::move(value)).second;
}

Result<GgufHeader> ParseGgufHeader(std::span<const uint8_t> file, const std::string& name) {
  return GgufParser(file, name).Parse();
}

}  // namespace pozor
