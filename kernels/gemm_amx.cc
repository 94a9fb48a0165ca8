// AMX micro-kernels, int8 and bf16: two by two tiles of 16 rows and 16 columns. A row of an A tile
// and a row of a B tile are 64 bytes, and a B tile is 16 groups of a packed panel as they lie
// there, so both types share all but the instruction and what follows it.
//
// Rows of A are read where they are if they come in sixteens; others, and bf16 ones after rounding,
// from a copy on the stack with zeros around.
//
// bf16 sums follow the hardware's rules (even and odd inputs of a tile apart, denormals as zero):
// results do not depend on the row's place in a tile, but differ from VDPBF16PS and from f32 sums.
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

struct TileInputs {
  const uint8_t* a;  // [16 or 32, steps * 64 bytes] at a_stride
  size_t a_stride;
  const uint8_t* b;     // first panel
  size_t panel_stride;  // bytes
  size_t steps;
  const uint8_t* prefetch;  // the next panels, or null
};

// sums[kRowTiles * 16][kPanels * 16] = A B.
template <class Format, size_t kRowTiles, size_t kPanels>
void MultiplyTiles(const TileInputs& in, typename Format::Sum* sums) {
  const uint8_t* a0 = in.a;
  const uint8_t* a1 = in.a + kTileRows * in.a_stride;
  const uint8_t* b0 = in.b;
  const uint8_t* b1 = in.b + in.panel_stride;
  const uint8_t* prefetch = in.prefetch;
  ZeroTile<0>();
  ZeroTile<1>();
  ZeroTile<2>();
  ZeroTile<3>();
  for (size_t s = 0; s < in.steps; ++s) {
    LoadTile<4>(a0, in.a_stride);
    LoadTile<6>(b0, kTileRowBytes);
    Format::template Dot<0, 4, 6>();
    if constexpr (kPanels == 2) {
      LoadTile<7>(b1, kTileRowBytes);
      Format::template Dot<1, 4, 7>();
    }
    if constexpr (kRowTiles == 2) {
      LoadTile<5>(a1, in.a_stride);
      Format::template Dot<2, 5, 6>();
      if constexpr (kPanels == 2) Format::template Dot<3, 5, 7>();
    }
    if (prefetch != nullptr) {
      for (size_t i = 0; i < kPanels * kTileRows; ++i) {
        POZOR_PREFETCH_L2(prefetch + i * kTileRowBytes);
      }
      prefetch += kPanels * kTileBytes;
    }
    a0 += kTileRowBytes;
    a1 += kTileRowBytes;
    b0 += kTileBytes;
    b1 += kTileBytes;
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

// Rows of A ready for tile loads: for K group g, 64 bytes a step from a[g] on, and the panels'
// steps [first[g], first[g] + steps[g]) belong to them.
struct TileRows {
  const uint8_t* a[2];
  size_t stride;
  size_t first[2], steps[2];
  size_t groups;
  size_t row, rows;  // of C
  bool repeated;     // stride 0: one row, sixteen times
};

constexpr size_t kMaxRows = 2 * kTileRows;
constexpr size_t kMaxPanels = 2;
constexpr size_t kMaxSums = kMaxRows * kMaxPanels * kPanelColumns;

// Takes a finished tile to C.
struct Finish {
  const GemmArgs& args;
  StoreTileFunction store;

  void operator()(const float* sums, const FinishedTile& at) const {
    FinishedTile tile = at;
    tile.values = sums;
    store(args.epilogue, tile);
  }
  void operator()(const int32_t* sums, const FinishedTile& at) const {
    alignas(kAlignment) float values[kMaxSums];
    FinishedTile tile = at;
    tile.values = values;
    DequantizeTile(args, tile, {sums, kMaxSums, at.panels * kPanelColumns, 0}, values);
    GemmEpilogue epilogue = args.epilogue;
    epilogue.bias = nullptr;  // DequantizeTile added it
    store(epilogue, tile);
  }
};

template <class Format>
void MultiplyRows(const GemmArgs& args, const TileRows& in) {
  alignas(kAlignment) typename Format::Sum sums[2 * kMaxSums];
  const PackedMatrix& b = *args.b;
  const size_t panel_stride = PackedPanelBytes(b.layout, b.k);
  const uint8_t* panels = static_cast<const uint8_t*>(b.panels);
  const Finish finish = {args, ChooseStoreTile(args.epilogue.activation)};
  const EvenPieces widths(args.panel_end - args.panel_begin, kMaxPanels);
  size_t panel = args.panel_begin;
  for (size_t w = 0; w < widths.pieces; ++w) {
    const size_t width = widths.Size(w);
    const bool more = w + 1 < widths.pieces && widths.Size(w + 1) == width;
    for (size_t row = 0; row < in.rows; row += kMaxRows) {
      const size_t height = HWY_MIN(kMaxRows, in.rows - row);
      for (size_t g = 0; g < in.groups; ++g) {
        const uint8_t* packed = panels + panel * panel_stride + in.first[g] * kTileBytes;
        TileInputs tile = {};
        tile.a = in.a[g] + row * in.stride;
        tile.a_stride = in.stride;
        tile.b = packed;
        tile.panel_stride = panel_stride;
        tile.steps = in.steps[g];
        if (row == 0 && more) tile.prefetch = packed + width * panel_stride;
        MultiplyTilesOf<Format>(tile, in.repeated ? 1 : DivCeil(height, kTileRows), width,
                                sums + g * kMaxSums);
      }
      finish(sums, {nullptr, in.row + row, height, panel, width, b.n});
    }
    panel += width;
  }
}

// The stack's copy of rows. Beyond some thousand inputs it does not hold sixteen of them: then rows
// go one by one, each as all rows of its tile.
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
  void Close(size_t row, size_t rows, TileRows* out) {
    const size_t padded = most_ == 1 ? 1 : RoundUp(rows, kTileRows);
    std::memset(rows_ + rows * stride_, 0, (padded - rows) * stride_);
    out->a[0] = rows_;
    out->a[1] = rows_ + bytes0_;
    out->repeated = most_ == 1;
    out->stride = out->repeated ? 0 : stride_;
    out->row = row;
    out->rows = rows;
  }

 private:
  alignas(kAlignment) uint8_t rows_[200 * 1024];  // 32 rows of 3072 bf16, 192 of 384
  size_t bytes0_, stride_ = 0, most_ = 0;
};

void MultiplyHalves(const GemmArgs& args) {
  const size_t k = args.b->k, padded_k = RoundUp(k, Halves::kStep);
  StagedRows staged(padded_k * sizeof(Bf16) + (k == 0 ? kTileRowBytes : 0), 0);
  TileRows in = {};
  in.groups = 1;
  in.steps[0] = padded_k / Halves::kStep;
  const EvenPieces blocks(DivCeil(args.m, kTileRows), DivCeil(staged.most(), kTileRows));
  const size_t block_rows = staged.most() == 1 ? 1 : 0;
  for (size_t row = 0, block = 0; row < args.m; ++block) {
    const size_t rows = HWY_MIN(args.m - row, block_rows != 0 ? 1 : blocks.Size(block) * kTileRows);
    for (size_t r = 0; r < rows; ++r) {
      RoundRowToBf16(args.a + (row + r) * args.a_stride, k, padded_k,
                     reinterpret_cast<Bf16*>(staged.Row(r, 0)));
    }
    staged.Close(row, rows, &in);
    MultiplyRows<Halves>(args, in);
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

void MultiplyBytes(const GemmArgs& args) {
  const ByteGroups groups(*args.b);
  TileRows in = {};
  in.groups = args.b->groups();
  for (size_t g = 0; g < in.groups; ++g) {
    in.first[g] = groups.First(g);
    in.steps[g] = groups.Steps(g);
  }
  // Sixteens of rows where they are.
  const QuantizedRows& q = args.quantized;
  if (groups.aligned && args.m >= kTileRows) {
    in.a[0] = q.values;
    in.a[1] = q.values + groups.begin[1];
    in.stride = q.stride;
    in.rows = args.m / kTileRows * kTileRows;
    MultiplyRows<Bytes>(args, in);
  }
  StagedRows staged(HWY_MAX(in.steps[0], size_t{1}) * kTileRowBytes, in.steps[1] * kTileRowBytes);
  for (size_t row = in.rows; row < args.m;) {
    const size_t rows = HWY_MIN(staged.most(), args.m - row);
    for (size_t r = 0; r < rows; ++r) {
      const uint8_t* from = q.values + (row + r) * q.stride;
      for (size_t g = 0; g < in.groups; ++g) {
        uint8_t* to = staged.Row(r, g);
        const size_t before = groups.begin[g] - in.first[g] * Bytes::kStep;
        const size_t count = groups.end[g] - groups.begin[g];
        std::memset(to, 0, in.steps[g] * kTileRowBytes);
        std::memcpy(to + before, from + groups.begin[g], count);
      }
    }
    staged.Close(row, rows, &in);
    MultiplyRows<Bytes>(args, in);
    row += rows;
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
  MultiplyHalves(args);
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET == HWY_AVX3
