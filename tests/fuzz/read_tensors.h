// Reads every tensor of a source that was accepted: no byte outside may be touched.
#ifndef POZOR_TESTS_FUZZ_READ_TENSORS_H_
#define POZOR_TESTS_FUZZ_READ_TENSORS_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "engine/weights.h"

namespace pozor::test {

inline void ReadTensors(const TensorSource& source) {
  constexpr size_t kPart = 1000;
  float sum = 0;
  std::vector<float> values(kPart);
  for (const TensorInfo& tensor : source.tensors()) {
    const size_t count = tensor.elements();
    const size_t part = std::min(count, kPart);
    for (const size_t begin : {size_t{0}, (count - part) / 2, count - part}) {
      if (source.Read(tensor, begin, part, values.data()).ok() && part > 0) sum += values[part - 1];
    }
    const float* mapped = source.Map(tensor);
    if (mapped != nullptr && count > 0) sum += mapped[0] + mapped[count - 1];
    source.Release(tensor);
  }
  volatile float sink = sum;
  (void)sink;
}

}  // namespace pozor::test

#endif  // POZOR_TESTS_FUZZ_READ_TENSORS_H_
