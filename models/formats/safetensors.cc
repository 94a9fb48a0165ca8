#include "models/formats/safetensors.h"

#include <limits>
#include <utility>

#include "models/formats/elements.h"
#include "models/formats/file.h"
#include "models/formats/float_formats.h"
#include "models/formats/safetensors_header.h"

namespace pozor {
namespace {

// Bytes of a tensor, for those who want integers.
class RawTensors {
 public:
  virtual ~RawTensors() = default;
  virtual const uint8_t* Bytes(const TensorInfo& tensor) const = 0;
};

class SafetensorsFile final : public TensorSource, public RawTensors {
 public:
  SafetensorsFile(MappedFile file, SafetensorsHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}

  std::span<const TensorInfo> tensors() const override { return header_.tensors; }
  const std::string& description() const override { return file_.path(); }

  const uint8_t* Bytes(const TensorInfo& tensor) const override {
    return file_.data() + header_.data_begin + header_.offsets[tensor.source_index];
  }

  Status Read(const TensorInfo& tensor, size_t begin, size_t count, float* out) const override {
    if (!IsFloatingPoint(tensor.dtype)) return NotFloatingPoint(file_.path(), tensor);
    WidenFloats(tensor.dtype, Bytes(tensor) + begin * SizeOf(tensor.dtype), count, out);
    return Status();
  }

  const float* Map(const TensorInfo& tensor) const override {
    const uint8_t* bytes = Bytes(tensor);
    const bool aligned = reinterpret_cast<uintptr_t>(bytes) % alignof(float) == 0;
    return tensor.dtype == DType::kF32 && aligned ? reinterpret_cast<const float*>(bytes) : nullptr;
  }

  void Release(const TensorInfo& tensor) const override {
    file_.Release(header_.data_begin + header_.offsets[tensor.source_index],
                  tensor.elements() * SizeOf(tensor.dtype));
  }

 private:
  MappedFile file_;
  SafetensorsHeader header_;
};

}  // namespace

Result<std::shared_ptr<const TensorSource>> OpenSafetensors(const std::string& path) {
  POZOR_TRY(MappedFile file, MappedFile::Open(path));
  POZOR_TRY(SafetensorsHeader header, ParseSafetensorsHeader({file.data(), file.size()}, path));
  return std::shared_ptr<const TensorSource>(
      std::make_shared<const SafetensorsFile>(std::move(file), std::move(header)));
}

Result<std::vector<int32_t>> ReadInt32(const TensorSource& source, const TensorInfo& tensor) {
  const auto* raw = dynamic_cast<const RawTensors*>(&source);
  if (raw == nullptr || (tensor.dtype != DType::kI32 && tensor.dtype != DType::kI64)) {
    return InvalidArgument(source.description() + ": " + tensor.name + " has dtype " +
                           DTypeName(tensor.dtype) + ", integers are needed");
  }
  const uint8_t* bytes = raw->Bytes(tensor);
  std::vector<int32_t> out(tensor.elements());
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t value = tensor.dtype == DType::kI32 ? LoadUnaligned<int32_t>(bytes + 4 * i)
                                                      : LoadUnaligned<int64_t>(bytes + 8 * i);
    if (value < std::numeric_limits<int32_t>::min() ||
        value > std::numeric_limits<int32_t>::max()) {
      return Corrupt(source.description() + ": " + tensor.name + " holds " + std::to_string(value) +
                     ", more than 32 bits; check the file");
    }
    out[i] = static_cast<int32_t>(value);
  }
  return out;
}

}  // namespace pozor
