// Softmax pieces shared by softmax.cc and the attention kernels.
#if defined(POZOR_KERNELS_SOFTMAX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_SOFTMAX_INL_H_
#undef POZOR_KERNELS_SOFTMAX_INL_H_
#else
#define POZOR_KERNELS_SOFTMAX_INL_H_
#endif

#include "kernels/math-inl.h"
#include "kernels/rows-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// exp(x - max) / sum in place, any alignment. A NaN, +inf, or a row of nothing but -inf gives NaN.
HWY_INLINE void SoftmaxRow(float* x, size_t n) {
  const DF df;
  const VF lowest = hn::Set(df, -__builtin_huge_valf());
  const float max = ReduceRow(
      n, lowest, [&](VF a, size_t c) HWY_ATTR { return hn::Max(a, hn::LoadU(df, x + c)); },
      [&](VF a, size_t c, size_t count)
          HWY_ATTR { return hn::Max(a, hn::LoadNOr(lowest, df, x + c, count)); },
      MaxLanes());
  const VF shift = hn::Set(df, max);
  const float sum = ReduceRow(
      n, hn::Zero(df),
      [&](VF a, size_t c) HWY_ATTR {
        const VF e = Exp(df, hn::Sub(hn::LoadU(df, x + c), shift));
        hn::StoreU(e, df, x + c);
        return hn::Add(a, e);
      },
      [&](VF a, size_t c, size_t count) HWY_ATTR {
        const VF e = Exp(df, hn::Sub(hn::LoadN(df, x + c, count), shift));
        hn::StoreN(e, df, x + c, count);
        return hn::Add(a, hn::IfThenElseZero(hn::FirstN(df, count), e));
      },
      AddLanes());
  const VF divisor = hn::Set(df, sum);
  MapRow(x, x, n, [&](VF v) HWY_ATTR { return hn::Div(v, divisor); });
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POZOR_KERNELS_SOFTMAX_INL_H_
