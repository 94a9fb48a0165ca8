// bf16 weights. Two ways, and two families of results:
//
// * widened: a weight becomes an f32 by a shift, the activations stay f32, and sums are f32 in the
//   order of gemm_f32.cc: the bits of an f32 product with the rounded weights, on every tier.
// * VDPBF16PS, where it is faster than that: activations are rounded too, and two products enter
//   an f32 sum at once, by rules of rounding of their own.
//
// Loops as in gemm_f32.cc: groups of panels outside, blocks of rows inside, all of K in one go.
#include <cstring>
#include <utility>

#include "kernels/check.h"
#include "kernels/even_pieces.h"
#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_bf16.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/bf16-inl.h"
#include "kernels/gemm_epilogue-inl.h"
#include "kernels/simd-inl.h"

#if HWY_ARCH_X86 || HWY_TARGET == HWY_STATIC_TARGET

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

// Pairs of K between two bursts of prefetches, and the lines that a burst is a multiple of.
constexpr size_t kPrefetchInterval = 8;
constexpr size_t kPrefetchLines = 4;

// Pairs unrolled: as in gemm_f32.cc.
constexpr size_t kUnroll = HWY_TARGET == HWY_AVX3 ? 2 : 1;

constexpr size_t kPairSize = 2 * kPanelColumns;  // of a panel, in bf16

using VU = hn::Vec<DU32>;

template <class A>
struct TileInputs {
  const A* a;  // first row
  size_t a_stride;
  const Bf16* b;        // first panel
  size_t panel_stride;  // bf16 from panel to panel
  size_t k;
  // `prefetch_lines` lines, a multiple of kPrefetchLines, every kPrefetchInterval pairs.
  const Bf16* prefetch;
  size_t prefetch_lines;
};

HWY_INLINE VU LoadPairs(const Bf16* at) {
  return hn::Load(DU32(), reinterpret_cast<const uint32_t*>(at));
}

// f32 activations: even and odd inputs one after the other.
struct Widened {
  using A = float;

  // acc += the inputs of one parity: widen(v) are the weights of vector v.
  template <size_t kRows, size_t kVectors, class Widen>
  static HWY_INLINE void Multiply(const A* HWY_RESTRICT a, size_t a_stride, const Widen& widen,
                                  VF (&acc)[kRows][kVectors]) {
    const DF df;
    // The shorter side of the tile stays in registers, the longer one passes through one. On Arm
    // always A, as a widened vector of B comes of itself and a register.
    if constexpr (kRows < kVectors || HWY_ARCH_ARM) {
      VF column_a[kRows];
      HWY_UNROLL(8)
      for (size_t i = 0; i < kRows; ++i) column_a[i] = hn::Set(df, a[i * a_stride]);
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) {
        const VF element_b = widen(v);
        HWY_UNROLL(8)
        for (size_t i = 0; i < kRows; ++i) {
          acc[i][v] = hn::MulAdd(column_a[i], element_b, acc[i][v]);
          if constexpr (HWY_ARCH_ARM) POZOR_KEEP_IN_REGISTER(acc[i][v]);
        }
      }
    } else {
      VF row_b[kVectors];
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) row_b[v] = widen(v);
      HWY_UNROLL(8)
      for (size_t i = 0; i < kRows; ++i) {
        const VF element_a = hn::Set(df, a[i * a_stride]);
        HWY_UNROLL(8)
        for (size_t v = 0; v < kVectors; ++v) {
          acc[i][v] = hn::MulAdd(element_a, row_b[v], acc[i][v]);
        }
      }
    }
  }

  template <size_t kRows, size_t kVectors, class Place>
  static HWY_INLINE void Step(const A* HWY_RESTRICT even, const A* HWY_RESTRICT odd,
                              size_t a_stride, const Bf16* HWY_RESTRICT b, const Place& place,
                              VF (&acc)[kRows][kVectors]) {
    const auto widen_even = [&](size_t v) HWY_ATTR {
      return hn::BitCast(DF(), hn::ShiftLeft<16>(LoadPairs(b + place(v))));
    };
    Multiply(even, a_stride, widen_even, acc);
    // Without AVX-512 no register is left to keep pairs in, nor a mask.
    if constexpr (HWY_TARGET != HWY_AVX3) POZOR_HIDE_VALUE(b);
    const auto widen_odd = [&](size_t v) HWY_ATTR {
      const VU pairs = LoadPairs(b + place(v));
      if constexpr (HWY_TARGET == HWY_AVX3) {
        return hn::BitCast(DF(), hn::And(pairs, hn::Set(DU32(), 0xFFFF0000u)));
      } else {
        return hn::BitCast(DF(), hn::ShiftLeft<16>(hn::ShiftRight<16>(pairs)));
      }
    };
    Multiply(odd, a_stride, widen_odd, acc);
  }
};

#if HWY_TARGET == HWY_AVX3
// bf16 activations, padded with a zero to whole pairs. By inline assembly, as no Highway target of
// ours has the instruction; only reachable through a row that has checked the CPU.
struct Dotted {
  using A = Bf16;

  template <size_t kRows, size_t kVectors, class Place>
  static HWY_INLINE void Step(const A* HWY_RESTRICT a, const A* /*odd*/, size_t a_stride,
                              const Bf16* HWY_RESTRICT b, const Place& place,
                              VF (&acc)[kRows][kVectors]) {
    VU row_b[kVectors];
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) row_b[v] = LoadPairs(b + place(v));
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRows; ++i) {
      uint32_t pair;
      std::memcpy(&pair, a + i * a_stride, sizeof(pair));
      const VU pair_a = hn::Set(DU32(), pair);
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) {
        asm("vdpbf16ps %2, %1, %0" : "+v"(acc[i][v].raw) : "v"(pair_a.raw), "v"(row_b[v].raw));
      }
    }
  }
};
#endif

// tile[kRows][kPanels * 16] = A B over the whole of K.
template <size_t kRows, size_t kPanels, class Format>
void MultiplyTile(const TileInputs<typename Format::A>& in, float* HWY_RESTRICT tile) {
  constexpr size_t kVectors = kPanels * kPanelVectors;
  const DF df;
  VF acc[kRows][kVectors];
  HWY_UNROLL(8)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) acc[i][v] = hn::Zero(df);
  }
  const typename Format::A* HWY_RESTRICT a = in.a;
  const Bf16* HWY_RESTRICT b = in.b;
  const Bf16* prefetch = in.prefetch;
  const size_t a_stride = in.a_stride, panel_stride = in.panel_stride;
  const auto place = [panel_stride](size_t v) {
    return v / kPanelVectors * panel_stride + v % kPanelVectors * 2 * kLanes;
  };
  size_t left = in.k / 2;
  for (; left >= kPrefetchInterval; left -= kPrefetchInterval) {
    for (size_t p = 0; p < in.prefetch_lines; p += kPrefetchLines) {
      HWY_UNROLL(8)
      for (size_t i = 0; i < kPrefetchLines; ++i) POZOR_PREFETCH_L2(prefetch + i * kPairSize);
      prefetch += kPrefetchLines * kPairSize;
    }
    for (size_t u = 0; u < kPrefetchInterval / kUnroll; ++u, b += kUnroll * kPairSize) {
      HWY_UNROLL(8)
      for (size_t s = 0; s < kUnroll; ++s) {
        Format::Step(a, a + 1, a_stride, b + s * kPairSize, place, acc);
        a += 2;
        POZOR_HIDE_VALUE(a);
        if constexpr (kUnroll > 1) {
          // Fixes the order of the steps: see gemm_f32.cc.
          HWY_UNROLL(8)
          for (size_t i = 0; i < kRows; ++i) {
            HWY_UNROLL(8)
            for (size_t v = 0; v < kVectors; ++v) POZOR_KEEP_IN_REGISTER(acc[i][v]);
          }
        }
      }
    }
  }
  // An odd last input stands for its neighbour, whose weights are zero, as well: that adds nothing,
  // as sums are never -0, and poisons nothing new. (An `if` here keeps g++ 12's sums in memory.)
  left += in.k % 2;
  for (; left != 0; --left, a += 2, b += kPairSize) {
    Format::Step(a, left == 1 ? a + (1 - in.k % 2) : a + 1, a_stride, b, place, acc);
  }
  HWY_UNROLL(8)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) POZOR_KEEP_IN_REGISTER(acc[i][v]);
  }
  HWY_UNROLL(8)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) {
      hn::Store(acc[i][v], df, tile + (i * kVectors + v) * kLanes);
    }
  }
}

// MultiplyTile for 1..kMaxRows rows and 1..kMaxPanels panels.
template <size_t kMaxRows, size_t kMaxPanels, class Format>
struct TileTable {
  void (*tile[kMaxRows][kMaxPanels])(const TileInputs<typename Format::A>&, float*);

  template <size_t kRow, size_t... kPanel>
  constexpr void FillRow(std::index_sequence<kPanel...>) {
    ((tile[kRow][kPanel] = &MultiplyTile<kRow + 1, kPanel + 1, Format>), ...);
  }
  template <size_t... kRow>
  constexpr void Fill(std::index_sequence<kRow...>) {
    (FillRow<kRow>(std::make_index_sequence<kMaxPanels>()), ...);
  }
  constexpr TileTable() : tile() { Fill(std::make_index_sequence<kMaxRows>()); }
};

// Rows [first_row, first_row + rows) of the product; a: its first row.
template <size_t kMaxRows, size_t kMaxPanels, class Format>
void MultiplyRows(const GemmArgs& args, const typename Format::A* a, size_t a_stride,
                  size_t first_row, size_t rows) {
  static constexpr TileTable<kMaxRows, kMaxPanels, Format> kTiles;
  alignas(kAlignment) float values[kMaxRows * kMaxPanels * kPanelColumns];
  const StoreTileFunction store = ChooseStoreTile(args.epilogue.activation);
  const size_t k = args.b->k;
  const size_t panel_stride = PackedPanelBytes(args.b->layout, k) / sizeof(Bf16);
  const Bf16* panels = static_cast<const Bf16*>(args.b->panels);
  const EvenPieces groups(args.panel_end - args.panel_begin, kMaxPanels);
  const EvenPieces blocks(rows, kMaxRows);
  const size_t bursts = k / 2 / kPrefetchInterval;

  size_t panel = args.panel_begin;
  for (size_t g = 0; g < groups.pieces; ++g) {
    const size_t width = groups.Size(g);
    const size_t next_width = g + 1 < groups.pieces ? groups.Size(g + 1) : 0;
    const Bf16* next = panels + (panel + width) * panel_stride;
    const size_t next_lines = next_width * panel_stride / kPairSize;
    const size_t lines =
        bursts == 0 ? 0 : RoundUp(DivCeil(next_lines, blocks.pieces * bursts), kPrefetchLines);
    size_t row = 0;
    for (size_t block = 0; block < blocks.pieces; ++block) {
      const size_t height = blocks.Size(block);
      TileInputs<typename Format::A> in = {};
      in.a = a + row * a_stride;
      in.a_stride = a_stride;
      in.b = panels + panel * panel_stride;
      in.panel_stride = panel_stride;
      in.k = k;
      if (block * bursts * lines < next_lines) {
        in.prefetch = next + block * bursts * lines * kPairSize;
        in.prefetch_lines = lines;
      }
      kTiles.tile[height - 1][width - 1](in, values);
      store(args.epilogue, {values, first_row + row, height, panel, width, args.b->n});
      row += height;
    }
    panel += width;
  }
}

template <size_t kMaxRows, size_t kMaxPanels>
void MultiplyWidened(const GemmArgs& args) {
  MultiplyRows<kMaxRows, kMaxPanels, Widened>(args, args.a, args.a_stride, 0, args.m);
}

#if HWY_TARGET == HWY_AVX3
// Blocks of rows are rounded on the stack, as many at a time as it holds.
template <size_t kMaxRows, size_t kMaxPanels>
void MultiplyDotted(const GemmArgs& args) {
  constexpr size_t kSize = 49152;  // 128 rows at K = 384, 32 at 1536
  alignas(kAlignment) Bf16 rounded[kSize];
  const size_t k = RoundUp(args.b->k, 2 * kPanelColumns);
  const size_t stride = k % 2048 == 0 ? k + 32 : k;  // rows must not meet in one cache set
  POZOR_CHECK(stride <= kSize);
  const EvenPieces blocks(args.m, stride == 0 ? args.m + 1 : kSize / stride);
  size_t row = 0;
  for (size_t block = 0; block < blocks.pieces; ++block) {
    const size_t rows = blocks.Size(block);
    for (size_t r = 0; r < rows; ++r) {
      RoundRowToBf16(args.a + (row + r) * args.a_stride, args.b->k, k, rounded + r * stride);
    }
    MultiplyRows<kMaxRows, kMaxPanels, Dotted>(args, rounded, stride, row, rows);
    row += rows;
  }
}
#endif

}  // namespace

#if HWY_TARGET == HWY_AVX3
void GemmBf16Rows8Columns48(const GemmArgs& args) { MultiplyWidened<8, 3>(args); }
void GemmBf16DotRows8Columns48(const GemmArgs& args) { MultiplyDotted<8, 3>(args); }
void GemmBf16DotRows6Columns64(const GemmArgs& args) { MultiplyDotted<6, 4>(args); }
#elif HWY_TARGET == HWY_AVX2
void GemmBf16Rows6Columns16(const GemmArgs& args) { MultiplyWidened<6, 1>(args); }
#elif HWY_ARCH_X86
void GemmBf16Rows1Columns16(const GemmArgs& args) { MultiplyWidened<1, 1>(args); }
#else
void GemmBf16Rows6Columns16(const GemmArgs& args) { MultiplyWidened<6, 1>(args); }
#endif

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_ARCH_X86 || HWY_TARGET == HWY_STATIC_TARGET
