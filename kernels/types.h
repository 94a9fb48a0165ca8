// Element types, matrix views and alignment constants shared by every layer.
#ifndef POZOR_KERNELS_TYPES_H_
#define POZOR_KERNELS_TYPES_H_

#include <cstddef>
#include <cstdint>

namespace pozor {

// Buffers handed to kernels start on this boundary unless a kernel says that it takes any address.
inline constexpr size_t kAlignment = 64;

// Columns of one packed weight panel, the same on every tier and for every type.
inline constexpr size_t kPanelColumns = 16;

enum class DType : uint8_t { kF32, kF64, kF16, kBF16, kI64, kI32, kI16, kI8, kU8, kBool };

constexpr size_t SizeOf(DType type) {
  switch (type) {
    case DType::kF64:
    case DType::kI64:
      return 8;
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kF16:
    case DType::kBF16:
    case DType::kI16:
      return 2;
    case DType::kI8:
    case DType::kU8:
    case DType::kBool:
      return 1;
  }
  return 0;
}

// The upper half of an IEEE binary32.
struct Bf16 {
  uint16_t bits;
};

// Row-major view: element (r, c) is data[r * stride + c]; stride >= cols, in elements.
template <class T>
struct MatView {
  T* data = nullptr;
  size_t rows = 0;
  size_t cols = 0;
  size_t stride = 0;

  T* Row(size_t r) const { return data + r * stride; }
};

constexpr size_t DivCeil(size_t a, size_t b) { return (a + b - 1) / b; }
constexpr size_t RoundUp(size_t a, size_t multiple) { return DivCeil(a, multiple) * multiple; }

}  // namespace pozor

#endif  // POZOR_KERNELS_TYPES_H_
