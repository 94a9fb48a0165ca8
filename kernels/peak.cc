// The arithmetic loops are single asm blocks: with accumulators in an array or behind intrinsics,
// g++ puts some of them on the stack and the probe reads half the peak.
#include "kernels/peak.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/peak.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/amx-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {

// Twelve chains cover latency 4 on two ports with a third to spare; operands are 1.0, so that
// nothing is denormal (denormal garbage slows a multiply by two orders of magnitude).
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2

#if HWY_TARGET == HWY_AVX3
#define POZOR_PEAK_VECTOR "%%zmm"
#else
#define POZOR_PEAK_VECTOR "%%ymm"
#endif
#define POZOR_PEAK_ZERO(r) "vxorps %%xmm" #r ", %%xmm" #r ", %%xmm" #r "\n\t"
#define POZOR_PEAK_FMA(r) \
  "vfmadd231ps " POZOR_PEAK_VECTOR "14, " POZOR_PEAK_VECTOR "15, " POZOR_PEAK_VECTOR #r "\n\t"
#define POZOR_PEAK_EACH(op) \
  op(0) op(1) op(2) op(3) op(4) op(5) op(6) op(7) op(8) op(9) op(10) op(11)

inline constexpr double kPeakOps = 2.0 * 24.0 * kLanes;

void RunPeakF32(size_t iterations) {
  const float one = 1.0f;
  // clang-format off
  asm volatile(
      "vbroadcastss %[one], " POZOR_PEAK_VECTOR "14\n\t"
      "vbroadcastss %[one], " POZOR_PEAK_VECTOR "15\n\t"
      POZOR_PEAK_EACH(POZOR_PEAK_ZERO)
      "1:\n\t"
      POZOR_PEAK_EACH(POZOR_PEAK_FMA)
      POZOR_PEAK_EACH(POZOR_PEAK_FMA)
      "dec %[count]\n\t"
      "jnz 1b\n\t"
      "vzeroupper\n\t"
      : [count] "+r"(iterations)
      : [one] "m"(one)
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  // clang-format on
}

#if HWY_TARGET == HWY_AVX3
#define POZOR_PEAK_VNNI "vpdpbusd "
#else
#define POZOR_PEAK_VNNI "%{vex%} vpdpbusd "
#endif
#define POZOR_PEAK_DOT(r) \
  POZOR_PEAK_VNNI POZOR_PEAK_VECTOR "14, " POZOR_PEAK_VECTOR "15, " POZOR_PEAK_VECTOR #r "\n\t"

inline constexpr double kPeakDotOps = 2.0 * 24.0 * 4.0 * kLanes;

void RunPeakDot(size_t iterations) {
  // clang-format off
  asm volatile(
      POZOR_PEAK_ZERO(14) POZOR_PEAK_ZERO(15)
      POZOR_PEAK_EACH(POZOR_PEAK_ZERO)
      "1:\n\t"
      POZOR_PEAK_EACH(POZOR_PEAK_DOT)
      POZOR_PEAK_EACH(POZOR_PEAK_DOT)
      "dec %[count]\n\t"
      "jnz 1b\n\t"
      "vzeroupper\n\t"
      : [count] "+r"(iterations)
      :
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
  // clang-format on
}

#if HWY_TARGET == HWY_AVX3

// VDPBF16PS takes 6 cycles where two start in one, so twelve chains would have nothing to spare.
#define POZOR_PEAK_EACH_MORE(op) \
  op(16) op(17) op(18) op(19) op(20) op(21) op(22) op(23) op(24) op(25) op(26) op(27)
#define POZOR_PEAK_ZERO_MORE(r) "vpxord %%zmm" #r ", %%zmm" #r ", %%zmm" #r "\n\t"
#define POZOR_PEAK_BF16(r) "vdpbf16ps %%zmm14, %%zmm15, %%zmm" #r "\n\t"

inline constexpr double kPeakBf16Ops = 2.0 * 24.0 * 2.0 * kLanes;

void RunPeakBf16(size_t iterations) {
  const uint32_t ones = 0x3F803F80u;
  // clang-format off
  asm volatile(
      "vpbroadcastd %[ones], %%zmm14\n\t"
      "vpbroadcastd %[ones], %%zmm15\n\t"
      POZOR_PEAK_EACH(POZOR_PEAK_ZERO)
      POZOR_PEAK_EACH_MORE(POZOR_PEAK_ZERO_MORE)
      "1:\n\t"
      POZOR_PEAK_EACH(POZOR_PEAK_BF16)
      POZOR_PEAK_EACH_MORE(POZOR_PEAK_BF16)
      "dec %[count]\n\t"
      "jnz 1b\n\t"
      "vzeroupper\n\t"
      : [count] "+r"(iterations)
      : [ones] "m"(ones)
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15", "xmm16", "xmm17", "xmm18",
        "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27");
  // clang-format on
}

#undef POZOR_PEAK_BF16
#undef POZOR_PEAK_ZERO_MORE
#undef POZOR_PEAK_EACH_MORE

// Four sums of tiles in turn; zeros throughout, which no multiplier is quicker for.
inline constexpr double kPeakTileBytesOps = 2.0 * 8.0 * 16.0 * 16.0 * 64.0;
inline constexpr double kPeakTileHalvesOps = 2.0 * 8.0 * 16.0 * 16.0 * 32.0;
// Of split values three multiplies make one product.
inline constexpr double kPeakTileSplitHalvesOps = kPeakTileHalvesOps / 3.0;

template <class Format>
void RunPeakTiles(size_t iterations) {
  ConfigureTiles();
  ZeroTile<0>();
  ZeroTile<1>();
  ZeroTile<2>();
  ZeroTile<3>();
  ZeroTile<4>();
  ZeroTile<5>();
  ZeroTile<6>();
  ZeroTile<7>();
  for (; iterations != 0; --iterations) {
    for (int i = 0; i < 2; ++i) {
      Format::template Dot<0, 4, 6>();
      Format::template Dot<1, 4, 7>();
      Format::template Dot<2, 5, 6>();
      Format::template Dot<3, 5, 7>();
    }
  }
}

void RunPeakTileBytes(size_t iterations) { RunPeakTiles<Bytes>(iterations); }
void RunPeakTileHalves(size_t iterations) { RunPeakTiles<Halves>(iterations); }

#endif  // HWY_TARGET == HWY_AVX3

#undef POZOR_PEAK_VNNI
#undef POZOR_PEAK_DOT
#undef POZOR_PEAK_VECTOR
#undef POZOR_PEAK_ZERO
#undef POZOR_PEAK_FMA
#undef POZOR_PEAK_EACH

#elif HWY_ARCH_X86

// No fused operation here: twelve chains, multiplies and adds in turn.
#define POZOR_PEAK_PAIR(product, sum) \
  "mulps %%xmm14, %%xmm" #product "\n\taddps %%xmm15, %%xmm" #sum "\n\t"
#define POZOR_PEAK_PAIRS \
  POZOR_PEAK_PAIR(0, 1)  \
  POZOR_PEAK_PAIR(2, 3)  \
  POZOR_PEAK_PAIR(4, 5)  \
  POZOR_PEAK_PAIR(6, 7)  \
  POZOR_PEAK_PAIR(8, 9)  \
  POZOR_PEAK_PAIR(10, 11)

inline constexpr double kPeakOps = 24.0 * kLanes;

void RunPeakF32(size_t iterations) {
  const float one = 1.0f;
  // clang-format off
  asm volatile(
      "movss %[one], %%xmm14\n\t"
      "shufps $0, %%xmm14, %%xmm14\n\t"
      "movaps %%xmm14, %%xmm15\n\t"
      "movaps %%xmm14, %%xmm0\n\t" "movaps %%xmm14, %%xmm1\n\t"
      "movaps %%xmm14, %%xmm2\n\t" "movaps %%xmm14, %%xmm3\n\t"
      "movaps %%xmm14, %%xmm4\n\t" "movaps %%xmm14, %%xmm5\n\t"
      "movaps %%xmm14, %%xmm6\n\t" "movaps %%xmm14, %%xmm7\n\t"
      "movaps %%xmm14, %%xmm8\n\t" "movaps %%xmm14, %%xmm9\n\t"
      "movaps %%xmm14, %%xmm10\n\t" "movaps %%xmm14, %%xmm11\n\t"
      "1:\n\t"
      POZOR_PEAK_PAIRS
      POZOR_PEAK_PAIRS
      "dec %[count]\n\t"
      "jnz 1b\n\t"
      : [count] "+r"(iterations)
      : [one] "m"(one)
      : "cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
        "xmm10", "xmm11", "xmm14", "xmm15");
  // clang-format on
}

#undef POZOR_PEAK_PAIR
#undef POZOR_PEAK_PAIRS

#elif HWY_ARCH_ARM_A64 && HWY_TARGET == HWY_STATIC_TARGET

// Twenty chains cover latency 4 on four pipes.
#define POZOR_PEAK_FMA(r) "fmla v" #r ".4s, v30.4s, v31.4s\n\t"

inline constexpr double kPeakOps = 2.0 * 20.0 * 4.0;

void RunPeakF32(size_t iterations) {
  // clang-format off
  asm volatile(
      "fmov v30.4s, #1.0\n\t"
      "fmov v31.4s, #1.0\n\t"
      "1:\n\t"
      POZOR_PEAK_FMA(0) POZOR_PEAK_FMA(1) POZOR_PEAK_FMA(2) POZOR_PEAK_FMA(3) POZOR_PEAK_FMA(4)
      POZOR_PEAK_FMA(5) POZOR_PEAK_FMA(6) POZOR_PEAK_FMA(7) POZOR_PEAK_FMA(16) POZOR_PEAK_FMA(17)
      POZOR_PEAK_FMA(18) POZOR_PEAK_FMA(19) POZOR_PEAK_FMA(20) POZOR_PEAK_FMA(21) POZOR_PEAK_FMA(22)
      POZOR_PEAK_FMA(23) POZOR_PEAK_FMA(24) POZOR_PEAK_FMA(25) POZOR_PEAK_FMA(26) POZOR_PEAK_FMA(27)
      "subs %[count], %[count], #1\n\t"
      "b.ne 1b\n\t"
      : [count] "+r"(iterations)
      :
      : "cc", "v0", "v1", "v2", "v3", "v4", "v5", "v6", "v7", "v16", "v17", "v18", "v19", "v20",
        "v21", "v22", "v23", "v24", "v25", "v26", "v27", "v30", "v31");
  // clang-format on
}

#undef POZOR_PEAK_FMA

#endif

namespace {

// The exclusive or of all 64-bit words, whatever the vector length.
uint64_t XorWords(const uint64_t* HWY_RESTRICT words, size_t count) {
  const hn::CappedTag<uint64_t, 8> d;
  const size_t lanes = hn::Lanes(d);
  auto x0 = hn::Zero(d), x1 = x0, x2 = x0, x3 = x0;
  for (size_t i = 0; i < count; i += 8 * lanes) {
    const uint64_t* at = words + i;
    x0 = hn::Xor(x0, hn::Load(d, at));
    x1 = hn::Xor(x1, hn::Load(d, at + lanes));
    x2 = hn::Xor(x2, hn::Load(d, at + 2 * lanes));
    x3 = hn::Xor(x3, hn::Load(d, at + 3 * lanes));
    x0 = hn::Xor(x0, hn::Load(d, at + 4 * lanes));
    x1 = hn::Xor(x1, hn::Load(d, at + 5 * lanes));
    x2 = hn::Xor(x2, hn::Load(d, at + 6 * lanes));
    x3 = hn::Xor(x3, hn::Load(d, at + 7 * lanes));
  }
  alignas(kAlignment) uint64_t lane[8] = {};
  hn::Store(hn::Xor(hn::Xor(x0, x1), hn::Xor(x2, x3)), d, lane);
  uint64_t all = 0;
  for (size_t i = 0; i < lanes; ++i) all ^= lane[i];
  return all;
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pozor {
namespace {

constexpr PeakLoop kLoops[] = {
#if HWY_TARGETS & HWY_SSE4
    {"sse4-f32", CpuTier::kSse4, N_SSE4::kPeakOps, &N_SSE4::RunPeakF32},
#endif
#if HWY_TARGETS & HWY_AVX2
    {"avx2-f32", CpuTier::kAvx2, N_AVX2::kPeakOps, &N_AVX2::RunPeakF32},
    {"avx-vnni-u8s8", CpuTier::kAvxVnni, N_AVX2::kPeakDotOps, &N_AVX2::RunPeakDot},
#endif
#if HWY_TARGETS & HWY_AVX3
    {"avx512-f32", CpuTier::kAvx512, N_AVX3::kPeakOps, &N_AVX3::RunPeakF32},
    {"avx512-vnni-u8s8", CpuTier::kAvx512Vnni, N_AVX3::kPeakDotOps, &N_AVX3::RunPeakDot},
    {"zen4-bf16", CpuTier::kZen4, N_AVX3::kPeakBf16Ops, &N_AVX3::RunPeakBf16},
    {"amx-u8s8", CpuTier::kAmx, N_AVX3::kPeakTileBytesOps, &N_AVX3::RunPeakTileBytes},
    {"amx-bf16", CpuTier::kAmx, N_AVX3::kPeakTileHalvesOps, &N_AVX3::RunPeakTileHalves},
    {"amx-bf16x3", CpuTier::kAmx, N_AVX3::kPeakTileSplitHalvesOps, &N_AVX3::RunPeakTileHalves},
#endif
#if HWY_ARCH_ARM_A64
    {"neon-f32", CpuTier::kNeon, HWY_NAMESPACE::kPeakOps, &HWY_NAMESPACE::RunPeakF32},
#endif
};

}  // namespace

HWY_EXPORT(XorWords);

std::span<const PeakLoop> AllPeakLoops() { return kLoops; }

uint64_t ReadSweep(const void* data, size_t n) {
  return HWY_DYNAMIC_DISPATCH(XorWords)(static_cast<const uint64_t*>(data), n / sizeof(uint64_t));
}

}  // namespace pozor
#endif  // HWY_ONCE
