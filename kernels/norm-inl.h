// Sums of rows that the normalisations share.
#if defined(POZOR_KERNELS_NORM_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_NORM_INL_H_
#undef POZOR_KERNELS_NORM_INL_H_
#else
#define POZOR_KERNELS_NORM_INL_H_
#endif

#include "kernels/norm.h"
#include "kernels/rows-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

// Rows of one pass. A row's sums are chains of dependent additions: several rows at once hide
// their latency, and few enough of them stay in L1 from pass to pass.
inline constexpr size_t kRowsAtOnce = 8;

struct RowBlock {
  size_t rows;
  const float* x;  // with the residual added
  size_t x_stride;
  float* out;  // null: nobody wants the rows
};

// Takes up to kRowsAtOnce rows from `row` on: adds the residual into `out`, and leaves the rows'
// sums if asked to.
template <bool kSum>
HWY_INLINE RowBlock StartRows(const NormArgs& args, size_t row, float* sums) {
  RowBlock block;
  block.rows = HWY_MIN(args.rows - row, kRowsAtOnce);
  block.x = args.x + row * args.x_stride;
  block.x_stride = args.x_stride;
  block.out = args.out == nullptr ? nullptr : args.out + row * args.out_stride;
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

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POZOR_KERNELS_NORM_INL_H_
