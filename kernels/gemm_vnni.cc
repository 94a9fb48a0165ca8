// int8 micro-kernels of VPDPBUSD: u8 activations by broadcast, s8 weights as packed, four inputs a
// step. One set for AVX-512 VNNI and one for AVX-VNNI, by inline assembly: Highway's own targets
// ask for more than VNNI, or have none.
//
// Loops as in gemm_f32.cc: groups of panels outside, blocks of rows inside, all of K in one go.
#include <cstring>
#include <utility>

#include "kernels/check.h"
#include "kernels/even_pieces.h"
#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_vnni.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/gemm_dequantize-inl.h"
#include "kernels/gemm_epilogue-inl.h"
#include "kernels/simd-inl.h"
#include "kernels/vnni-inl.h"

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

// Steps of K between two bursts of prefetches, the lines that a burst is a multiple of, and the
// steps unrolled: as in gemm_f32.cc.
constexpr size_t kPrefetchInterval = 8;
constexpr size_t kPrefetchLines = 4;
constexpr size_t kUnroll = HWY_TARGET == HWY_AVX3 ? 4 : 1;
constexpr size_t kStepBytes = 4 * kPanelColumns;  // of a panel

using VI = hn::Vec<DI32>;

struct TileInputs {
  const uint8_t* a;  // first row
  size_t a_stride;
  const int8_t* b;             // first panel
  size_t panel_stride;         // bytes from panel to panel
  size_t steps;                // four inputs each
  const int32_t* zeros;        // [rows] ZeroPair of each row
  const int32_t* corrections;  // [panels * 16] SumPair of each column
  const int8_t* prefetch;
  size_t prefetch_lines;  // every kPrefetchInterval steps
};

// From sums to C. Either `bias` or `start` is added; a pass over the first of two K groups, and a
// tile with an epilogue of its own, go to the stack.
struct TileOutput {
  const float* column_scales;  // [panels * 16]
  const RowScale* rows;        // every `row_step`-th is a row's
  size_t row_step;
  const float* bias;      // [panels * 16]
  const float* start;     // [rows, panels * 16] of the first group's pass, or null
  bool first_group;       // no fused multiply-add: the first of two
  float* tile;            // [rows, panels * 16] on the stack; null: to the panels
  const float* scale;     // or null
  const float* residual;  // of the first panel, or null
  size_t residual_stride;
  float* panels[4];  // first row of each panel
  size_t c_stride;
};

HWY_INLINE VI LoadDword(const uint8_t* at) {
  int32_t dword;
  std::memcpy(&dword, at, sizeof(dword));
  return hn::Set(DI32(), dword);
}

template <size_t kRows, size_t kPanels>
void MultiplyTile(const TileInputs& in, const TileOutput& out) {
  constexpr size_t kVectors = kPanels * kPanelVectors;
  const DF df;
  const DI32 di;
  VI acc[kRows][kVectors];
  HWY_UNROLL(8)
  for (size_t v = 0; v < kVectors; ++v) {
    const VI correction = hn::Load(di, in.corrections + v * kLanes);
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRows; ++i) {
      acc[i][v] = hn::WidenMulPairwiseAdd(di, hn::BitCast(D16(), hn::Set(di, in.zeros[i])),
                                          hn::BitCast(D16(), correction));
    }
  }

  const uint8_t* HWY_RESTRICT a = in.a;
  const int8_t* HWY_RESTRICT b = in.b;
  const int8_t* prefetch = in.prefetch;
  const size_t a_stride = in.a_stride, panel_stride = in.panel_stride;
  const auto step = [&](const uint8_t* HWY_RESTRICT step_a,
                        const int8_t* HWY_RESTRICT step_b) HWY_ATTR __attribute__((always_inline)) {
    const auto load_b = [&](size_t v) HWY_ATTR __attribute__((always_inline)) {
      return hn::Load(di,
                      reinterpret_cast<const int32_t*>(step_b + v / kPanelVectors * panel_stride +
                                                       v % kPanelVectors * 4 * kLanes));
    };
    // The shorter side of the tile stays in registers, the longer one passes through one.
    if constexpr (kRows < kVectors) {
      VI column_a[kRows];
      HWY_UNROLL(8)
      for (size_t i = 0; i < kRows; ++i) column_a[i] = LoadDword(step_a + i * a_stride);
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) {
        const VI element_b = load_b(v);
        HWY_UNROLL(8)
        for (size_t i = 0; i < kRows; ++i) DotBytes(acc[i][v], column_a[i], element_b);
      }
    } else {
      VI row_b[kVectors];
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) row_b[v] = load_b(v);
      HWY_UNROLL(8)
      for (size_t i = 0; i < kRows; ++i) {
        const VI element_a = LoadDword(step_a + i * a_stride);
        HWY_UNROLL(8)
        for (size_t v = 0; v < kVectors; ++v) DotBytes(acc[i][v], element_a, row_b[v]);
      }
    }
  };
  size_t left = in.steps;
  for (; left >= kPrefetchInterval; left -= kPrefetchInterval) {
    for (size_t p = 0; p < in.prefetch_lines; p += kPrefetchLines) {
      HWY_UNROLL(8)
      for (size_t i = 0; i < kPrefetchLines; ++i) POZOR_PREFETCH_L2(prefetch + i * 64);
      prefetch += kPrefetchLines * 64;
    }
    for (size_t u = 0; u < kPrefetchInterval / kUnroll; ++u, b += kUnroll * kStepBytes) {
      HWY_UNROLL(8)
      for (size_t s = 0; s < kUnroll; ++s) {
        step(a, b + s * kStepBytes);
        a += 4;
        POZOR_HIDE_VALUE(a);
      }
    }
  }
  for (; left != 0; --left, a += 4, b += kStepBytes) step(a, b);

  HWY_UNROLL(8)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) POZOR_KEEP_IN_REGISTER(acc[i][v]);
  }
  VF x[kRows][kVectors];
  HWY_UNROLL(8)
  for (size_t v = 0; v < kVectors; ++v) {
    const VF column_scale = hn::Load(df, out.column_scales + v * kLanes);
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRows; ++i) {
      x[i][v] = hn::Mul(hn::ConvertTo(df, acc[i][v]), column_scale);
    }
  }
  const RowScale* row = out.rows;
  if (out.start != nullptr) {
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRows; ++i, row += out.row_step) {
      const VF scale = hn::Set(df, row->scale);
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) {
        x[i][v] = hn::MulAdd(x[i][v], scale, hn::Load(df, out.start + (i * kVectors + v) * kLanes));
      }
    }
  } else if (out.first_group) {
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRows; ++i, row += out.row_step) {
      const VF scale = hn::Set(df, row->scale);
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) {
        x[i][v] = hn::Add(hn::Mul(x[i][v], scale), hn::Load(df, out.bias + v * kLanes));
      }
    }
  } else {
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRows; ++i, row += out.row_step) {
      const VF scale = hn::Set(df, row->scale);
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) {
        x[i][v] = hn::MulAdd(x[i][v], scale, hn::Load(df, out.bias + v * kLanes));
      }
    }
  }
  if (out.tile != nullptr) {
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRows; ++i) {
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) {
        hn::Store(x[i][v], df, out.tile + (i * kVectors + v) * kLanes);
      }
    }
    return;
  }
  if (out.scale != nullptr) {
    const VF scale = hn::Set(df, *out.scale);
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRows; ++i) {
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) x[i][v] = hn::Mul(x[i][v], scale);
    }
  }
  if (out.residual != nullptr) {
    HWY_UNROLL(8)
    for (size_t i = 0; i < kRows; ++i) {
      const float* residual = out.residual + i * out.residual_stride;
      HWY_UNROLL(8)
      for (size_t v = 0; v < kVectors; ++v) {
        x[i][v] = hn::Add(x[i][v], hn::LoadU(df, residual + v * kLanes));
      }
    }
  }
  HWY_UNROLL(8)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < kVectors; ++v) {
      hn::StoreU(x[i][v], df,
                 out.panels[v / kPanelVectors] + i * out.c_stride + v % kPanelVectors * kLanes);
    }
  }
}

using MultiplyTileFunction = void (*)(const TileInputs&, const TileOutput&);

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

// Where a tile goes. Written field by field, never copied: a wide load of what narrow stores have
// just left would wait for all stores before them, those of the last tile included.
void PointAtC(const GemmEpilogue& e, const FinishedTile& tile, TileOutput* out) {
  const size_t column = tile.panel * kPanelColumns;
  out->scale = column < e.scaled_columns ? &e.scale : nullptr;
  out->residual =
      e.residual == nullptr ? nullptr : e.residual + tile.row * e.residual_stride + column;
  out->residual_stride = e.residual_stride;
  for (size_t p = 0; p < tile.panels; ++p) {
    out->panels[p] = OutputPanel(e, tile.row, column + p * kPanelColumns);
  }
  out->c_stride = e.c_stride;
}

// One of the K groups of a product.
struct Group {
  size_t begin, steps;
  const float* column_scales;
  const int32_t* column_sums;
};

size_t GroupsOf(const PackedMatrix& b, Group* groups) {
  const size_t padded_n = b.panel_count() * kPanelColumns, k = RoundUp(b.k, 4);
  const size_t first = b.split == 0 ? k : b.split;
  groups[0] = {0, first / 4, b.column_scales, b.column_sums};
  groups[1] = {first, (k - first) / 4, b.column_scales + padded_n, b.column_sums + padded_n};
  return b.groups();
}

template <size_t kMaxRows, size_t kMaxPanels>
void MultiplyVnni(const GemmArgs& args) {
  static constexpr TileTable<kMaxRows, kMaxPanels> kTiles;
  constexpr size_t kWidth = kMaxPanels * kPanelColumns;
  alignas(kAlignment) static constexpr float kNoBias[kWidth] = {};
  alignas(kAlignment) float values[kMaxRows * kWidth], start[kMaxRows * kWidth];
  alignas(kAlignment) int32_t corrections[2][kWidth];
  int32_t zeros[2][kMaxRows];
  const PackedMatrix& b = *args.b;
  POZOR_CHECK(b.k <= kMaxPairedInputs);
  Group groups[2];
  const size_t group_count = GroupsOf(b, groups);
  GemmEpilogue epilogue = args.epilogue;
  epilogue.bias = nullptr;  // the tile adds it
  const StoreTileFunction store = ChooseStoreTile(epilogue.activation);
  const size_t panel_stride = PackedPanelBytes(b.layout, b.k);
  const int8_t* panels = static_cast<const int8_t*>(b.panels);
  const EvenPieces widths(args.panel_end - args.panel_begin, kMaxPanels);
  const EvenPieces blocks(args.m, kMaxRows);
  const size_t bursts = groups[group_count - 1].steps / kPrefetchInterval;
  if (args.m == 0) return;

  size_t panel = args.panel_begin;
  for (size_t w = 0; w < widths.pieces; ++w) {
    const size_t width = widths.Size(w), column = panel * kPanelColumns;
    const size_t next_width = w + 1 < widths.pieces ? widths.Size(w + 1) : 0;
    const int8_t* next = panels + (panel + width) * panel_stride;
    const size_t next_lines = next_width * panel_stride / 64;
    const size_t lines =
        bursts == 0 ? 0 : RoundUp(DivCeil(next_lines, blocks.pieces * bursts), kPrefetchLines);
    for (size_t g = 0; g < group_count; ++g) {
      SumPairs(groups[g].column_sums + column, width * kPanelColumns, corrections[g]);
    }
    TileInputs in;
    TileOutput out;
    in.a_stride = args.quantized.stride;
    in.panel_stride = panel_stride;
    out.row_step = group_count;
    out.bias = args.epilogue.bias == nullptr ? kNoBias : args.epilogue.bias + column;
    const bool straight = GoesStraightToC(epilogue, panel, width, b.n);
    size_t row = 0;
    for (size_t block = 0; block < blocks.pieces; ++block) {
      const size_t rows = blocks.Size(block);
      const RowScale* scales = args.quantized.scales + row * group_count;
      const FinishedTile tile = {values, row, rows, panel, width, b.n};
      if (straight) PointAtC(epilogue, tile, &out);
      for (size_t g = 0; g < group_count; ++g) {
        for (size_t r = 0; r < rows; ++r) zeros[g][r] = ZeroPair(scales[r * group_count + g].zero);
        const bool last = g + 1 == group_count;
        const bool prefetches = last && block * bursts * lines < next_lines;
        in.a = args.quantized.values + row * args.quantized.stride + groups[g].begin;
        in.b = panels + panel * panel_stride + groups[g].begin * kPanelColumns;
        in.steps = groups[g].steps;
        in.zeros = zeros[g];
        in.corrections = corrections[g];
        in.prefetch = next + block * bursts * lines * 64;
        in.prefetch_lines = prefetches ? lines : 0;
        out.column_scales = groups[g].column_scales + column;
        out.rows = scales + g;
        out.first_group = !last;
        out.start = g == 0 ? nullptr : start;
        out.tile = !last ? start : straight ? nullptr : values;
        kTiles.tile[rows - 1][width - 1](in, out);
      }
      if (!straight) store(epilogue, tile);
      row += rows;
    }
    panel += width;
  }
}

}  // namespace

#if HWY_TARGET == HWY_AVX3
void GemmVnniRows6Columns64(const GemmArgs& args) { MultiplyVnni<6, 4>(args); }
void GemmVnniRows8Columns48(const GemmArgs& args) { MultiplyVnni<8, 3>(args); }
#else
void GemmVnniRows6Columns16(const GemmArgs& args) { MultiplyVnni<6, 1>(args); }
#endif

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
