// The only door to Highway: version differences and extra instruction sets live here.
//
// Per-target include guard, as Highway's -inl.h headers have it.
#if defined(POZOR_KERNELS_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_SIMD_INL_H_
#undef POZOR_KERNELS_SIMD_INL_H_
#else
#define POZOR_KERNELS_SIMD_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include "hwy/highway.h"
#include "kernels/types.h"

// Makes the compiler hold an accumulator in a register here. Placed behind a GEMM's K loop,
// and behind the steps of an unrolled one, it keeps g++ 12 from moving products past that point and
// from spilling accumulators inside the loop (10-20 % of the speed). Emits no instruction.
#if HWY_ARCH_X86
#define POZOR_KEEP_IN_REGISTER(vector) asm volatile("" : "+v"((vector).raw))
#elif HWY_ARCH_ARM
#define POZOR_KEEP_IN_REGISTER(vector) asm volatile("" : "+w"((vector).raw))
#endif

// Hides from the compiler where a pointer or an integer comes from. Emits no instruction.
#define POZOR_HIDE_VALUE(value) asm volatile("" : "+r"(value))

// Asks for a cache line to be brought into L2. Never faults.
#define POZOR_PREFETCH_L2(address) __builtin_prefetch((address), 0, 2)

// Attribute for a function that needs an instruction set beyond the current Highway target. Only
// reachable through a table whose row checks the CPU.
#define POZOR_EXTRA_ISA(isa) __attribute__((target(HWY_TARGET_STR isa)))

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Widest vector of floats that never exceeds a 16-column panel: 16, 8 or 4 lanes. Fixed size, so
// that scalable targets have a compile-time lane count too.
#if HWY_HAVE_SCALABLE || HWY_TARGET_IS_SVE
using DF = hn::FixedTag<float, 4>;
#else
using DF = hn::CappedTag<float, 16>;
#endif
using DI32 = hn::RebindToSigned<DF>;
using VF = hn::Vec<DF>;
inline constexpr size_t kLanes = HWY_MAX_LANES_D(DF);  // lanes of one VF
inline constexpr size_t kPanelVectors = 16 / kLanes;   // VF a 16-column panel row: 1, 2 or 4

// Says, on AVX2, that an operand or a sum is read once more here: g++ 12, with 16 registers,
// otherwise moves or spills sums in an unrolled loop. Emits no instruction. A weaker word than
// POZOR_KEEP_IN_REGISTER, which says that the vector changes as well and costs a tile that fills
// the registers its last one.
template <class V>
HWY_INLINE void HoldOperand([[maybe_unused]] const V& vector) {
#if HWY_TARGET == HWY_AVX2
  asm volatile("" : : "x"(vector.raw));
#endif
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POZOR_KERNELS_SIMD_INL_H_
