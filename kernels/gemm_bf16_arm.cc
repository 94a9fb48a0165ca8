// bf16 micro-kernel of BFMMLA: two rows by two columns and four inputs at once. Packed panels serve
// as they are: two neighbouring groups of four columns are zipped to columns' quadruples of inputs.
//
// Sums follow the instruction's rules of rounding: they differ from f32 sums and from x86's bf16.
#include <cstring>
#include <utility>

#include "kernels/check.h"
#include "kernels/even_pieces.h"
#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_bf16_arm.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/bf16-inl.h"
#include "kernels/gemm_epilogue-inl.h"
#include "kernels/simd-inl.h"

#if HWY_ARCH_ARM_A64 && HWY_TARGET == HWY_STATIC_TARGET

#include <arm_neon.h>

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

constexpr size_t kMaxPairs = 3;  // of rows
constexpr size_t kQuad = 4;      // inputs a step

// sum += the 2 x 4 of a times the 4 x 2 of b: [row 0: columns 0, 1; row 1: columns 0, 1]. By inline
// assembly, so that no other function of this file can use the extension.
HWY_INLINE void MultiplyPairs(float32x4_t& sum, uint32x4_t a, uint32x4_t b) {
  asm(".arch armv8.2-a+bf16\n\tbfmmla %0.4s, %1.8h, %2.8h" : "+w"(sum) : "w"(a), "w"(b));
}

// tile[2 * kPairs][16] = A B for pairs of rows: a[kPairs][steps][2][4], b: one panel.
template <size_t kPairs>
void MultiplyTile(const Bf16* a, size_t pair_stride, const Bf16* b, size_t steps, float* tile) {
  float32x4_t acc[kPairs][8];
  HWY_UNROLL(8)
  for (size_t i = 0; i < kPairs; ++i) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < 8; ++v) acc[i][v] = vdupq_n_f32(0.0f);
  }
  for (; steps != 0; --steps, a += 2 * kQuad, b += kQuad * kPanelColumns) {
    uint32x4_t rows[kPairs];
    HWY_UNROLL(8)
    for (size_t i = 0; i < kPairs; ++i) {
      rows[i] = vld1q_u32(reinterpret_cast<const uint32_t*>(a + i * pair_stride));
    }
    HWY_UNROLL(4)
    for (size_t j = 0; j < 4; ++j) {
      const uint32_t* at = reinterpret_cast<const uint32_t*>(b) + 4 * j;
      const uint32x4_t first = vld1q_u32(at), second = vld1q_u32(at + kPanelColumns);
      const uint32x4_t low = vzip1q_u32(first, second), high = vzip2q_u32(first, second);
      HWY_UNROLL(8)
      for (size_t i = 0; i < kPairs; ++i) {
        MultiplyPairs(acc[i][2 * j], rows[i], low);
        MultiplyPairs(acc[i][2 * j + 1], rows[i], high);
      }
      // Columns in turn: g++ 12 otherwise holds more of B than registers are left, and spills sums.
      HWY_UNROLL(8)
      for (size_t i = 0; i < kPairs; ++i) {
        asm volatile("" : "+w"(acc[i][2 * j]), "+w"(acc[i][2 * j + 1]));
      }
      POZOR_HIDE_VALUE(b);
    }
  }
  HWY_UNROLL(8)
  for (size_t i = 0; i < kPairs; ++i) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < 8; ++v) {
      vst1_f32(tile + 2 * i * kPanelColumns + 2 * v, vget_low_f32(acc[i][v]));
      vst1_f32(tile + (2 * i + 1) * kPanelColumns + 2 * v, vget_high_f32(acc[i][v]));
    }
  }
}

// Rows 2i and 2i + 1 as [steps][2][4]; zeros in place of a row that is not there.
void RoundPair(const GemmArgs& args, size_t row, size_t padded_k, Bf16* HWY_RESTRICT lines,
               Bf16* HWY_RESTRICT pair) {
  for (size_t r = 0; r < 2; ++r) {
    const bool present = row + r < args.m;
    const float* from = present ? args.a + (row + r) * args.a_stride : args.a;
    RoundRowToBf16(from, present ? args.b->k : 0, padded_k, lines);
    for (size_t k = 0; k < padded_k; k += kQuad) {
      std::memcpy(pair + 2 * k + r * kQuad, lines + k, kQuad * sizeof(Bf16));
    }
  }
}

using MultiplyTileFunction = void (*)(const Bf16*, size_t, const Bf16*, size_t, float*);

void MultiplyMmla(const GemmArgs& args) {
  static constexpr MultiplyTileFunction kTiles[kMaxPairs] = {&MultiplyTile<1>, &MultiplyTile<2>,
                                                             &MultiplyTile<3>};
  constexpr size_t kSize = 65536;  // 128 rows at K = 384
  alignas(kAlignment) Bf16 rounded[kSize];
  alignas(kAlignment) float values[2 * kMaxPairs * kPanelColumns];
  const PackedMatrix& b = *args.b;
  const StoreTileFunction store = ChooseStoreTile(args.epilogue.activation);
  const size_t padded_k = RoundUp(b.k, kPanelColumns), pair_stride = 2 * padded_k + 16;
  const size_t panel_stride = PackedPanelBytes(b.layout, b.k) / sizeof(Bf16);
  POZOR_CHECK(padded_k + pair_stride <= kSize);
  Bf16* const line = rounded + (kSize - padded_k) / 32 * 32;
  const size_t pairs_that_fit = static_cast<size_t>(line - rounded) / pair_stride;
  const EvenPieces blocks(DivCeil(args.m, 2), pairs_that_fit);
  size_t row = 0;
  for (size_t block = 0; block < blocks.pieces; ++block) {
    const size_t pairs = blocks.Size(block);
    for (size_t i = 0; i < pairs; ++i) {
      RoundPair(args, row + 2 * i, padded_k, line, rounded + i * pair_stride);
    }
    for (size_t panel = args.panel_begin; panel < args.panel_end; ++panel) {
      const Bf16* packed = static_cast<const Bf16*>(b.panels) + panel * panel_stride;
      const EvenPieces tiles(pairs, kMaxPairs);
      size_t pair = 0;
      for (size_t t = 0; t < tiles.pieces; ++t) {
        const size_t height = tiles.Size(t), first = row + 2 * pair;
        kTiles[height - 1](rounded + pair * pair_stride, pair_stride, packed, padded_k / kQuad,
                           values);
        store(args.epilogue, {values, first, HWY_MIN(2 * height, args.m - first), panel, 1, b.n});
        pair += height;
      }
    }
    row += 2 * pairs;
  }
}

}  // namespace

void GemmBf16MmlaRows6Columns16(const GemmArgs& args) { MultiplyMmla(args); }

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_ARCH_ARM_A64 && HWY_TARGET == HWY_STATIC_TARGET
