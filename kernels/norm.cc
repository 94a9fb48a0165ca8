#include "kernels/norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cc"
#include "hwy/foreach_target.h"
#include "kernels/rows-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

HWY_INLINE float SumRow(const float* x, size_t n) {
  const DF df;
  return ReduceRow(
      n, hn::Zero(df), [&](VF a, size_t c) HWY_ATTR { return hn::Add(a, hn::LoadU(df, x + c)); },
      [&](VF a, size_t c, size_t count)
          HWY_ATTR { return hn::Add(a, hn::LoadN(df, x + c, count)); },
      AddLanes());
}

// sum = x + y row by row, and the total. `sum` may be x or y.
HWY_INLINE float AddRowsAndSum(const float* x, const float* y, float* sum, size_t n) {
  const DF df;
  return ReduceRow(
      n, hn::Zero(df),
      [&](VF a, size_t c) HWY_ATTR {
        const VF s = hn::Add(hn::LoadU(df, x + c), hn::LoadU(df, y + c));
        hn::StoreU(s, df, sum + c);
        return hn::Add(a, s);
      },
      [&](VF a, size_t c, size_t count) HWY_ATTR {
        const VF s = hn::Add(hn::LoadN(df, x + c, count), hn::LoadN(df, y + c, count));
        hn::StoreN(s, df, sum + c, count);
        return hn::Add(a, s);
      },
      AddLanes());
}

// sum (x - mean)^2
HWY_INLINE float SumSquares(const float* x, float mean, size_t n) {
  const DF df;
  const VF center = hn::Set(df, mean);
  return ReduceRow(
      n, hn::Zero(df),
      [&](VF a, size_t c) HWY_ATTR {
        const VF difference = hn::Sub(hn::LoadU(df, x + c), center);
        return hn::MulAdd(difference, difference, a);
      },
      [&](VF a, size_t c, size_t count) HWY_ATTR {
        const VF difference =
            hn::IfThenElseZero(hn::FirstN(df, count), hn::Sub(hn::LoadN(df, x + c, count), center));
        return hn::MulAdd(difference, difference, a);
      },
      AddLanes());
}

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

// Rows of one pass. A row's sums are chains of dependent additions: several rows at once hide
// their latency, and few enough of them stay in L1 from pass to pass.
constexpr size_t kRowsAtOnce = 8;

struct RowBlock {
  size_t rows;
  const float* x;  // with the residual added
  size_t x_stride;
  float* out;
};

// Takes up to kRowsAtOnce rows from `row` on: adds the residual into `out`, and leaves the rows'
// sums if asked to.
template <bool kSum>
HWY_INLINE RowBlock StartRows(const NormArgs& args, size_t row, float* sums) {
  RowBlock block;
  block.rows = HWY_MIN(args.rows - row, kRowsAtOnce);
  block.x = args.x + row * args.x_stride;
  block.x_stride = args.x_stride;
  block.out = args.out + row * args.out_stride;
  if (args.residual != nullptr) {
    const float* residual = args.residual + row * args.residual_stride;
    for (size_t r = 0; r < block.rows; ++r) {
      sums[r] = AddRowsAndSum(block.x + r * args.x_stride, residual + r * args.residual_stride,
                              block.out + r * args.out_stride, args.cols);
    }
    block.x = block.out;
    block.x_stride = args.out_stride;
  } else if (kSum) {
    for (size_t r = 0; r < block.rows; ++r) {
      sums[r] = SumRow(block.x + r * block.x_stride, args.cols);
    }
  }
  return block;
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
      ScaleRow(block.x + r * block.x_stride, 0.0f, InverseSqrt(scale[r] / cols + args.epsilon),
               args.gamma, nullptr, block.out + r * args.out_stride, args.cols);
    }
  }
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pozor {
HWY_EXPORT(LayerNormRows);
HWY_EXPORT(RmsNormRows);

void LayerNorm(const NormArgs& args) { HWY_DYNAMIC_DISPATCH(LayerNormRows)(args); }

void RmsNorm(const NormArgs& args) { HWY_DYNAMIC_DISPATCH(RmsNormRows)(args); }

}  // namespace pozor
#endif
