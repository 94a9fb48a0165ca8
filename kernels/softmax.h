// Row softmax over a buffer: exp(x - max) / sum.
#ifndef POZOR_KERNELS_SOFTMAX_H_
#define POZOR_KERNELS_SOFTMAX_H_

#include <cstddef>

namespace pozor {

// In place on rows [rows, cols]; only the first `cols` of each stride are read or written.
void Softmax(float* x, size_t rows, size_t cols, size_t stride);

}  // namespace pozor

#endif  // POZOR_KERNELS_SOFTMAX_H_
