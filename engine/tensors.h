// Every array that a loaded encoder computes with, by name and in a fixed order: how prepared files
// are written and read.
#ifndef POZOR_ENGINE_TENSORS_H_
#define POZOR_ENGINE_TENSORS_H_

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/encoder.h"
#include "engine/precision.h"
#include "kernels/types.h"
#include "pozor/status.h"

namespace pozor {

struct EncoderTensor {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<size_t> shape;
  const void* data = nullptr;  // 64-byte aligned but for tables

  size_t bytes() const {
    size_t n = SizeOf(dtype);
    for (const size_t d : shape) n *= d;
    return n;
  }
};

// May look at `tensor`, and point its data elsewhere.
using TensorVisitor = std::function<Status(EncoderTensor& tensor)>;

// Names, types and shapes follow from the model's spec and precision alone.
Status VisitTensors(Encoder::Impl& model, const TensorVisitor& visit);

// Bytes of the model's own memory that VisitTensors does not come by.
size_t UnnamedBytes(const Encoder::Impl& model);

// The same to look at. Unsupported if the encoder has arrays that have no name here.
Result<std::vector<EncoderTensor>> ListTensors(const Encoder& encoder);

// A table whose rows are looked at before their first use.
class RowCheck {
 public:
  virtual ~RowCheck() = default;
  // Any thread. Corrupt if a row of the word table is damaged. Ids are in range.
  virtual Status CheckRows(std::span<const int32_t> ids) const = 0;
};

// An encoder whose arrays are found elsewhere: `find` sets each tensor's data. `keep` lives as long
// as the encoder; `mapped_bytes` of it are pages of a file.
struct TensorHolder {
  std::shared_ptr<const void> keep;
  size_t mapped_bytes = 0;
  std::shared_ptr<const RowCheck> row_check;
  // Pages of tensors that are not needed again soon; or null.
  std::function<void(const void* data, size_t bytes)> release = nullptr;
};
Result<std::unique_ptr<Encoder>> EncoderFromTensors(EncoderSpec spec, PrecisionPlan precision,
                                                    const TensorVisitor& find, TensorHolder holder);

}  // namespace pozor

#endif  // POZOR_ENGINE_TENSORS_H_
