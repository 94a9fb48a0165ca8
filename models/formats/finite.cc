#include "models/formats/finite.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace pozor {
namespace {

constexpr size_t kBlock = 64;
constexpr size_t kChunk = size_t{1} << 14;
constexpr int32_t kMagnitude = 0x7FFFFFFF;
constexpr int32_t kInfinity = 0x7F800000;

// The largest magnitude's bits; a fixed block, so that the compiler makes vector code of it.
int32_t LargestOfBlock(const float* x) {
  int32_t bits[kBlock];
  std::memcpy(bits, x, sizeof bits);
  int32_t largest = 0;
  for (size_t i = 0; i < kBlock; ++i) largest = std::max(largest, bits[i] & kMagnitude);
  return largest;
}

bool AllFinite(const float* x, size_t n) {
  int32_t largest = 0;
  size_t i = 0;
  for (; i + kBlock <= n; i += kBlock) largest = std::max(largest, LargestOfBlock(x + i));
  for (; i < n; ++i) {
    int32_t bits;
    std::memcpy(&bits, x + i, sizeof bits);
    largest = std::max(largest, bits & kMagnitude);
  }
  return largest < kInfinity;
}

Status CheckTensor(const TensorSource& source, const TensorInfo& tensor, bool* finite) {
  const size_t count = tensor.elements();
  if (const float* values = source.Map(tensor)) {
    *finite = AllFinite(values, count);
    return Status();
  }
  std::vector<float> chunk(std::min(count, kChunk));
  *finite = true;
  for (size_t begin = 0; begin < count && *finite; begin += kChunk) {
    const size_t part = std::min(kChunk, count - begin);
    POZOR_RETURN_IF_ERROR(source.Read(tensor, begin, part, chunk.data()));
    *finite = AllFinite(chunk.data(), part);
  }
  return Status();
}

}  // namespace

Status CheckFinite(const TensorSource& source, const std::set<const TensorInfo*>& left_out) {
  for (const TensorInfo& tensor : source.tensors()) {
    if (left_out.contains(&tensor)) continue;
    bool finite = true;
    POZOR_RETURN_IF_ERROR(CheckTensor(source, tensor, &finite));
    source.Release(tensor);
    if (finite) continue;
    return Corrupt(source.description() + ": tensor '" + tensor.name +
                   "' holds a value that is not finite; download the file again");
  }
  return Status();
}

}  // namespace pozor
