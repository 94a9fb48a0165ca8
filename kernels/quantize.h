// Quantised rows: unsigned bytes with a scale and a zero point of their own for every row.
//
// A row, or each of its two column groups, covers its own range, always with 0 inside:
//   lo = min(0, min x), hi = max(0, max x), scale = (hi - lo) / 255, inverse = 255 / (hi - lo)
//   zero = rne(-lo * inverse),  q = clamp(rne(x * inverse) + zero, 0, 255),  x ~ scale * (q - zero)
// The result depends on the row alone. A range below 1e-35 counts as zero: scale 0. A row with a
// NaN, an infinity or a range that no float holds gets the scale NaN, which every product with it
// takes on.
#ifndef POZOR_KERNELS_QUANTIZE_H_
#define POZOR_KERNELS_QUANTIZE_H_

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace pozor {

// x = scale * (q - zero)
struct RowScale {
  float scale = 0;
  int32_t zero = 0;  // in [0, 255]
};

// Bytes of a quantised row of `cols` columns: a multiple of 64, and never of 4096, at which rows
// would meet in one cache set.
constexpr size_t QuantizedStride(size_t cols) {
  const size_t stride = RoundUp(cols, 64);
  return stride % 4096 == 0 ? stride + 64 : stride;
}

// View of quantised rows. Bytes from the last column up to a multiple of 64 may hold anything: the
// packed weights are zero there.
struct QuantizedRows {
  uint8_t* values = nullptr;   // [rows, stride], 64-byte aligned
  size_t stride = 0;           // bytes, a multiple of 64
  RowScale* scales = nullptr;  // [rows, groups]
  size_t groups = 1;           // 1 or 2

  QuantizedRows From(size_t row) const {
    return {values + row * stride, stride, scales + row * groups, groups};
  }
};

struct QuantizeArgs {
  const float* x = nullptr;  // [rows, cols], any alignment
  size_t x_stride = 0;       // in floats
  size_t rows = 0;
  size_t cols = 0;
  // Two groups: columns [0, split) and [split, cols); split is a multiple of 16. 0: one group.
  size_t split = 0;
  // If not null, what is quantised is x * column_scale + column_shift, one rounding: [cols] each,
  // any alignment, both or neither.
  const float* column_scale = nullptr;
  const float* column_shift = nullptr;
  QuantizedRows out;  // out.groups says whether `split` divides
};
void QuantizeRows(const QuantizeArgs& args);

}  // namespace pozor

#endif  // POZOR_KERNELS_QUANTIZE_H_
