// bf16 values: rounding f32 to them, and rows of them as the bf16 products read them.
#if defined(POZOR_KERNELS_BF16_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_BF16_INL_H_
#undef POZOR_KERNELS_BF16_INL_H_
#else
#define POZOR_KERNELS_BF16_INL_H_
#endif

#include "kernels/simd-inl.h"
#include "kernels/types.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DU32 = hn::RebindToUnsigned<DF>;

// The upper half of every word is x as the nearest bf16, ties to even; the lower half is arbitrary.
// A NaN stays one. Integers only, so no processor mode and no target can change the result.
HWY_INLINE hn::Vec<DU32> RoundToBf16(VF x) {
  const DU32 du;
  const auto bits = hn::BitCast(du, x);
  const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(du, 1));
  const auto rounded = hn::Add(bits, hn::Add(odd, hn::Set(du, 0x7FFF)));
  const auto quiet = hn::Or(bits, hn::Set(du, 0x400000));
  const auto is_nan = hn::RebindMask(du, hn::IsNaN(x));
  return hn::IfThenElse(is_nan, quiet, rounded);
}

// x = high + low (pack.h), both as RoundToBf16 has them.
HWY_INLINE void SplitToBf16(VF x, hn::Vec<DU32>& high, hn::Vec<DU32>& low) {
  const DF df;
  const DU32 du;
  high = RoundToBf16(x);
  const VF rounded = hn::BitCast(df, hn::And(high, hn::Set(du, 0xFFFF0000u)));
  low = RoundToBf16(hn::Sub(x, rounded));  // the difference is exact
}

// to[0, padded_k) = x[0, k) as bf16, then zeros. `to` is 32-byte aligned, padded_k a multiple
// of 16.
HWY_INLINE void RoundRowToBf16(const float* HWY_RESTRICT x, size_t k, size_t padded_k,
                               Bf16* HWY_RESTRICT to) {
  const DF df;
  const hn::Rebind<uint16_t, DF> d16;
  for (size_t i = 0; i < padded_k; i += kLanes) {
    const VF values = i >= k ? hn::Zero(df) : hn::LoadN(df, x + i, HWY_MIN(kLanes, k - i));
    const auto halves = hn::TruncateTo(d16, hn::ShiftRight<16>(RoundToBf16(values)));
    hn::Store(halves, d16, reinterpret_cast<uint16_t*>(to + i));
  }
}

// to[padded_k / 32][2][32] = x[0, k) as high and low parts, then zeros. `to` is 32-byte aligned,
// padded_k a multiple of 32.
HWY_INLINE void SplitRowToBf16(const float* HWY_RESTRICT x, size_t k, size_t padded_k,
                               Bf16* HWY_RESTRICT to) {
  const DF df;
  const hn::Rebind<uint16_t, DF> d16;
  constexpr size_t kStep = 32;
  for (size_t i = 0; i < padded_k; i += kLanes) {
    const VF values = i >= k ? hn::Zero(df) : hn::LoadN(df, x + i, HWY_MIN(kLanes, k - i));
    hn::Vec<DU32> high, low;
    SplitToBf16(values, high, low);
    uint16_t* at = reinterpret_cast<uint16_t*>(to + i / kStep * 2 * kStep + i % kStep);
    hn::Store(hn::TruncateTo(d16, hn::ShiftRight<16>(high)), d16, at);
    hn::Store(hn::TruncateTo(d16, hn::ShiftRight<16>(low)), d16, at + kStep);
  }
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POZOR_KERNELS_BF16_INL_H_
