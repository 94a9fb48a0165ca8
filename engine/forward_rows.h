// Views of the rows of a forward pass, for the files that implement it.
#ifndef POZOR_ENGINE_FORWARD_ROWS_H_
#define POZOR_ENGINE_FORWARD_ROWS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "engine/forward.h"
#include "kernels/gemm.h"
#include "kernels/types.h"

namespace pozor {

inline Range Clip(Range range, size_t size) { return {range.begin, std::min(range.end, size)}; }

// Rows `rows` of x, [rows, cols].
template <class T>
MatView<T> Part(MatView<T> x, Range rows) {
  return {x.Row(rows.begin), rows.end - rows.begin, x.cols, x.stride};
}

inline MatView<const float> Const(MatView<float> x) { return {x.data, x.rows, x.cols, x.stride}; }

// Multiplications and additions of the panels that a product computes.
inline uint64_t Flops(const GemmArgs& args) {
  const size_t columns = std::min(args.panel_end * kPanelColumns, args.b->n) -
                         std::min(args.panel_begin * kPanelColumns, args.b->n);
  return 2 * uint64_t{args.m} * columns * args.b->k;
}

}  // namespace pozor

#endif  // POZOR_ENGINE_FORWARD_ROWS_H_
