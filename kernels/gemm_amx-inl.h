// What AMX micro-kernels of all types share: two by two tiles of 16 rows and 16 columns. A row of
// an A tile and a row of a B tile are 64 bytes, and a B tile is 16 groups of a packed panel as they
// lie there, so a type has its instruction, its step of K and what follows the sums.
//
// Rows of A are read where they are if they come in sixteens; others, and those that are rounded or
// split, from a copy on the stack with zeros around.
#if defined(POZOR_KERNELS_GEMM_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_GEMM_AMX_INL_H_
#undef POZOR_KERNELS_GEMM_AMX_INL_H_
#else
#define POZOR_KERNELS_GEMM_AMX_INL_H_
#endif

#include <cstddef>
#include <cstring>

#include "kernels/amx-inl.h"
#include "kernels/check.h"
#include "kernels/even_pieces.h"
#include "kernels/gemm.h"
#include "kernels/gemm_epilogue-inl.h"
#include "kernels/simd-inl.h"

#if HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {  // what one file alone calls, compilers inline into its loop over rows

// Sixteen rows of A, [16, steps * parts * 64 bytes].
struct RowTile {
  const uint8_t* rows;
  size_t stride;  // bytes; 0: one row, sixteen times
};

struct TileInputs {
  RowTile a[2];
  const uint8_t* b;     // first panel
  size_t panel_stride;  // bytes
  size_t steps;
  const uint8_t* prefetch;  // of the next panels
  size_t prefetch_lines;    // every step
};

// What a step of K adds to the sums: tiles 0 and 1 for the first rows, 2 and 3 for the second.
template <class Format, size_t kRowTiles, size_t kPanels>
struct TileStep {
  const uint8_t *a0, *a1, *b0, *b1;
  size_t stride0, stride1;

  HWY_INLINE void Run() const {
    LoadTile<4>(a0, stride0);
    LoadTile<6>(b0, kTileRowBytes);
    Format::template Dot<0, 4, 6>();
    if constexpr (kPanels == 2) {
      LoadTile<7>(b1, kTileRowBytes);
      Format::template Dot<1, 4, 7>();
    }
    if constexpr (kRowTiles == 2) {
      LoadTile<5>(a1, stride1);
      Format::template Dot<2, 5, 6>();
      if constexpr (kPanels == 2) Format::template Dot<3, 5, 7>();
    }
  }
};

// sums[kRowTiles * 16][kPanels * 16] = A B.
template <class Format, size_t kRowTiles, size_t kPanels>
void MultiplyTiles(const TileInputs& in, typename Format::Sum* sums) {
  const uint8_t* a0 = in.a[0].rows;
  const uint8_t* a1 = in.a[1].rows;
  const size_t stride0 = in.a[0].stride, stride1 = in.a[1].stride;
  const uint8_t* b0 = in.b;
  const uint8_t* b1 = in.b + in.panel_stride;
  const uint8_t* prefetch = in.prefetch;
  ZeroTile<0>();
  ZeroTile<1>();
  ZeroTile<2>();
  ZeroTile<3>();
  for (size_t s = 0; s < in.steps; ++s) {
    TileStep<Format, kRowTiles, kPanels>{a0, a1, b0, b1, stride0, stride1}.Run();
    for (size_t i = 0; i < in.prefetch_lines; ++i, prefetch += 64) POZOR_PREFETCH_L2(prefetch);
    a0 += Format::kParts * kTileRowBytes;
    a1 += Format::kParts * kTileRowBytes;
    b0 += Format::kParts * kTileBytes;
    b1 += Format::kParts * kTileBytes;
  }
  constexpr size_t kStride = kPanels * kTileRowBytes;
  constexpr size_t kTileSums = kTileRows * kPanels * kPanelColumns;
  StoreTileTo<0>(sums, kStride);
  if constexpr (kPanels == 2) StoreTileTo<1>(sums + kPanelColumns, kStride);
  if constexpr (kRowTiles == 2) {
    StoreTileTo<2>(sums + kTileSums, kStride);
    if constexpr (kPanels == 2) StoreTileTo<3>(sums + kTileSums + kPanelColumns, kStride);
  }
}

template <class Format>
void MultiplyTilesOf(const TileInputs& in, size_t row_tiles, size_t panels,
                     typename Format::Sum* sums) {
  if (row_tiles == 2) {
    panels == 2 ? MultiplyTiles<Format, 2, 2>(in, sums) : MultiplyTiles<Format, 2, 1>(in, sums);
  } else {
    panels == 2 ? MultiplyTiles<Format, 1, 2>(in, sums) : MultiplyTiles<Format, 1, 1>(in, sums);
  }
}

// Rows of A ready for tile loads: K group g is 64 bytes a step and part from a[g] on.
struct RowSource {
  const uint8_t* a[2];
  size_t stride;  // 0: one row, sixteen times
  size_t rows;
};

// Rows [row, row + rows) of C: those in place, in sixteens, and behind them those of a copy. The
// panels' steps [first[g], first[g] + steps[g]) belong to K group g.
struct TileRows {
  RowSource in_place, copied;
  size_t first[2], steps[2];
  size_t groups;
  size_t row, rows;

  RowTile Tile(size_t at, size_t g) const {
    if (at < in_place.rows) return {in_place.a[g] + at * in_place.stride, in_place.stride};
    return {copied.a[g] + (at - in_place.rows) * copied.stride, copied.stride};
  }
};

constexpr size_t kMaxRows = 2 * kTileRows;
constexpr size_t kMaxPanels = 2;
constexpr size_t kMaxColumns = kMaxPanels * kPanelColumns;
constexpr size_t kMaxSums = kMaxRows * kMaxColumns;

// Takes finished tiles of f32 sums to C.
class FinishHalves {
 public:
  explicit FinishHalves(const GemmArgs& args)
      : args_(args), store_(ChooseStoreTile(args.epilogue.activation)) {}

  void StartPanels(size_t /*panel*/, size_t /*panels*/) {}
  void Finish(const float* sums, FinishedTile tile) const {
    tile.values = sums;
    store_(args_.epilogue, tile);
  }

 private:
  const GemmArgs& args_;
  StoreTileFunction store_;
};

template <class Format, class Finish>
void MultiplyRows(const GemmArgs& args, const TileRows& in) {
  alignas(kAlignment) typename Format::Sum sums[2 * kMaxSums];
  const PackedMatrix& b = *args.b;
  const size_t panel_stride = PackedPanelBytes(b.layout, b.k);
  const uint8_t* panels = static_cast<const uint8_t*>(b.panels);
  Finish finish(args);
  const EvenPieces widths(args.panel_end - args.panel_begin, kMaxPanels);
  // The next panels come to L2 while the rows of these pass by, an equal part with each block.
  const size_t step_lines = kMaxPanels * kTileRows * Format::kParts;
  const size_t lines = DivCeil(step_lines, DivCeil(in.rows, kMaxRows));
  size_t panel = args.panel_begin;
  for (size_t w = 0; w < widths.pieces; ++w) {
    const size_t width = widths.Size(w);
    const bool more = w + 1 < widths.pieces;
    finish.StartPanels(panel, width);
    for (size_t row = 0; row < in.rows; row += kMaxRows) {
      const size_t height = HWY_MIN(kMaxRows, in.rows - row);
      const size_t row_tiles = DivCeil(height, kTileRows);
      for (size_t g = 0; g < in.groups; ++g) {
        const uint8_t* packed =
            panels + panel * panel_stride + in.first[g] * Format::kParts * kTileBytes;
        TileInputs tile = {};
        tile.a[0] = in.Tile(row, g);
        tile.a[1] = in.Tile(row_tiles == 2 ? row + kTileRows : row, g);
        tile.b = packed;
        tile.panel_stride = panel_stride;
        tile.steps = in.steps[g];
        tile.prefetch_lines = more ? lines : 0;
        tile.prefetch = packed + width * panel_stride + row / kMaxRows * tile.steps * lines * 64;
        MultiplyTilesOf<Format>(tile, row_tiles, width, sums + g * kMaxSums);
      }
      finish.Finish(sums, {nullptr, in.row + row, height, panel, width, b.n});
    }
    panel += width;
  }
}

// The stack's copy of rows, of values in kParts parts. Beyond some thousand inputs it does not hold
// sixteen of them: then rows go one by one, each as all rows of its tile.
template <size_t kParts>
class StagedRows {
 public:
  // Bytes of each group's part of a row.
  StagedRows(size_t bytes0, size_t bytes1) : bytes0_(bytes0) {
    stride_ = bytes0 + bytes1;
    if (stride_ % 4096 == 0) stride_ += kTileRowBytes;  // rows must not meet in one cache set
    POZOR_CHECK(stride_ <= sizeof(rows_));
    const size_t fit = sizeof(rows_) / stride_;
    most_ = fit < kTileRows ? 1 : fit < kMaxRows ? kTileRows : fit / kMaxRows * kMaxRows;
  }

  size_t most() const { return most_; }
  uint8_t* Row(size_t r, size_t group) { return rows_ + r * stride_ + (group == 0 ? 0 : bytes0_); }

  // Zeros behind `rows` rows, and where the rows are.
  RowSource Close(size_t rows) {
    const size_t padded = most_ == 1 ? rows : RoundUp(rows, kTileRows);
    std::memset(rows_ + rows * stride_, 0, (padded - rows) * stride_);
    return {{rows_, rows_ + bytes0_}, most_ == 1 ? 0 : stride_, rows};
  }

 private:
  alignas(kAlignment) uint8_t rows_[kParts * 200 * 1024];  // 32 rows of 3072 bf16, 192 of 384
  size_t bytes0_, stride_ = 0, most_ = 0;
};

// to[padded_k / 32][kParts][32] = x[0, k), then zeros. Each format specialises it.
template <class Format>
void StageRow(const float* x, size_t k, size_t padded_k, uint8_t* to);

template <class Format>
void MultiplyHalves(const GemmArgs& args) {
  const size_t k = args.b->k, padded_k = RoundUp(k, Format::kStep);
  const size_t steps = padded_k / Format::kStep;
  StagedRows<Format::kParts> staged(HWY_MAX(steps, size_t{1}) * Format::kParts * kTileRowBytes, 0);
  TileRows in = {};
  in.groups = 1;
  in.steps[0] = steps;
  const EvenPieces blocks(DivCeil(args.m, kTileRows), DivCeil(staged.most(), kTileRows));
  const size_t block_rows = staged.most() == 1 ? 1 : 0;
  for (size_t row = 0, block = 0; row < args.m; ++block) {
    const size_t rows = HWY_MIN(args.m - row, block_rows != 0 ? 1 : blocks.Size(block) * kTileRows);
    for (size_t r = 0; r < rows; ++r) {
      StageRow<Format>(args.a + (row + r) * args.a_stride, k, padded_k, staged.Row(r, 0));
    }
    in.copied = staged.Close(rows);
    in.row = row;
    in.rows = rows;
    MultiplyRows<Format, FinishHalves>(args, in);
    row += rows;
  }
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET == HWY_AVX3

#endif  // POZOR_KERNELS_GEMM_AMX_INL_H_
