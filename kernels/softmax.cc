#include "kernels/softmax.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/softmax.cc"
#include "hwy/foreach_target.h"
#include "kernels/simd-inl.h"
#include "kernels/softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

void SoftmaxRows(float* x, size_t rows, size_t cols, size_t stride) {
  for (size_t r = 0; r < rows; ++r) SoftmaxRow(x + r * stride, cols);
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pozor {
HWY_EXPORT(SoftmaxRows);

void Softmax(float* x, size_t rows, size_t cols, size_t stride) {
  HWY_DYNAMIC_DISPATCH(SoftmaxRows)(x, rows, cols, stride);
}

}  // namespace pozor
#endif
