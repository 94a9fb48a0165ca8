#include "models/formats/elements.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <utility>

#include "kernels/check.h"
#include "models/formats/float_formats.h"

namespace pozor {
namespace {

constexpr size_t kMostElements = size_t{1} << 48;

template <class Stored, class Convert>
void ReadAs(const uint8_t* bytes, size_t count, float* out, Convert convert) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = convert(LoadUnaligned<Stored>(bytes + i * sizeof(Stored)));
  }
}

// Calls visit(element, place) for the elements [begin, begin + count) of a tensor in row-major
// order; `place` is where the element stands in memory, in elements.
template <class Visit>
void Walk(std::span<const size_t> shape, std::span<const size_t> strides, size_t begin,
          size_t count, Visit visit) {
  if (count == 0) return;
  if (shape.empty()) return visit(0, 0);
  std::vector<size_t> index(shape.size(), 0);
  size_t place = 0, rest = begin;
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = rest % shape[d];
    rest /= shape[d];
    place += index[d] * strides[d];
  }
  const size_t last = shape.size() - 1;
  for (size_t done = 0; done < count;) {
    const size_t run = std::min(count - done, shape[last] - index[last]);
    for (size_t i = 0; i < run; ++i) visit(done + i, place + i * strides[last]);
    done += run;
    index[last] += run;
    place += run * strides[last];
    for (size_t d = last; d > 0 && index[d] == shape[d]; --d) {
      place = place - index[d] * strides[d] + strides[d - 1];
      index[d] = 0;
      ++index[d - 1];
    }
  }
}

std::vector<size_t> RowMajor(std::span<const size_t> shape) {
  std::vector<size_t> strides(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) strides[d - 1] = strides[d] * shape[d];
  return strides;
}

void ReadStrided(const StoredTensor& tensor, size_t begin, size_t count, float* out) {
  const size_t size = SizeOf(tensor.info.dtype);
  const uint8_t* bytes = tensor.bytes;
  if (tensor.info.dtype == DType::kF32) {
    Walk(tensor.info.shape, tensor.strides, begin, count, [=](size_t i, size_t place) {
      out[i] = LoadUnaligned<float>(bytes + place * sizeof(float));
    });
    return;
  }
  Walk(tensor.info.shape, tensor.strides, begin, count, [=, &tensor](size_t i, size_t place) {
    WidenFloats(tensor.info.dtype, bytes + place * size, 1, out + i);
  });
}

void ReadScaled(const StoredTensor& tensor, size_t begin, size_t count, float* out) {
  const AffineScale& scale = *tensor.scale;
  const bool is_signed = tensor.info.dtype == DType::kI8;
  const std::span<const size_t> shape = tensor.info.shape;
  size_t inner = 1;  // elements from one step of the axis to the next
  for (size_t d = scale.axis + 1; d < shape.size(); ++d) inner *= shape[d];
  const size_t channels = scale.scales.size();
  const std::vector<size_t> strides = tensor.strides.empty() ? RowMajor(shape) : tensor.strides;
  Walk(shape, strides, begin, count, [&](size_t i, size_t place) {
    const uint8_t byte = tensor.bytes[place];
    const int32_t q = is_signed ? static_cast<int8_t>(byte) : byte;
    const size_t channel = channels == 1 ? 0 : (begin + i) / inner % channels;
    out[i] = static_cast<float>(q - scale.zeros[channel]) * scale.scales[channel];
  });
}

}  // namespace

std::string DTypeName(DType type) {
  switch (type) {
    case DType::kF32:
      return "F32";
    case DType::kF64:
      return "F64";
    case DType::kF16:
      return "F16";
    case DType::kBF16:
      return "BF16";
    case DType::kI64:
      return "I64";
    case DType::kI32:
      return "I32";
    case DType::kI16:
      return "I16";
    case DType::kI8:
      return "I8";
    case DType::kU8:
      return "U8";
    case DType::kBool:
      return "BOOL";
  }
  return "?";
}

bool IsFloatingPoint(DType type) {
  return type == DType::kF32 || type == DType::kF64 || type == DType::kF16 || type == DType::kBF16;
}

void WidenFloats(DType type, const uint8_t* bytes, size_t count, float* out) {
  if (count == 0) return;  // either address may be null
  switch (type) {
    case DType::kF32:
      std::memcpy(out, bytes, count * sizeof(float));
      return;
    case DType::kF64:
      ReadAs<double>(bytes, count, out, [](double v) { return static_cast<float>(v); });
      return;
    case DType::kF16:
      ReadAs<uint16_t>(bytes, count, out, F16ToFloat);
      return;
    case DType::kBF16:
      ReadAs<uint16_t>(bytes, count, out, Bf16ToFloat);
      return;
    default:
      POZOR_CHECK(false);
  }
}

Status NotFloatingPoint(const std::string& source, const TensorInfo& tensor) {
  return Corrupt(source + ": " + tensor.name + " has dtype " + DTypeName(tensor.dtype) +
                 ", floating point is needed; convert the weights");
}

std::optional<size_t> ElementCount(std::span<const size_t> shape) {
  if (std::find(shape.begin(), shape.end(), size_t{0}) != shape.end()) return 0;
  size_t count = 1;
  for (const size_t size : shape) {
    if (size > kMostElements / count) return std::nullopt;
    count *= size;
  }
  return count;
}

const MappedFile& StoredTensors::Keep(MappedFile file) {
  files_.push_back(std::make_unique<MappedFile>(std::move(file)));
  return *files_.back();
}

const uint8_t* StoredTensors::Keep(std::vector<uint8_t> bytes) {
  buffers_.push_back(std::move(bytes));
  return buffers_.back().data();
}

Status StoredTensors::Add(StoredTensor tensor) {
  if (!names_.emplace(tensor.info.name, stored_.size()).second) {
    return Corrupt(description_ + ": tensor '" + tensor.info.name.substr(0, 200) +
                   "' stands in the file twice; download the file again");
  }
  if (!tensor.strides.empty() && tensor.strides == RowMajor(tensor.info.shape)) {
    tensor.strides.clear();
  }
  tensor.info.source_index = stored_.size();
  infos_.push_back(tensor.info);
  stored_.push_back(std::move(tensor));
  return Status();
}

Status StoredTensors::CheckTotal() const {
  constexpr size_t kMostCopies = 8;
  constexpr size_t kSmall = size_t{1} << 20;
  size_t kept = kSmall, total = 0;
  for (const auto& file : files_) kept += file->size();
  for (const auto& buffer : buffers_) kept += buffer.size();
  for (const TensorInfo& info : infos_) {
    total += info.elements() * SizeOf(info.dtype);
    if (total / kMostCopies <= kept) continue;
    return Corrupt(
        description_ + ": tensor '" + info.name.substr(0, 200) +
        "' and those before it are views that show the same bytes so often that they are "
        "many times the file; save each tensor with elements of its own");
  }
  return Status();
}

Status StoredTensors::Read(const TensorInfo& tensor, size_t begin, size_t count, float* out) const {
  const StoredTensor& stored = stored_[tensor.source_index];
  const DType type = stored.info.dtype;
  if (stored.scale.has_value()) {
    ReadScaled(stored, begin, count, out);
    return Status();
  }
  if (!IsFloatingPoint(type)) return NotFloatingPoint(description_, stored.info);
  if (stored.strides.empty()) {
    WidenFloats(type, stored.bytes + begin * SizeOf(type), count, out);
  } else {
    ReadStrided(stored, begin, count, out);
  }
  return Status();
}

const float* StoredTensors::Map(const TensorInfo& tensor) const {
  const StoredTensor& stored = stored_[tensor.source_index];
  const bool aligned = reinterpret_cast<uintptr_t>(stored.bytes) % alignof(float) == 0;
  if (stored.info.dtype != DType::kF32 || !stored.strides.empty() || !aligned) return nullptr;
  return reinterpret_cast<const float*>(stored.bytes);
}

void StoredTensors::Release(const TensorInfo& tensor) const {
  const StoredTensor& stored = stored_[tensor.source_index];
  const size_t length = stored.info.elements() * SizeOf(stored.info.dtype);
  for (const auto& file : files_) {
    const std::less_equal<const uint8_t*> before;
    if (!before(file->data(), stored.bytes)) continue;
    if (!before(stored.bytes + length, file->data() + file->size())) continue;
    file->Release(static_cast<size_t>(stored.bytes - file->data()), length);
    return;
  }
}

}  // namespace pozor
