// f32 micro-kernels: outer products of broadcast A elements with packed B rows.
//
// Loops: groups of panels outside, blocks of rows inside, all of K in one go. A group's B (98 KiB
// at K = 384 and 64 columns) is read from L2 once a row block; while a group is worked on, the next
// one is prefetched.
#include <utility>

#include "kernels/even_pieces.h"
#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_f32.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/gemm_epilogue-inl.h"
#include "kernels/simd-inl.h"

// Scalable vectors cannot live in arrays, and 4x128-bit NEON has the flops of 2x256-bit SVE: Arm
// has one set of rows, compiled for its baseline.
#if HWY_ARCH_X86 || HWY_TARGET == HWY_STATIC_TARGET

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

// Steps of K between two bursts of prefetches, and the lines that a burst is a multiple of.
constexpr size_t kPrefetchInterval = 8;
constexpr size_t kPrefetchLines = 4;

// Steps unrolled: the fewer instructions stand beside the multiply-adds, the less a busy sibling
// thread or a short product costs. AVX-512, 12 rows: 97 % of the peak, 90 % without; AVX2 beside a
// busy sibling, 128 rows: 72 %, 59 % without.
constexpr size_t kUnroll = HWY_TARGET == HWY_AVX3 ? 4 : HWY_TARGET == HWY_AVX2 ? 8 : 1;

// On AVX2, with 16 registers, g++ 12 moves accumulators about in an unrolled loop, unless it is
// told that every operand of a product is read once more behind it.
constexpr bool kHoldsOperands = HWY_TARGET == HWY_AVX2;

struct TileInputs {
  const float* a;  // first row
  size_t a_stride;
  const float* b;       // first panel
  size_t panel_stride;  // floats from panel to panel
  size_t k;
  // `prefetch_lines` lines, a multiple of kPrefetchLines, every kPrefetchInterval steps.
  const float* prefetch;
  size_t prefetch_lines;
};

// The rows of A that a tile reads. Without operands to hold one pointer goes from step to step;
// with them a pointer a row stays and one index for all goes on once an unrolled loop's body, which
// is the least that six rows can do with.
template <size_t kRows>
class RowsOfA {
 public:
  static constexpr size_t kSteps = kHoldsOperands ? kUnroll : 1;  // that Advance goes on by

  RowsOfA(const float* a, size_t stride) : a_(a), stride_(stride) {
    if constexpr (!kHoldsOperands) return;
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRows; ++i) {
      rows_[i] = a + i * stride;
      POZOR_HIDE_VALUE(rows_[i]);
    }
  }

  // The element of row i, `ahead` steps on, in every lane.
  HWY_INLINE VF Element(size_t i, size_t ahead) const {
    const DF df;
    if constexpr (kHoldsOperands) return hn::Set(df, rows_[i][index_ + ahead]);
    return hn::Set(df, a_[i * stride_]);
  }
  HWY_INLINE void Advance() {
    if constexpr (kHoldsOperands) {
      index_ += kSteps;
      POZOR_HIDE_VALUE(index_);
    } else {
      ++a_;
      POZOR_HIDE_VALUE(a_);
    }
  }
  HWY_INLINE void AdvanceByOne() { kHoldsOperands ? void(++index_) : void(++a_); }

 private:
  const float* a_;
  size_t stride_;
  const float* rows_[kRows];
  size_t index_ = 0;
};

// Where a tile goes whose epilogue is at most a bias and a residual: no detour through the stack,
// 1-2 % of the whole at K = 384.
struct DirectOutput {
  const float* bias;  // of the first column; null: the tile goes to the stack
  const float* residual;
  size_t residual_stride;
  float* panels[4];  // first row of each panel
  size_t c_stride;
};

// A B over the whole of K, for kRows rows: to C if `direct` has a bias, else to tile[kRows][kPanels
// * 16].
template <size_t kRows, size_t kPanels>
void MultiplyTile(const TileInputs& in, const DirectOutput& direct, float* HWY_RESTRICT tile) {
  constexpr size_t kVectors = kPanels * kPanelVectors;
  const DF df;
  VF acc[kRows][kVectors];
  HWY_UNROLL(8)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) acc[i][v] = hn::Zero(df);
  }

  RowsOfA<kRows> a(in.a, in.a_stride);
  const float* HWY_RESTRICT b = in.b;
  const float* prefetch = in.prefetch;
  const size_t panel_stride = in.panel_stride;
  const auto step = [&](size_t ahead,
                        const float* HWY_RESTRICT step_b) HWY_ATTR __attribute__((always_inline)) {
    // The shorter side of the tile stays in registers, the longer one passes through one.
    if constexpr (kRows < kVectors) {
      VF column_a[kRows];
      HWY_UNROLL(8)
      for (size_t i = 0; i < kRows; ++i) column_a[i] = a.Element(i, ahead);
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) {
        const VF element_b =
            hn::Load(df, step_b + v / kPanelVectors * panel_stride + v % kPanelVectors * kLanes);
        HWY_UNROLL(8)
        for (size_t i = 0; i < kRows; ++i) {
          acc[i][v] = hn::MulAdd(column_a[i], element_b, acc[i][v]);
          HoldOperand(acc[i][v]);
        }
      }
    } else {
      VF row_b[kVectors];
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) {
        row_b[v] =
            hn::Load(df, step_b + v / kPanelVectors * panel_stride + v % kPanelVectors * kLanes);
      }
      HWY_UNROLL(8)
      for (size_t i = 0; i < kRows; ++i) {
        const VF element_a = a.Element(i, ahead);
        HWY_UNROLL(8)
        for (size_t v = 0; v < kVectors; ++v) {
          acc[i][v] = hn::MulAdd(element_a, row_b[v], acc[i][v]);
          HoldOperand(acc[i][v]);
        }
        HoldOperand(element_a);
      }
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) {
        HoldOperand(row_b[v]);
      }
    }
    if constexpr (kUnroll > 1 && !kHoldsOperands) {
      // Fixes the order of the steps: g++ 12 otherwise puts a step's products off to the next one
      // and runs out of registers.
      HWY_UNROLL(8)
      for (size_t i = 0; i < kRows; ++i) {
        HWY_UNROLL(8)
        for (size_t v = 0; v < kVectors; ++v) POZOR_KEEP_IN_REGISTER(acc[i][v]);
      }
    }
  };
  size_t left = in.k;
  for (; left >= kPrefetchInterval; left -= kPrefetchInterval) {
    for (size_t p = 0; p < in.prefetch_lines; p += kPrefetchLines) {
      HWY_UNROLL(8)
      for (size_t i = 0; i < kPrefetchLines; ++i) {
        POZOR_PREFETCH_L2(prefetch + i * kPanelColumns);
      }
      prefetch += kPrefetchLines * kPanelColumns;
    }
    for (size_t u = 0; u < kPrefetchInterval / kUnroll; ++u, b += kUnroll * kPanelColumns) {
      HWY_UNROLL(8)
      for (size_t s = 0; s < kUnroll; ++s) {
        step(s % a.kSteps, b + s * kPanelColumns);
        if (s % a.kSteps == a.kSteps - 1) a.Advance();
      }
    }
  }
  for (; left != 0; --left, a.AdvanceByOne(), b += kPanelColumns) step(0, b);

  HWY_UNROLL(8)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) POZOR_KEEP_IN_REGISTER(acc[i][v]);
  }
  if (direct.bias == nullptr) {
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRows; ++i) {
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) {
        hn::Store(acc[i][v], df, tile + (i * kVectors + v) * kLanes);
      }
    }
    return;
  }
  HWY_UNROLL(8)
  for (size_t v = 0; v < kVectors; ++v) {
    const VF bias = hn::Load(df, direct.bias + v * kLanes);
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRows; ++i) acc[i][v] = hn::Add(acc[i][v], bias);
  }
  if (direct.residual != nullptr) {
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRows; ++i) {
      const float* row = direct.residual + i * direct.residual_stride;
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) {
        acc[i][v] = hn::Add(acc[i][v], hn::LoadU(df, row + v * kLanes));
      }
    }
  }
  HWY_UNROLL(8)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) {
      hn::StoreU(
          acc[i][v], df,
          direct.panels[v / kPanelVectors] + i * direct.c_stride + v % kPanelVectors * kLanes);
    }
  }
}

DirectOutput ChooseDirectOutput(const GemmEpilogue& e, const FinishedTile& tile) {
  DirectOutput out = {};
  const size_t column = tile.panel * kPanelColumns;
  const bool whole_panels = e.split_columns != 0 || column + tile.panels * kPanelColumns <= tile.n;
  if (e.activation != Activation::kNone || column < e.scaled_columns || !whole_panels ||
      e.bias == nullptr) {
    return out;
  }
  out.bias = e.bias + column;
  if (e.residual != nullptr) out.residual = e.residual + tile.row * e.residual_stride + column;
  out.residual_stride = e.residual_stride;
  for (size_t p = 0; p < tile.panels; ++p) {
    out.panels[p] = OutputPanel(e, tile.row, column + p * kPanelColumns);
  }
  out.c_stride = e.c_stride;
  return out;
}

using MultiplyTileFunction = void (*)(const TileInputs&, const DirectOutput&, float*);

// MultiplyTile for 1..kMaxRows rows and 1..kMaxPanels panels.
template <size_t kMaxRows, size_t kMaxPanels>
struct TileTable {
  MultiplyTileFunction tile[kMaxRows][kMaxPanels];

  template <size_t kRow, size_t... kPanel>
  constexpr void FillRow(std::index_sequence<kPanel...>) {
    ((tile[kRow][kPanel] = &MultiplyTile<kRow + 1, kPanel + 1>), ...);
  }
  template <size_t... kRow>
  constexpr void Fill(std::index_sequence<kRow...>) {
    (FillRow<kRow>(std::make_index_sequence<kMaxPanels>()), ...);
  }
  constexpr TileTable() : tile() { Fill(std::make_index_sequence<kMaxRows>()); }
};

template <size_t kMaxRows, size_t kMaxPanels>
void MultiplyF32(const GemmArgs& args) {
  static constexpr TileTable<kMaxRows, kMaxPanels> kTiles;
  alignas(kAlignment) float values[kMaxRows * kMaxPanels * kPanelColumns];
  const StoreTileFunction store = ChooseStoreTile(args.epilogue.activation);
  const size_t k = args.b->k, panel_stride = k * kPanelColumns;
  const float* panels = static_cast<const float*>(args.b->panels);
  const EvenPieces groups(args.panel_end - args.panel_begin, kMaxPanels);
  const EvenPieces blocks(args.m, kMaxRows);
  const size_t bursts = k / kPrefetchInterval;
  if (args.m == 0) return;

  size_t panel = args.panel_begin;
  for (size_t g = 0; g < groups.pieces; ++g) {
    const size_t width = groups.Size(g);
    const size_t next_width = g + 1 < groups.pieces ? groups.Size(g + 1) : 0;
    const float* next = panels + (panel + width) * panel_stride;
    const size_t next_lines = next_width * k;
    const size_t lines =
        bursts == 0 ? 0 : RoundUp(DivCeil(next_lines, blocks.pieces * bursts), kPrefetchLines);
    size_t row = 0;
    for (size_t block = 0; block < blocks.pieces; ++block) {
      const size_t rows = blocks.Size(block);
      const TileInputs in = {.a = args.a + row * args.a_stride,
                             .a_stride = args.a_stride,
                             .b = panels + panel * panel_stride,
                             .panel_stride = panel_stride,
                             .k = k,
                             .prefetch = next + block * bursts * lines * kPanelColumns,
                             .prefetch_lines = block * bursts * lines < next_lines ? lines : 0};
      const FinishedTile tile = {values, row, rows, panel, width, args.b->n};
      const DirectOutput direct = ChooseDirectOutput(args.epilogue, tile);
      kTiles.tile[rows - 1][width - 1](in, direct, values);
      if (direct.bias == nullptr) store(args.epilogue, tile);
      row += rows;
    }
    panel += width;
  }
}

}  // namespace

#if HWY_TARGET == HWY_AVX3
void GemmF32Rows6Columns64(const GemmArgs& args) { MultiplyF32<6, 4>(args); }
void GemmF32Rows8Columns48(const GemmArgs& args) { MultiplyF32<8, 3>(args); }
#elif HWY_TARGET == HWY_AVX2
void GemmF32Rows6Columns16(const GemmArgs& args) { MultiplyF32<6, 1>(args); }
void GemmF32Rows2Columns32(const GemmArgs& args) { MultiplyF32<2, 2>(args); }
#elif HWY_ARCH_X86
void GemmF32Rows2Columns16(const GemmArgs& args) { MultiplyF32<2, 1>(args); }
#else
void GemmF32Rows6Columns16(const GemmArgs& args) { MultiplyF32<6, 1>(args); }
#endif

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_ARCH_X86 || HWY_TARGET == HWY_STATIC_TARGET
