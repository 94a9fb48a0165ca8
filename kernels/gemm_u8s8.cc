// int8 micro-kernels of 16-bit multiply-add pairs, for CPUs without a byte dot product.
//
// Bytes of a K group of four are taken as 16-bit pairs (0, 2) and (1, 3): weights by two shifts of
// the packed vector, activations beforehand, once a block of rows, into a buffer on the stack. So
// rows are the outer loop here, and all panels go by for each block of them.
#include <cstring>
#include <utility>

#include "kernels/check.h"
#include "kernels/even_pieces.h"
#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_u8s8.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/gemm_dequantize-inl.h"
#include "kernels/gemm_epilogue-inl.h"
#include "kernels/simd-inl.h"

#if HWY_ARCH_X86 || HWY_TARGET == HWY_STATIC_TARGET

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

using D16 = hn::Repartition<int16_t, DF>;
using VI = hn::Vec<DI32>;

// Pairs on the stack: [rows, k / 4, 2].
constexpr size_t kMaxPairs = 16384;

// The K loop of kRows rows and kVectors vectors of columns over steps [begin, end) of four inputs.
// pairs: [kRows] at row_stride; panel: at the tile's first column.
template <size_t kRows, size_t kVectors>
void MultiplyTile(const int32_t* HWY_RESTRICT pairs, size_t row_stride,
                  const int8_t* HWY_RESTRICT panel, size_t steps, int32_t* HWY_RESTRICT sums,
                  size_t sums_stride) {
  const DI32 di;
  const D16 d16;
  const hn::Repartition<int8_t, DF> d8;
  VI acc[kRows][kVectors];
  HWY_UNROLL(16)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) acc[i][v] = hn::Zero(di);
  }
  for (; steps != 0; --steps, panel += 4 * kPanelColumns, pairs += 2) {
    hn::Vec<D16> even[kVectors], odd[kVectors];
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      const auto bytes = hn::BitCast(d16, hn::Load(d8, panel + 4 * kLanes * v));
      even[v] = hn::ShiftRight<8>(hn::ShiftLeft<8>(bytes));
      odd[v] = hn::ShiftRight<8>(bytes);
    }
    HWY_UNROLL(16)
    for (size_t i = 0; i < kRows; ++i) {
      const auto pair0 = hn::BitCast(d16, hn::Set(di, pairs[i * row_stride]));
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        acc[i][v] = hn::Add(acc[i][v], hn::WidenMulPairwiseAdd(di, pair0, even[v]));
      }
      const auto pair1 = hn::BitCast(d16, hn::Set(di, pairs[i * row_stride + 1]));
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        acc[i][v] = hn::Add(acc[i][v], hn::WidenMulPairwiseAdd(di, pair1, odd[v]));
      }
    }
  }
  HWY_UNROLL(16)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) POZOR_KEEP_IN_REGISTER(acc[i][v]);
  }
  HWY_UNROLL(16)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      hn::Store(acc[i][v], di, sums + i * sums_stride + v * kLanes);
    }
  }
}

using MultiplyTileFunction = void (*)(const int32_t*, size_t, const int8_t*, size_t, int32_t*,
                                      size_t);

template <size_t kMaxRows, size_t kVectors>
struct TileTable {
  MultiplyTileFunction tile[kMaxRows];

  template <size_t... kRow>
  constexpr void Fill(std::index_sequence<kRow...>) {
    ((tile[kRow] = &MultiplyTile<kRow + 1, kVectors>), ...);
  }
  constexpr TileTable() : tile() { Fill(std::make_index_sequence<kMaxRows>()); }
};

// pairs[rows, k / 4, 2] of quantised rows.
void WidenRows(const QuantizedRows& rows, size_t count, size_t k, int32_t* HWY_RESTRICT pairs) {
  for (size_t r = 0; r < count; ++r) {
    const uint8_t* HWY_RESTRICT q = rows.values + r * rows.stride;
    for (size_t i = 0; i < k; i += 4) {
      uint32_t four;
      std::memcpy(&four, q + i, sizeof(four));
      *pairs++ = static_cast<int32_t>(four & 0x00FF00FFu);
      *pairs++ = static_cast<int32_t>((four >> 8) & 0x00FF00FFu);
    }
  }
}

template <size_t kMaxRows, size_t kVectors>
void MultiplyPairs(const GemmArgs& args) {
  static constexpr TileTable<kMaxRows, kVectors> kTiles;
  constexpr size_t kTileSize = kMaxRows * kPanelColumns;
  alignas(kAlignment) int32_t pairs[kMaxPairs];
  alignas(kAlignment) int32_t sums[2 * kTileSize];
  alignas(kAlignment) float values[kTileSize];
  const PackedMatrix& b = *args.b;
  const size_t k = RoundUp(b.k, 4), panel_bytes = PackedPanelBytes(b.layout, b.k);
  const size_t rows_that_fit = k == 0 ? kMaxRows : HWY_MIN(kMaxRows, kMaxPairs * 2 / k);
  POZOR_CHECK(rows_that_fit > 0);
  GemmEpilogue epilogue = args.epilogue;
  epilogue.bias = nullptr;  // DequantizeTile adds it
  const StoreTileFunction store = ChooseStoreTile(epilogue.activation);
  const EvenPieces blocks(args.m, rows_that_fit);
  size_t row = 0;
  for (size_t block = 0; block < blocks.pieces; ++block) {
    const size_t rows = blocks.Size(block);
    WidenRows(args.quantized.From(row), rows, k, pairs);
    for (size_t panel = args.panel_begin; panel < args.panel_end; ++panel) {
      const int8_t* packed = static_cast<const int8_t*>(b.panels) + panel * panel_bytes;
      for (size_t g = 0; g < b.groups(); ++g) {
        const size_t begin = g == 0 ? 0 : b.split, end = g + 1 < b.groups() ? b.split : k;
        for (size_t j = 0; j < kPanelColumns; j += kVectors * kLanes) {
          kTiles.tile[rows - 1](pairs + begin / 2, k / 2, packed + begin * kPanelColumns + 4 * j,
                                (end - begin) / 4, sums + g * kTileSize + j, kPanelColumns);
        }
      }
      const FinishedTile tile = {values, row, rows, panel, 1, b.n};
      DequantizeTile(args, tile, {sums, kTileSize, kPanelColumns, 0}, values);
      store(epilogue, tile);
    }
    row += rows;
  }
}

}  // namespace

void GemmU8S8Rows6Columns16(const GemmArgs& args) { MultiplyPairs<6, 1>(args); }

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_ARCH_X86 || HWY_TARGET == HWY_STATIC_TARGET
