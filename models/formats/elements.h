// Tensors whose elements lie in mapped files: their layout, and a source made of such tensors.
#ifndef POZOR_MODELS_FORMATS_ELEMENTS_H_
#define POZOR_MODELS_FORMATS_ELEMENTS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/weights.h"
#include "kernels/types.h"
#include "models/formats/file.h"
#include "pozor/status.h"

namespace pozor {

// "F32", "I64", ...
std::string DTypeName(DType type);

bool IsFloatingPoint(DType type);

// Widens `count` elements of a floating-point type at `bytes`, any address.
void WidenFloats(DType type, const uint8_t* bytes, size_t count, float* out);

// The error of a tensor that would have to be floating point.
Status NotFloatingPoint(const std::string& source, const TensorInfo& tensor);

// The product of the dimensions, or nothing if it exceeds 2^48.
std::optional<size_t> ElementCount(std::span<const size_t> shape);

// How the integers of a quantised tensor stand for numbers: (q - zero) * scale, with one scale and
// zero for all, or one of each along a dimension.
struct AffineScale {
  std::vector<float> scales;
  std::vector<int32_t> zeros;  // as many as scales
  size_t axis = 0;
};

struct StoredTensor {
  TensorInfo info;  // the shape as callers see it
  const uint8_t* bytes = nullptr;
  std::vector<size_t> strides;       // of each dimension in elements; empty: row-major
  std::optional<AffineScale> scale;  // of kI8 and kU8
};

// Tensors in mapped files and in small buffers of decoded values.
class StoredTensors : public TensorSource {
 public:
  explicit StoredTensors(std::string description) : description_(std::move(description)) {}

  // A file stays mapped, a buffer stays, as long as the source lives.
  const MappedFile& Keep(MappedFile file);
  const uint8_t* Keep(std::vector<uint8_t> bytes);

  // The bytes of the tensor must lie in what is kept. An equal name is Corrupt.
  Status Add(StoredTensor tensor);

  // Corrupt if all tensors together are much larger than what is kept: views of the same bytes,
  // under many names or within one tensor, would make every walk over the tensors long.
  Status CheckTotal() const;

  bool Has(std::string_view name) const { return names_.contains(name); }

  std::span<const TensorInfo> tensors() const override { return infos_; }
  const std::string& description() const override { return description_; }
  Status Read(const TensorInfo& tensor, size_t begin, size_t count, float* out) const override;
  const float* Map(const TensorInfo& tensor) const override;
  void Release(const TensorInfo& tensor) const override;

 private:
  std::string description_;
  std::vector<std::unique_ptr<MappedFile>> files_;
  std::vector<std::vector<uint8_t>> buffers_;
  std::vector<TensorInfo> infos_;
  std::vector<StoredTensor> stored_;
  std::map<std::string, size_t, std::less<>> names_;
};

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_ELEMENTS_H_
