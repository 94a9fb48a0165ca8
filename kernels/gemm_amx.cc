// AMX micro-kernels, int8, bf16 and split bf16: two by two tiles of 16 rows and 16 columns. A row
// of an A tile and a row of a B tile are 64 bytes, and a B tile is 16 groups of a packed panel as
// they lie there, so all types share all but the instruction and what follows it.
//
// Rows of A are read where they are if they come in sixteens; others, and bf16 ones after rounding
// or splitting, from a copy on the stack with zeros around.
//
// Split bf16 multiplies high parts with both parts of the other side and adds all three products to
// one sum; low by low, at most 2^-16 of a term, is left out.
//
// bf16 sums follow the hardware's rules (even and odd inputs of a tile apart, denormals as zero):
// results do not depend on the row's place in a tile, but differ from VDPBF16PS and from f32 sums.
#include <cstddef>
#include <cstring>

#include "kernels/check.h"
#include "kernels/even_pieces.h"
#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_amx.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/amx-inl.h"
#include "kernels/bf16-inl.h"
#include "kernels/gemm_dequantize-inl.h"
#include "kernels/gemm_epilogue-inl.h"
#include "kernels/simd-inl.h"

#if HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

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

// High by low, high by high, low by high: neighbours share two of their tiles, and a sum waits for
// itself as long as four tiles allow. The order is the same for any number of tiles.
template <size_t kRowTiles, size_t kPanels>
struct TileStep<SplitHalves, kRowTiles, kPanels> {
  const uint8_t *a0, *a1, *b0, *b1;
  size_t stride0, stride1;

  HWY_INLINE void Run() const {
    LoadTile<4>(a0, stride0);
    if constexpr (kRowTiles == 2) LoadTile<5>(a1, stride1);
    LoadPanels(kTileBytes);
    MultiplyAll();
    LoadPanels(0);
    MultiplyAll();
    LoadTile<4>(a0 + kTileRowBytes, stride0);
    if constexpr (kRowTiles == 2) LoadTile<5>(a1 + kTileRowBytes, stride1);
    MultiplyAll();
  }

 private:
  HWY_INLINE void LoadPanels(size_t offset) const {
    LoadTile<6>(b0 + offset, kTileRowBytes);
    if constexpr (kPanels == 2) LoadTile<7>(b1 + offset, kTileRowBytes);
  }
  HWY_INLINE void MultiplyAll() const {
    SplitHalves::Dot<0, 4, 6>();
    if constexpr (kPanels == 2) SplitHalves::Dot<1, 4, 7>();
    if constexpr (kRowTiles == 2) {
      SplitHalves::Dot<2, 5, 6>();
      if constexpr (kPanels == 2) SplitHalves::Dot<3, 5, 7>();
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

// Where dequantised rows go: to C, or to the stack for an epilogue of its own.
struct RowsOutput {
  float* panels[kMaxPanels];  // first row of each panel
  size_t stride;
  const float* scale;     // or null
  const float* residual;  // of the first panel, or null
  size_t residual_stride;
};

using D16 = hn::Repartition<int16_t, DF>;

// The ZeroPair of each of `count` rows, at the odd places of pairs[2 * kMaxRows * groups].
HWY_INLINE void ZeroPairs(const RowScale* rows, size_t count, int32_t* pairs) {
  static_assert(sizeof(RowScale) == 8 && offsetof(RowScale, zero) == 4);
  const DI32 di;
  const int32_t* words = reinterpret_cast<const int32_t*>(rows);
  for (size_t i = 0; i < 2 * count; i += kLanes) {
    const auto zeros = hn::LoadN(di, words + i, HWY_MIN(kLanes, 2 * count - i));
    hn::Store(hn::Or(zeros, hn::ShiftLeft<23>(zeros)), di,
              pairs + i);  // z, and 128 z in the high half
  }
}

// Takes finished tiles of integer sums to C. Beside tiles, which take an eighth of the time that
// vectors take for a product, these loops decide: what belongs to columns stays in registers, and
// an epilogue without activation goes straight to C.
class FinishBytes {
 public:
  explicit FinishBytes(const GemmArgs& args)
      : args_(args), epilogue_(args.epilogue), store_(ChooseStoreTile(args.epilogue.activation)) {
    POZOR_CHECK(args.b->k <= kMaxPairedInputs);
    epilogue_.bias = nullptr;  // Dequantize adds it
  }

  void StartPanels(size_t panel, size_t panels) {
    const PackedMatrix& b = *args_.b;
    const size_t column = panel * kPanelColumns, padded_n = b.panel_count() * kPanelColumns;
    for (size_t g = 0; g < b.groups(); ++g) {
      SumPairs(b.column_sums + g * padded_n + column, panels * kPanelColumns, corrections_[g]);
      column_scales_[g] = b.column_scales + g * padded_n + column;
    }
    bias_ = args_.epilogue.bias == nullptr ? kNoBias : args_.epilogue.bias + column;
    straight_ = GoesStraightToC(epilogue_, panel, panels, b.n);
  }

  void Finish(const int32_t* sums, FinishedTile tile) const {
    alignas(kAlignment) float values[kMaxSums];
    const size_t groups = args_.b->groups();
    RowsOutput out = {};
    if (straight_) {
      PointAtC(tile, &out);
    } else {
      for (size_t p = 0; p < tile.panels; ++p) out.panels[p] = values + p * kPanelColumns;
      out.stride = tile.panels * kPanelColumns;
    }
    const RowScale* rows = args_.quantized.scales + tile.row * groups;
    if (groups == 1) {
      tile.panels == 2 ? Dequantize<1, 2>(sums, rows, tile.rows, out)
                       : Dequantize<1, 1>(sums, rows, tile.rows, out);
    } else {
      tile.panels == 2 ? Dequantize<2, 2>(sums, rows, tile.rows, out)
                       : Dequantize<2, 1>(sums, rows, tile.rows, out);
    }
    if (straight_) return;
    tile.values = values;
    store_(epilogue_, tile);
  }

 private:
  void PointAtC(const FinishedTile& tile, RowsOutput* out) const {
    const size_t column = tile.panel * kPanelColumns;
    for (size_t p = 0; p < tile.panels; ++p) {
      out->panels[p] = OutputPanel(epilogue_, tile.row, column + p * kPanelColumns);
    }
    out->stride = epilogue_.c_stride;
    if (column < epilogue_.scaled_columns) out->scale = &epilogue_.scale;
    if (epilogue_.residual == nullptr) return;
    out->residual = epilogue_.residual + tile.row * epilogue_.residual_stride + column;
    out->residual_stride = epilogue_.residual_stride;
  }

  // The formulas of gemm.h. sums: [kGroups][kMaxRows][kPanels * 16]; rows: [count, kGroups].
  template <size_t kGroups, size_t kPanels>
  void Dequantize(const int32_t* HWY_RESTRICT sums, const RowScale* rows, size_t count,
                  const RowsOutput& out) const {
    static_assert(kPanelVectors == 1);
    const DF df;
    const DI32 di;
    const D16 d16;
    using V16 = hn::Vec<D16>;
    alignas(kAlignment) int32_t pairs[2 * 2 * kMaxRows];
    ZeroPairs(rows, count * kGroups, pairs);
    V16 corrections[kGroups][kPanels];
    VF column_scales[kGroups][kPanels], bias[kPanels];
    HWY_UNROLL(2)
    for (size_t p = 0; p < kPanels; ++p) {
      bias[p] = hn::Load(df, bias_ + p * kPanelColumns);
      HWY_UNROLL(2)
      for (size_t g = 0; g < kGroups; ++g) {
        corrections[g][p] = hn::BitCast(d16, hn::Load(di, corrections_[g] + p * kPanelColumns));
        column_scales[g][p] = hn::Load(df, column_scales_[g] + p * kPanelColumns);
      }
    }
    float* to[kMaxPanels] = {out.panels[0], out.panels[1]};
    const float* residual = out.residual;
    for (size_t r = 0; r < count; ++r, sums += kPanels * kPanelColumns) {
      VF x[kPanels];
      HWY_UNROLL(2)
      for (size_t p = 0; p < kPanels; ++p) x[p] = bias[p];
      HWY_UNROLL(2)
      for (size_t g = 0; g < kGroups; ++g) {
        const size_t at = r * kGroups + g;
        const V16 zero = hn::BitCast(d16, hn::Set(di, pairs[2 * at + 1]));
        const VF scale = hn::Set(df, rows[at].scale);
        HWY_UNROLL(2)
        for (size_t p = 0; p < kPanels; ++p) {
          const auto correction = hn::WidenMulPairwiseAdd(di, zero, corrections[g][p]);
          const auto sum = hn::Load(di, sums + g * kMaxSums + p * kPanelColumns);
          const VF scaled =
              hn::Mul(hn::ConvertTo(df, hn::Add(sum, correction)), column_scales[g][p]);
          const bool last = g + 1 == kGroups;
          x[p] = last ? hn::MulAdd(scaled, scale, x[p]) : hn::Add(hn::Mul(scaled, scale), x[p]);
        }
      }
      if (out.scale != nullptr) {
        HWY_UNROLL(2)
        for (size_t p = 0; p < kPanels; ++p) x[p] = hn::Mul(x[p], hn::Set(df, *out.scale));
      }
      if (residual != nullptr) {
        HWY_UNROLL(2)
        for (size_t p = 0; p < kPanels; ++p) {
          x[p] = hn::Add(x[p], hn::LoadU(df, residual + p * kPanelColumns));
        }
        residual += out.residual_stride;
      }
      HWY_UNROLL(2)
      for (size_t p = 0; p < kPanels; ++p) {
        hn::StoreU(x[p], df, to[p]);
        to[p] += out.stride;
      }
    }
  }

  alignas(kAlignment) static constexpr float kNoBias[kMaxColumns] = {};
  alignas(kAlignment) int32_t corrections_[2][kMaxColumns];
  const GemmArgs& args_;
  GemmEpilogue epilogue_;
  StoreTileFunction store_;
  const float* column_scales_[2];
  const float* bias_;
  bool straight_;
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

// to[padded_k / 32][kParts][32] = x[0, k), then zeros.
template <class Format>
HWY_INLINE void StageRow(const float* x, size_t k, size_t padded_k, uint8_t* to) {
  if constexpr (Format::kParts == 1) {
    RoundRowToBf16(x, k, padded_k, reinterpret_cast<Bf16*>(to));
  } else {
    SplitRowToBf16(x, k, padded_k, reinterpret_cast<Bf16*>(to));
  }
}

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

// The K groups of an int8 product in steps; a step that both share is done for each, with zeros in
// place of the other's inputs.
struct ByteGroups {
  size_t begin[2], end[2];  // inputs
  bool aligned;             // no step is shared

  explicit ByteGroups(const PackedMatrix& b) {
    const size_t k = RoundUp(b.k, Bytes::kStep);
    begin[0] = 0;
    end[0] = b.split == 0 ? k : b.split;
    begin[1] = end[0];
    end[1] = k;
    aligned = end[0] % Bytes::kStep == 0;
  }
  size_t First(size_t g) const { return begin[g] / Bytes::kStep; }
  size_t Steps(size_t g) const { return DivCeil(end[g], Bytes::kStep) - First(g); }
};

// Row r of the copy, with zeros around the inputs of each group.
void CopyRow(const uint8_t* from, const ByteGroups& groups, size_t r, StagedRows<1>* staged) {
  for (size_t g = 0; g < 2; ++g) {
    uint8_t* to = staged->Row(r, g);
    const size_t before = groups.begin[g] - groups.First(g) * Bytes::kStep;
    std::memset(to, 0, groups.Steps(g) * kTileRowBytes);
    std::memcpy(to + before, from + groups.begin[g], groups.end[g] - groups.begin[g]);
  }
}

void MultiplyBytes(const GemmArgs& args) {
  const ByteGroups groups(*args.b);
  TileRows in = {};
  in.groups = args.b->groups();
  for (size_t g = 0; g < in.groups; ++g) {
    in.first[g] = groups.First(g);
    in.steps[g] = groups.Steps(g);
  }
  const QuantizedRows& q = args.quantized;
  in.in_place = {{q.values, q.values + groups.begin[1]}, q.stride, 0};
  if (groups.aligned) in.in_place.rows = args.m / kTileRows * kTileRows;
  StagedRows<1> staged(HWY_MAX(in.steps[0], size_t{1}) * kTileRowBytes,
                       in.steps[1] * kTileRowBytes);
  for (size_t row = 0; row < args.m; row += in.rows, in.in_place.rows = 0) {
    const size_t first = row + in.in_place.rows;
    const size_t copied = HWY_MIN(staged.most(), args.m - first);
    for (size_t r = 0; r < copied; ++r)
      CopyRow(q.values + (first + r) * q.stride, groups, r, &staged);
    in.copied = staged.Close(copied);
    in.row = row;
    in.rows = in.in_place.rows + copied;
    MultiplyRows<Bytes, FinishBytes>(args, in);
  }
}

}  // namespace

void GemmAmxBytes(const GemmArgs& args) {
  if (args.m == 0) return;
  ConfigureTiles();
  MultiplyBytes(args);
}

void GemmAmxBf16(const GemmArgs& args) {
  if (args.m == 0) return;
  ConfigureTiles();
  MultiplyHalves<Halves>(args);
}

void GemmAmxSplitBf16(const GemmArgs& args) {
  if (args.m == 0) return;
  ConfigureTiles();
  MultiplyHalves<SplitHalves>(args);
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET == HWY_AVX3
