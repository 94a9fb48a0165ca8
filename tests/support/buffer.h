// A float buffer at a chosen misalignment, with guard values on both sides.
#ifndef POZOR_TESTS_SUPPORT_BUFFER_H_
#define POZOR_TESTS_SUPPORT_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace pozor::test {

// `size` floats that start `offset` floats past a 64-byte boundary, set to `fill`.
class Buffer {
 public:
  explicit Buffer(size_t size, size_t offset = 0, float fill = 0.0f)
      : size_(size), storage_(size + offset + 3 * kGuard, kGuardValue) {
    const auto address = reinterpret_cast<uintptr_t>(storage_.data() + kGuard);
    const size_t to_boundary = (64 - address % 64) % 64 / sizeof(float);
    first_ = kGuard + to_boundary + offset;
    for (float& value : span()) value = fill;
  }
  Buffer(std::span<const float> values, size_t offset) : Buffer(values.size(), offset) {
    for (size_t i = 0; i < values.size(); ++i) data()[i] = values[i];
  }

  float* data() { return storage_.data() + first_; }
  const float* data() const { return storage_.data() + first_; }
  size_t size() const { return size_; }
  float& operator[](size_t i) { return data()[i]; }
  float operator[](size_t i) const { return data()[i]; }
  std::span<float> span() { return {data(), size_}; }
  std::span<const float> span() const { return {data(), size_}; }

  // True as long as nothing was written outside the buffer.
  bool GuardsIntact() const {
    for (size_t i = 0; i < storage_.size(); ++i) {
      const bool inside = i >= first_ && i < first_ + size_;
      if (!inside && storage_[i] != kGuardValue) return false;
    }
    return true;
  }

 private:
  static constexpr size_t kGuard = 16;
  static constexpr float kGuardValue = -1234567.0f;

  size_t size_;
  size_t first_ = 0;
  std::vector<float> storage_;
};

}  // namespace pozor::test

#endif  // POZOR_TESTS_SUPPORT_BUFFER_H_
