#include "models/formats/safetensors_header.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include "models/formats/safetensors.h"
#include "models/json.h"

namespace pozor {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr size_t kMaxDimensions = 32;

struct TypeName {
  std::string_view name;
  DType type;
};
constexpr TypeName kTypes[] = {
    {"F32", DType::kF32},
    {"F64", DType::kF64},
    {"F16", DType::kF16},
    {"BF16", DType::kBF16},
    {"I64", DType::kI64},
    {"I32", DType::kI32},
    {"I16", DType::kI16},
    {"I8", DType::kI8},
    {"U8", DType::kU8},
    {"BOOL", DType::kBool},
    // Passengers only: no weight is unsigned.
    {"U64", DType::kI64},
    {"U32", DType::kI32},
    {"U16", DType::kI16},
};

// Of the format, but nothing that Pozor computes with.
constexpr std::string_view kUnsupportedTypes[] = {
    "C64",         "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ",
    "F8_E5M2FNUZ", "F4",      "F6_E2M3", "F6_E3M2",
};

bool LooksLikeText(std::string_view bytes) {
  return !bytes.empty() && std::all_of(bytes.begin(), bytes.end(), [](char c) {
    const auto u = static_cast<unsigned char>(c);
    return u >= 0x20 || u == '\n' || u == '\r' || u == '\t';
  });
}

std::string FirstLine(std::string_view text) {
  return std::string(text.substr(0, std::min<size_t>(text.find_first_of("\r\n"), 60)));
}

// "size 99960" in a Git LFS pointer
std::string PointerSize(std::string_view text) {
  const size_t at = text.find("\nsize ");
  if (at == std::string_view::npos) return "unknown";
  const std::string_view rest = text.substr(at + 6);
  return std::string(rest.substr(0, rest.find_first_not_of("0123456789")));
}

// The length field makes no sense: says what the file is instead, as far as one can see.
Status NotSafetensors(std::string_view bytes, uint64_t length, const std::string& name) {
  if (bytes.starts_with("version https://git-lfs.github.com/spec/")) {
    return Corrupt(name + ": a Git LFS pointer, the file itself (" + PointerSize(bytes) +
                   " bytes) was not downloaded; run `git lfs pull` in its repository");
  }
  if (bytes.starts_with("PK\x03\x04")) {
    return Corrupt(name + ": not safetensors but a zip archive (perhaps a PyTorch checkpoint)" +
                   "; convert the weights to safetensors");
  }
  if (LooksLikeText(bytes.substr(0, 256))) {
    return Corrupt(name + ": not safetensors but text (\"" + FirstLine(bytes) +
                   "\"); download the file again");
  }
  return Corrupt(name + ": header length " + std::to_string(length) +
                 " does not fit (the file has " + std::to_string(bytes.size()) +
                 " bytes, the format admits headers of " + std::to_string(kMaxSafetensorsHeader) +
                 "); download the file again");
}

// Reads one entry of the header. Errors are the part of the message after the tensor's name.
class EntryReader {
 public:
  EntryReader(const JsonValue& entry, size_t buffer) : entry_(entry), buffer_(buffer) {}

  std::optional<std::string> Read(TensorInfo* tensor, size_t* begin, size_t* end) {
    if (!entry_.is_object()) return "is " + entry_.Describe() + ", an object is needed";
    std::optional<std::string> error = ReadType(&tensor->dtype);
    if (!error) error = ReadShape(&tensor->shape);
    if (!error) error = ReadOffsets(begin, end);
    if (!error) error = CheckSize(*tensor, *end - *begin);
    return error;
  }

 private:
  std::optional<std::string> ReadType(DType* type) {
    const JsonValue* value = entry_.Find("dtype");
    if (value == nullptr) return "has no dtype";
    if (!value->is_string()) return "has dtype " + value->Describe() + ", a name is needed";
    const std::string_view name = value->as_string();
    for (const TypeName& known : kTypes) {
      if (known.name != name) continue;
      *type = known.type;
      return std::nullopt;
    }
    const bool other = std::find(std::begin(kUnsupportedTypes), std::end(kUnsupportedTypes),
                                 name) != std::end(kUnsupportedTypes);
    return (other ? "has the unsupported dtype " : "has the unknown dtype ") +
           std::string(name.substr(0, 40));
  }

  std::optional<std::string> ReadShape(std::vector<size_t>* shape) {
    const JsonValue* value = entry_.Find("shape");
    if (value == nullptr || !value->is_array()) return "has no shape";
    if (value->size() > kMaxDimensions) {
      return "has " + std::to_string(value->size()) + " dimensions, more than the " +
             std::to_string(kMaxDimensions) + " admitted";
    }
    for (const JsonValue& dimension : value->items()) {
      if (!dimension.is_int() || dimension.as_int() < 0) {
        return "has " + dimension.Describe() + " in its shape, a size is needed";
      }
      shape->push_back(static_cast<size_t>(dimension.as_int()));
    }
    return std::nullopt;
  }

  std::optional<std::string> ReadOffsets(size_t* begin, size_t* end) {
    const JsonValue* value = entry_.Find("data_offsets");
    if (value == nullptr || value->size() != 2 || !value->is_array()) {
      return "needs data_offsets of two values";
    }
    for (const JsonValue& offset : value->items()) {
      if (!offset.is_int() || offset.as_int() < 0) {
        return "has " + offset.Describe() + " in its data_offsets, " +
               (offset.is_int() ? "negative" : "not an integer of 63 bits");
      }
    }
    *begin = static_cast<size_t>(value->items()[0].as_int());
    *end = static_cast<size_t>(value->items()[1].as_int());
    const std::string offsets =
        "has data_offsets [" + std::to_string(*begin) + ", " + std::to_string(*end) + "], ";
    if (*end < *begin) return offsets + "the end before the begin";
    if (*end > buffer_) {
      return offsets + "beyond the " + std::to_string(buffer_) + " bytes of data in the file";
    }
    return std::nullopt;
  }

  std::optional<std::string> CheckSize(const TensorInfo& tensor, size_t span) {
    size_t bytes = SizeOf(tensor.dtype);
    for (size_t dimension : tensor.shape) {
      if (__builtin_mul_overflow(bytes, dimension, &bytes)) {
        return "has a shape whose product overflows";
      }
    }
    if (bytes != span) {
      return "needs " + std::to_string(bytes) +
             " bytes by its shape and dtype, its data_offsets span " + std::to_string(span);
    }
    return std::nullopt;
  }

  const JsonValue& entry_;
  size_t buffer_;
};

Status ReadMetadata(const JsonValue& value, const std::string& name, SafetensorsHeader* header) {
  bool good = value.is_object();
  for (const JsonMember& member : value.members()) {
    good = good && member.value.is_string();
    header->metadata.emplace_back(member.key, member.value.as_string());
  }
  if (good) return Status();
  return Corrupt(name + ": __metadata__ must map strings to strings; download the file again");
}

// Sorted by offset, the tensors must tile the buffer.
Status CheckTiling(const SafetensorsHeader& header, const std::vector<size_t>& ends, size_t buffer,
                   const std::string& name) {
  std::vector<size_t> order(header.tensors.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return std::pair(header.offsets[a], ends[a]) < std::pair(header.offsets[b], ends[b]);
  });
  size_t expected = 0;
  for (size_t i : order) {
    const size_t begin = header.offsets[i];
    if (begin != expected) {
      return Corrupt(name + ": " + header.tensors[i].name + " has data_offsets [" +
                     std::to_string(begin) + ", " + std::to_string(ends[i]) + "], " +
                     (begin < expected ? "an overlap with" : "a hole after") +
                     (expected == 0 ? " the start of the data" : " the tensor before it") +
                     "; download the file again");
    }
    expected = ends[i];
  }
  if (expected == buffer) return Status();
  return Corrupt(name + ": " + std::to_string(buffer - expected) +
                 " bytes after the last tensor; download the file again");
}

uint64_t HeaderLength(std::string_view bytes) {
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) {
    length |= static_cast<uint64_t>(static_cast<uint8_t>(bytes[i])) << (8 * i);
  }
  return length;
}

// The JSON text, without the spaces that pad it.
Result<std::string_view> HeaderText(std::string_view bytes, const std::string& name) {
  if (bytes.size() < kLengthBytes) {
    return Corrupt(name + ": " + std::to_string(bytes.size()) +
                   " bytes, a safetensors file has 8 at least; download the file again");
  }
  const uint64_t length = HeaderLength(bytes);
  if (length > kMaxSafetensorsHeader || length > bytes.size() - kLengthBytes) {
    return NotSafetensors(bytes, length, name);
  }
  std::string_view text = bytes.substr(kLengthBytes, length);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.empty()) return Corrupt(name + ": the header is empty; download the file again");
  if (text.front() == '{' && text.back() != '}') {
    return Corrupt(name +
                   ": trailing characters after the header's object; download the file again");
  }
  return text;
}

}  // namespace

Result<SafetensorsHeader> ParseSafetensorsHeader(std::span<const uint8_t> file,
                                                 const std::string& name) {
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  POZOR_TRY(const std::string_view text, HeaderText(bytes, name));
  POZOR_TRY(const JsonDocument document, ParseJson(text, name + ": header"));
  if (!document->is_object()) {
    return Corrupt(name + ": the header must be an object, it is " + document->Describe() +
                   "; download the file again");
  }
  if (const auto twice = document->DuplicateKey()) {
    return Corrupt(name + ": " + std::string(*twice) +
                   " stands in the header twice; download the file again");
  }
  SafetensorsHeader header;
  header.data_begin = kLengthBytes + HeaderLength(bytes);  // padding is part of the header
  const size_t buffer = file.size() - header.data_begin;
  std::vector<size_t> ends;
  for (const JsonMember& member : document->members()) {
    if (member.key == "__metadata__") {
      POZOR_RETURN_IF_ERROR(ReadMetadata(member.value, name, &header));
      continue;
    }
    TensorInfo tensor;
    tensor.name = std::string(member.key);
    tensor.source_index = header.tensors.size();
    size_t begin = 0, end = 0;
    if (const auto error = EntryReader(member.value, buffer).Read(&tensor, &begin, &end)) {
      return Corrupt(name + ": " + tensor.name.substr(0, 200) + " " + *error +
                     "; download the file again");
    }
    header.tensors.push_back(std::move(tensor));
    header.offsets.push_back(begin);
    ends.push_back(end);
  }
  POZOR_RETURN_IF_ERROR(CheckTiling(header, ends, buffer, name));
  return header;
}

}  // namespace pozor
