#include "kernels/norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cc"
#include "hwy/foreach_target.h"
#include "kernels/norm-inl.h"
#include "kernels/rows-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

// out = (x - mean) * scale * gamma + beta
HWY_INLINE void ScaleRow(const float* x, float mean, float scale, const float* gamma,
                         const float* beta, float* out, size_t n) {
  const DF df;
  const VF center = hn::Set(df, mean), factor = hn::Set(df, scale);
  size_t c = 0;
  for (; c + kLanes <= n; c += kLanes) {
    const VF unit = hn::Mul(hn::Sub(hn::LoadU(df, x + c), center), factor);
    const VF shift = beta == nullptr ? hn::Zero(df) : hn::LoadU(df, beta + c);
    hn::StoreU(hn::MulAdd(unit, hn::LoadU(df, gamma + c), shift), df, out + c);
  }
  if (c < n) {
    const size_t count = n - c;
    const VF unit = hn::Mul(hn::Sub(hn::LoadN(df, x + c, count), center), factor);
    const VF shift = beta == nullptr ? hn::Zero(df) : hn::LoadN(df, beta + c, count);
    hn::StoreN(hn::MulAdd(unit, hn::LoadN(df, gamma + c, count), shift), df, out + c, count);
  }
}

void LayerNormRows(const NormArgs& args) {
  const float cols = static_cast<float>(args.cols);
  float mean[kRowsAtOnce], scale[kRowsAtOnce];
  for (size_t row = 0; row < args.rows; row += kRowsAtOnce) {
    const RowBlock block = StartRows<true>(args, row, mean);
    for (size_t r = 0; r < block.rows; ++r) {
      mean[r] /= cols;
      scale[r] = SumSquares(block.x + r * block.x_stride, mean[r], args.cols);
    }
    for (size_t r = 0; r < block.rows; ++r) {
      ScaleRow(block.x + r * block.x_stride, mean[r], InverseSqrt(scale[r] / cols + args.epsilon),
               args.gamma, args.beta, block.out + r * args.out_stride, args.cols);
    }
  }
}

void RmsNormRows(const NormArgs& args) {
  const float cols = static_cast<float>(args.cols);
  float scale[kRowsAtOnce];
  for (size_t row = 0; row < args.rows; row += kRowsAtOnce) {
    const RowBlock block = StartRows<false>(args, row, scale);
    for (size_t r = 0; r < block.rows; ++r) {
      scale[r] = SumSquares(block.x + r * block.x_stride, 0.0f, args.cols);
    }
    for (size_t r = 0; r < block.rows; ++r) {
      const float* shortcut =
          args.shortcut == nullptr ? nullptr : args.shortcut + (row + r) * args.shortcut_stride;
      ScaleRow(block.x + r * block.x_stride, 0.0f, InverseSqrt(scale[r] / cols + args.epsilon),
               args.gamma, shortcut, block.out + r * args.out_stride, args.cols);
    }
  }
}

void AffineNormRows(const NormArgs& args) {
  for (size_t row = 0; row < args.rows; ++row) {
    ScaleRow(args.x + row * args.x_stride, 0.0f, 1.0f, args.gamma, args.beta,
             args.out + row * args.out_stride, args.cols);
  }
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pozor {
HWY_EXPORT(LayerNormRows);
HWY_EXPORT(RmsNormRows);
HWY_EXPORT(AffineNormRows);

void LayerNorm(const NormArgs& args) { HWY_DYNAMIC_DISPATCH(LayerNormRows)(args); }

void RmsNorm(const NormArgs& args) { HWY_DYNAMIC_DISPATCH(RmsNormRows)(args); }

void AffineNorm(const NormArgs& args) { HWY_DYNAMIC_DISPATCH(AffineNormRows)(args); }

}  // namespace pozor
#endif
