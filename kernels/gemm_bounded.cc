// int8 micro-kernels of byte multiply-adds with 16-bit sums, for x86 CPUs without a byte dot
// product: exact, because the weights are bounded so that no sum of four products saturates, and
// what was taken off them is multiplied apart (bounded.h).
//
// Five instructions for 64 products, three of which multiply, where 16-bit pairs take eight and
// four: 1.4 times as fast on Zen 3, rests included.
#include <utility>

#include "kernels/bounded.h"
#include "kernels/even_pieces.h"
#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_bounded.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/gemm_dequantize-inl.h"
#include "kernels/gemm_epilogue-inl.h"
#include "kernels/simd-inl.h"

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {

// The rows of gemm_pairs.cc, for weights that are not bounded.
#if HWY_TARGET == HWY_AVX3
void GemmPairsRows16(const GemmArgs& args);
#else
void GemmPairsRows6(const GemmArgs& args);
#endif

namespace {

using D16 = hn::Repartition<int16_t, DF>;
using D8 = hn::Repartition<int8_t, DF>;
using DU8 = hn::Repartition<uint8_t, DF>;
using VI = hn::Vec<DI32>;

constexpr size_t kTileRows = HWY_TARGET == HWY_AVX3 ? 6 : 3;
constexpr size_t kInputsOfStep = 8;
constexpr size_t kUnroll = 2;  // groups are multiples of 16 inputs

// Tiles one below another.
struct ByteTiles {
  const uint8_t* rows;  // at the group's first input
  size_t row_stride;
  const int8_t* panel;  // the same
  size_t steps;         // of eight inputs, a multiple of kUnroll
  size_t count;
  const int8_t* prefetch;  // comes to L2 meanwhile: `prefetch_bytes` a tile
  size_t prefetch_bytes;
};

// sums[kRows, 16] += the products of the first tile.
template <size_t kRows>
HWY_INLINE void MultiplyTileBytes(const ByteTiles& tile, int32_t* HWY_RESTRICT sums) {
  const DI32 di;
  const D16 d16;
  const D8 d8;
  const DU8 du8;
  constexpr size_t kHalfStep = 4 * kPanelColumns;  // bytes of four inputs
  VI acc[kRows][kPanelVectors];
  const uint8_t* rows[kRows];
  HWY_UNROLL(6)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(2)
    for (size_t v = 0; v < kPanelVectors; ++v) {
      acc[i][v] = hn::Load(di, sums + i * kPanelColumns + v * kLanes);
    }
    rows[i] = tile.rows + i * tile.row_stride;
    POZOR_HIDE_VALUE(rows[i]);
  }
  auto ones = hn::Set(d16, 1);
  POZOR_KEEP_IN_REGISTER(ones);
  const int8_t* HWY_RESTRICT panel = tile.panel;
  size_t index = 0;
  // Four inputs of row i, in every lane.
  const auto inputs = [&](size_t i, size_t at) HWY_ATTR __attribute__((always_inline)) {
    int32_t four;
    hwy::CopyBytes<sizeof(four)>(rows[i] + index + at, &four);
    return hn::BitCast(du8, hn::Set(di, four));
  };
  const auto step = [&](size_t ahead) HWY_ATTR __attribute__((always_inline)) {
    hn::Vec<D8> first[kPanelVectors], second[kPanelVectors];
    const int8_t* at = panel + ahead * 2 * kHalfStep;
    HWY_UNROLL(2)
    for (size_t v = 0; v < kPanelVectors; ++v) {
      first[v] = hn::Load(d8, at + 4 * kLanes * v);
      second[v] = hn::Load(d8, at + kHalfStep + 4 * kLanes * v);
    }
    HWY_UNROLL(6)
    for (size_t i = 0; i < kRows; ++i) {
      const auto a = inputs(i, ahead * kInputsOfStep), b = inputs(i, ahead * kInputsOfStep + 4);
      // All products before the sums: a sum right behind its product takes a multiplying pipe more
      // often.
      hn::Vec<D16> fours[kPanelVectors], others[kPanelVectors];
      VI sums_of_fours[kPanelVectors];
      HWY_UNROLL(2)
      for (size_t v = 0; v < kPanelVectors; ++v) {
        fours[v] = hn::SatWidenMulPairwiseAdd(d16, a, first[v]);
        POZOR_KEEP_IN_REGISTER(fours[v]);
      }
      HWY_UNROLL(2)
      for (size_t v = 0; v < kPanelVectors; ++v) {
        others[v] = hn::SatWidenMulPairwiseAdd(d16, b, second[v]);
        POZOR_KEEP_IN_REGISTER(others[v]);
      }
      HWY_UNROLL(2)
      for (size_t v = 0; v < kPanelVectors; ++v) {
        fours[v] = hn::Add(fours[v], others[v]);
        POZOR_KEEP_IN_REGISTER(fours[v]);
      }
      HWY_UNROLL(2)
      for (size_t v = 0; v < kPanelVectors; ++v) {
        sums_of_fours[v] = hn::WidenMulPairwiseAdd(di, fours[v], ones);
        POZOR_KEEP_IN_REGISTER(sums_of_fours[v]);
      }
      HWY_UNROLL(2)
      for (size_t v = 0; v < kPanelVectors; ++v) {
        acc[i][v] = hn::Add(acc[i][v], sums_of_fours[v]);
        HoldOperand(acc[i][v]);
      }
    }
  };
  for (size_t left = tile.steps; left != 0; left -= kUnroll) {
    HWY_UNROLL(2)
    for (size_t s = 0; s < kUnroll; ++s) step(s);
    panel += kUnroll * 2 * kHalfStep;
    index += kUnroll * kInputsOfStep;
    POZOR_HIDE_VALUE(index);
  }
  HWY_UNROLL(6)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(2)
    for (size_t v = 0; v < kPanelVectors; ++v) POZOR_KEEP_IN_REGISTER(acc[i][v]);
  }
  HWY_UNROLL(6)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(2)
    for (size_t v = 0; v < kPanelVectors; ++v) {
      hn::Store(acc[i][v], di, sums + i * kPanelColumns + v * kLanes);
    }
  }
}

// sums[count * kRows, 16] += the products of tiles of kRows rows.
template <size_t kRows>
void MultiplyTiles(ByteTiles tiles, int32_t* HWY_RESTRICT sums) {
  for (; tiles.count != 0; --tiles.count) {
    for (size_t at = 0; at < tiles.prefetch_bytes; at += kAlignment) {
      POZOR_PREFETCH_L2(tiles.prefetch + at);
    }
    MultiplyTileBytes<kRows>(tiles, sums);
    tiles.rows += kRows * tiles.row_stride;
    tiles.prefetch += tiles.prefetch_bytes;
    sums += kRows * kPanelColumns;
  }
}

using MultiplyTilesFunction = void (*)(ByteTiles, int32_t*);

struct TilesTable {
  MultiplyTilesFunction of_rows[kTileRows + 1];

  template <size_t... kRow>
  constexpr void Fill(std::index_sequence<kRow...>) {
    ((of_rows[kRow + 1] = &MultiplyTiles<kRow + 1>), ...);
  }
  constexpr TilesTable() : of_rows() { Fill(std::make_index_sequence<kTileRows>()); }
};

// Rests are few and lie anywhere, so they are multiplied for sixteen rows at a time: rows of a
// block stand beside each other for each input.
constexpr size_t kGroupRows = 16;
constexpr size_t kBlockRows = 32;
constexpr size_t kColumnsBytes = 131072;  // of a block's inputs
using D16x16 = hn::FixedTag<int16_t, kGroupRows>;
using D32x8 = hn::FixedTag<int32_t, kGroupRows / 2>;

// Sixteen rows of 16 inputs as columns: to[input * to_stride + row], rows 4 to 7 and 8 to 11
// exchanged, so that interleaving the columns of two inputs leaves rows in order.
void TransposeRows(const uint8_t* const* rows, size_t to_stride, int16_t* HWY_RESTRICT to) {
  constexpr size_t kOrder[kGroupRows] = {0, 1, 2, 3, 8, 9, 10, 11, 4, 5, 6, 7, 12, 13, 14, 15};
  const hn::FixedTag<uint8_t, 16> d8;
  using V8 = hn::Vec<decltype(d8)>;
  V8 x[16], y[16];
  HWY_UNROLL(16)
  for (size_t i = 0; i < 16; ++i) x[i] = hn::LoadU(d8, rows[kOrder[i]]);
  // Each pass interleaves vector i with vector i + 8; four of them transpose.
  const auto pass = [&](const V8* from, V8* made) HWY_ATTR __attribute__((always_inline)) {
    HWY_UNROLL(8)
    for (size_t i = 0; i < 8; ++i) {
      made[2 * i] = hn::InterleaveLower(d8, from[i], from[i + 8]);
      made[2 * i + 1] = hn::InterleaveUpper(d8, from[i], from[i + 8]);
    }
  };
  pass(x, y), pass(y, x), pass(x, y), pass(y, x);
  const D16x16 wide;
  HWY_UNROLL(16)
  for (size_t k = 0; k < 16; ++k) hn::Store(hn::PromoteTo(wide, x[k]), wide, to + k * to_stride);
}

// columns: [inputs, padded rows]; rows beyond `count` are 0.
void MakeColumns(const QuantizedRows& rows, size_t count, size_t inputs, size_t padded_rows,
                 int16_t* columns) {
  alignas(16) static constexpr uint8_t kZeros[16] = {};
  for (size_t group = 0; group < padded_rows; group += kGroupRows) {
    for (size_t k = 0; k < inputs; k += 16) {
      const uint8_t* at[kGroupRows];
      for (size_t i = 0; i < kGroupRows; ++i) {
        at[i] = group + i < count ? rows.values + (group + i) * rows.stride + k : kZeros;
      }
      TransposeRows(at, padded_rows, columns + k * padded_rows + group);
    }
  }
}

// running[(c + 1) * kGroups * 16 + row]: the sum of a row's products with the rests of columns 0 to
// c. Sums that run on over all columns need no branch where a column ends, which none could
// foresee.
template <size_t kGroups>
void MultiplyRests(const RestFour* begin, const RestFour* end, const int16_t* columns,
                   int32_t* HWY_RESTRICT running) {
  const D16x16 d16;
  const D32x8 d32;
  constexpr size_t kRows = kGroups * kGroupRows;
  hn::Vec<D32x8> low[kGroups], high[kGroups];
  HWY_UNROLL(2)
  for (size_t i = 0; i < kGroups; ++i) {
    low[i] = high[i] = hn::Zero(d32);
    hn::Store(low[i], d32, running + i * kGroupRows);
    hn::Store(high[i], d32, running + i * kGroupRows + kGroupRows / 2);
  }
  const auto factors = [&](const int16_t* values) HWY_ATTR __attribute__((always_inline)) {
    int32_t pair;
    hwy::CopyBytes<sizeof(pair)>(values, &pair);
    return hn::BitCast(d16, hn::Set(d32, pair));
  };
  for (const RestFour* four = begin; four != end; ++four) {
    const int16_t* inputs[4] = {columns + four->first_input() * kRows,
                                columns + four->place[1] * kRows, columns + four->place[2] * kRows,
                                columns + four->place[3] * kRows};
    const auto first = factors(four->value), second = factors(four->value + 2);
    int32_t* to = running + (four->column() + 1) * kRows;
    HWY_UNROLL(2)
    for (size_t i = 0; i < kGroups; ++i) {
      const auto a = hn::Load(d16, inputs[0] + i * kGroupRows);
      const auto b = hn::Load(d16, inputs[1] + i * kGroupRows);
      const auto c = hn::Load(d16, inputs[2] + i * kGroupRows);
      const auto d = hn::Load(d16, inputs[3] + i * kGroupRows);
      const auto low_ab = hn::WidenMulPairwiseAdd(d32, hn::InterleaveLower(d16, a, b), first);
      const auto high_ab = hn::WidenMulPairwiseAdd(d32, hn::InterleaveUpper(d16, a, b), first);
      const auto low_cd = hn::WidenMulPairwiseAdd(d32, hn::InterleaveLower(d16, c, d), second);
      const auto high_cd = hn::WidenMulPairwiseAdd(d32, hn::InterleaveUpper(d16, c, d), second);
      low[i] = hn::Add(low[i], hn::Add(low_ab, low_cd));
      high[i] = hn::Add(high[i], hn::Add(high_ab, high_cd));
      hn::Store(low[i], d32, to + i * kGroupRows);
      hn::Store(high[i], d32, to + i * kGroupRows + kGroupRows / 2);
    }
  }
}

using MultiplyRestsFunction = void (*)(const RestFour*, const RestFour*, const int16_t*, int32_t*);
constexpr MultiplyRestsFunction kMultiplyRests[kBlockRows / kGroupRows] = {&MultiplyRests<1>,
                                                                           &MultiplyRests<2>};

// Eight rows of four columns, to[row * 16 + column], from sums that run on over columns:
// from[column * stride + row] is what the columns before it amount to.
void TransposeSums(const int32_t* HWY_RESTRICT from, size_t stride, int32_t* HWY_RESTRICT to) {
  const D32x8 d32;
  const hn::Repartition<int64_t, D32x8> d64;
  hn::Vec<D32x8> until[5], of[4];
  HWY_UNROLL(5)
  for (size_t c = 0; c < 5; ++c) until[c] = hn::Load(d32, from + c * stride);
  HWY_UNROLL(4)
  for (size_t c = 0; c < 4; ++c) of[c] = hn::Sub(until[c + 1], until[c]);
  const auto pairs = [&](auto a, auto b, bool upper) HWY_ATTR {
    return hn::BitCast(d64, upper ? hn::InterleaveUpper(d32, a, b) : hn::InterleaveLower(a, b));
  };
  const auto low01 = pairs(of[0], of[1], false), low23 = pairs(of[2], of[3], false);
  const auto high01 = pairs(of[0], of[1], true), high23 = pairs(of[2], of[3], true);
  const auto store = [&](auto rows, size_t row) HWY_ATTR {  // rows `row` and `row + 4`
    const auto both = hn::BitCast(d32, rows);
    const hn::Half<D32x8> half;
    hn::Store(hn::LowerHalf(half, both), half, to + row * kPanelColumns);
    hn::Store(hn::UpperHalf(half, both), half, to + (row + 4) * kPanelColumns);
  };
  store(hn::InterleaveLower(low01, low23), 0);
  store(hn::InterleaveUpper(d64, low01, low23), 1);
  store(hn::InterleaveLower(high01, high23), 2);
  store(hn::InterleaveUpper(d64, high01, high23), 3);
}

// A block of rows, in both forms.
struct RowBlock {
  const uint8_t* rows;  // [count, stride]
  size_t stride, count;
  const int16_t* columns;  // [inputs, padded]
  size_t padded;           // a multiple of 16
};

// sums[padded, 16] = the products with the rests of a panel's group.
void MultiplyAllRests(const RowBlock& block, const RestFour* begin, const RestFour* end,
                      int32_t* sums) {
  alignas(kAlignment) int32_t running[(kPanelColumns + 1) * kBlockRows];
  kMultiplyRests[block.padded / kGroupRows - 1](begin, end, block.columns, running);
  for (size_t row = 0; row < block.padded; row += 8) {
    for (size_t c = 0; c < kPanelColumns; c += 4) {
      TransposeSums(running + c * block.padded + row, block.padded, sums + row * kPanelColumns + c);
    }
  }
}

// sums[count, 16] += the products with inputs [begin, end) of a bounded panel. What follows in
// memory comes to L2 meanwhile.
void MultiplyBounded(const RowBlock& block, const int8_t* panel, size_t begin, size_t end,
                     int32_t* sums) {
  static constexpr TilesTable kTable;
  const EvenPieces pieces(block.count, kTileRows);
  ByteTiles tiles = {.rows = block.rows + begin,
                     .row_stride = block.stride,
                     .panel = panel + begin * kPanelColumns,
                     .steps = (end - begin) / kInputsOfStep,
                     .count = pieces.longer,
                     .prefetch = panel + end * kPanelColumns,
                     .prefetch_bytes = DivCeil((end - begin) * kPanelColumns, pieces.pieces)};
  if (tiles.count != 0) kTable.of_rows[pieces.base + 1](tiles, sums);
  const size_t done = pieces.longer * (pieces.base + 1);
  tiles.rows += done * block.stride;
  tiles.prefetch += pieces.longer * tiles.prefetch_bytes;
  tiles.count = pieces.pieces - pieces.longer;
  kTable.of_rows[pieces.base](tiles, sums + done * kPanelColumns);
}

void MultiplyBlocks(const GemmArgs& args) {
  alignas(kAlignment) int16_t columns[kColumnsBytes / sizeof(int16_t)];
  constexpr size_t kTileSize = kBlockRows * kPanelColumns;
  alignas(kAlignment) int32_t sums[2 * kTileSize];
  alignas(kAlignment) float values[kTileSize];
  const PackedMatrix& b = *args.b;
  const size_t inputs = RoundUp(b.k, 16), groups = b.groups();
  const size_t fit = kColumnsBytes / (inputs * sizeof(int16_t)) / kGroupRows * kGroupRows;
  GemmEpilogue epilogue = args.epilogue;
  epilogue.bias = nullptr;  // DequantizeTile adds it
  const StoreTileFunction store = ChooseStoreTile(epilogue.activation);
  const size_t panel_bytes = PackedPanelBytes(b.layout, b.k);
  const EvenPieces blocks(args.m, HWY_MIN(kBlockRows, fit));
  size_t row = 0;
  for (size_t i = 0; i < blocks.pieces; ++i) {
    const size_t count = blocks.Size(i), padded = RoundUp(count, kGroupRows);
    const QuantizedRows rows = args.quantized.From(row);
    MakeColumns(rows, count, inputs, padded, columns);
    const RowBlock block = {rows.values, rows.stride, count, columns, padded};
    for (size_t panel = args.panel_begin; panel < args.panel_end; ++panel) {
      for (size_t g = 0; g < groups; ++g) {
        const size_t begin = g == 0 ? 0 : b.split, end = g + 1 == groups ? inputs : b.split;
        int32_t* group_sums = sums + g * kTileSize;
        const uint32_t* starts = b.bounded->starts + panel * groups + g;
        MultiplyAllRests(block, b.bounded->rests + starts[0], b.bounded->rests + starts[1],
                         group_sums);
        MultiplyBounded(block, b.bounded->panels + panel * panel_bytes, begin, end, group_sums);
      }
      const FinishedTile tile = {values, row, count, panel, 1, b.n};
      DequantizeTile(args, tile, {sums, kTileSize, kPanelColumns, 0}, values);
      store(epilogue, tile);
    }
    row += count;
  }
}

// Bounded weights there are, and sixteen rows' columns fit.
bool CanMultiply(const GemmArgs& args) {
  return args.b->bounded != nullptr && args.b->k <= kColumnsBytes / sizeof(int16_t) / kGroupRows;
}

}  // namespace

#if HWY_TARGET == HWY_AVX3
void GemmBoundedRows6(const GemmArgs& args) {
  CanMultiply(args) ? MultiplyBlocks(args) : GemmPairsRows16(args);
}
#else
void GemmBoundedRows3(const GemmArgs& args) {
  CanMultiply(args) ? MultiplyBlocks(args) : GemmPairsRows6(args);
}
#endif

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
