// What the engine asks of a weight file, whatever its format.
#ifndef POZOR_ENGINE_WEIGHTS_H_
#define POZOR_ENGINE_WEIGHTS_H_

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/types.h"
#include "pozor/status.h"

namespace pozor {

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<size_t> shape;  // row-major, outermost first
  size_t source_index = 0;    // the source's own

  size_t elements() const {
    size_t n = 1;
    for (size_t d : shape) n *= d;
    return n;
  }
};

// A set of named tensors. Thread-compatible: concurrent const calls are safe.
class TensorSource {
 public:
  virtual ~TensorSource() = default;

  // Every tensor, each name once.
  virtual std::span<const TensorInfo> tensors() const = 0;

  // Elements [begin, begin + count) in row-major order, converted to f32 (f16, bf16, f64 and
  // quantised blocks are widened or rounded to nearest; subnormals survive).
  virtual Status Read(const TensorInfo& tensor, size_t begin, size_t count, float* out) const = 0;

  // The elements in place, if they are stored as contiguous f32 on a 4-byte boundary and stay valid
  // as long as the source lives; else null.
  virtual const float* Map(const TensorInfo& tensor) const = 0;

  // The pages of this tensor are not needed again soon: hint to give the memory back.
  virtual void Release(const TensorInfo& tensor) const = 0;

  // For messages: the path of the file or folder.
  virtual const std::string& description() const = 0;
};

// Access by name with a prefix, old spellings and accounting: each tensor asked for must exist with
// the expected shape, and what nobody took can be listed.
class WeightReader {
 public:
  explicit WeightReader(std::shared_ptr<const TensorSource> source);

  // Strips `prefix` from the names of all tensors that have it. Names that lack it stay.
  void StripPrefix(std::string_view prefix);

  // Renames every name by the function; two tensors meeting in one name is Corrupt.
  Status Rename(std::string (*rename)(std::string_view));

  bool Has(std::string_view name) const;

  // Null if absent. Does not mark it as taken.
  const TensorInfo* Find(std::string_view name) const;

  // The tensor, marked as taken; NotFound or Corrupt (with both shapes) otherwise.
  Result<const TensorInfo*> Take(std::string_view name, std::span<const size_t> shape);

  // Names of tensors that were never taken, sorted.
  std::vector<std::string> Unused() const;

  const TensorSource& source() const { return *source_; }
  std::shared_ptr<const TensorSource> shared_source() const { return source_; }

 private:
  struct Entry {
    const TensorInfo* tensor;
    bool taken = false;
  };
  std::shared_ptr<const TensorSource> source_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace pozor

#endif  // POZOR_ENGINE_WEIGHTS_H_
