// Integer dot products of the VNNI extensions, which no Highway target of ours includes. Only
// reachable through a choice that has checked the CPU.
#if defined(POZOR_KERNELS_VNNI_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_VNNI_INL_H_
#undef POZOR_KERNELS_VNNI_INL_H_
#else
#define POZOR_KERNELS_VNNI_INL_H_
#endif

#include "kernels/simd-inl.h"

namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D16 = hn::Repartition<int16_t, DF>;

}  // namespace pozor::HWY_NAMESPACE

#if HWY_TARGET == HWY_AVX3
#define POZOR_VNNI_PREFIX ""
#elif HWY_TARGET == HWY_AVX2
#define POZOR_VNNI_PREFIX "%{vex%} "
#endif

// Without functions in it, the region of a target would be one that clang warns about.
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {

// sum[i] += u8[4i..4i+3] . s8[4i..4i+3], not saturated.
HWY_INLINE void DotBytes(hn::Vec<DI32>& sum, hn::Vec<DI32> u8, hn::Vec<DI32> s8) {
  asm(POZOR_VNNI_PREFIX "vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(u8.raw), "v"(s8.raw));
}

// sum[i] += a[2i] b[2i] + a[2i+1] b[2i+1] of 16-bit integers, not saturated.
HWY_INLINE void DotPairs(hn::Vec<DI32>& sum, hn::Vec<DI32> a, hn::Vec<DI32> b) {
  asm(POZOR_VNNI_PREFIX "vpdpwssd %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
}

#undef POZOR_VNNI_PREFIX

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif

#endif  // POZOR_KERNELS_VNNI_INL_H_
