// int8 micro-kernels of 16-bit multiply-add pairs, for x86 CPUs without a byte dot product.
//
// Bytes of a K group of four are taken as 16-bit pairs (0, 2) and (1, 3): weights by shifts of the
// packed vector, activations beforehand. For the sums of a vector that is a multiply-add and an add
// for two products where f32 takes one for one. With four vector pipes, two of which multiply, as
// on Zen 3, a tile of 6 x 16 is 1.45 times as fast as f32's, and 1.57 times with weights that are
// widened beforehand; with three pipes 1.4 times; with two there is no gain.
#include <algorithm>
#include <utility>

#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_pairs.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/gemm_prepared-inl.h"
#include "kernels/simd-inl.h"
#include "kernels/vnni-inl.h"

#if HWY_ARCH_X86

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

using VI = hn::Vec<DI32>;

// sums[v] += pair * weights[v]. On AVX2 all products come before the sums: a sum right behind its
// product takes a multiplying pipe more often.
template <size_t kVectors>
HWY_INLINE void AddProducts(int32_t pair, const hn::Vec<D16>* weights, VI* sums) {
  const DI32 di;
  const auto pairs = hn::BitCast(D16(), hn::Set(di, pair));
  VI products[kVectors];
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) {
    products[v] = hn::WidenMulPairwiseAdd(di, pairs, weights[v]);
    if constexpr (HWY_TARGET == HWY_AVX2) POZOR_KEEP_IN_REGISTER(products[v]);
  }
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) {
    sums[v] = hn::Add(sums[v], products[v]);
    HoldOperand(sums[v]);
  }
}

// The K loop of kRows rows and kVectors vectors of columns. pairs: [kRows, steps, 2] at row_stride;
// panel: at the tile's first column. What lies `ahead` of the panel's bytes comes to L2 meanwhile.
template <size_t kRows, size_t kVectors>
void MultiplyTilePairs(const int32_t* HWY_RESTRICT pairs, size_t row_stride,
                       const int8_t* HWY_RESTRICT panel, size_t steps, size_t ahead,
                       int32_t* HWY_RESTRICT sums) {
  const DI32 di;
  const D16 d16;
  VI acc[kRows][kVectors];
  HWY_UNROLL(16)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) acc[i][v] = hn::Zero(di);
  }
  for (; steps != 0; --steps, panel += 4 * kPanelColumns, pairs += 2) {
    POZOR_PREFETCH_L2(panel + ahead);
    hn::Vec<D16> even[kVectors], odd[kVectors];
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      const auto bytes = hn::Load(d16, reinterpret_cast<const int16_t*>(panel + 4 * kLanes * v));
      even[v] = hn::ShiftRight<8>(hn::ShiftLeft<8>(bytes));
      odd[v] = hn::ShiftRight<8>(bytes);
    }
    HWY_UNROLL(16)
    for (size_t i = 0; i < kRows; ++i) {
      AddProducts<kVectors>(pairs[i * row_stride], even, acc[i]);
      AddProducts<kVectors>(pairs[i * row_stride + 1], odd, acc[i]);
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
      hn::Store(acc[i][v], di, sums + i * kPanelColumns + v * kLanes);
    }
  }
}

using MultiplyTileFunction = void (*)(const int32_t*, size_t, const int8_t*, size_t, size_t,
                                      int32_t*);

template <size_t kRows, size_t kVectors>
struct PairTable {
  MultiplyTileFunction tile[kRows];

  template <size_t... kRow>
  constexpr void Fill(std::index_sequence<kRow...>) {
    ((tile[kRow] = &MultiplyTilePairs<kRow + 1, kVectors>), ...);
  }
  constexpr PairTable() : tile() { Fill(std::make_index_sequence<kRows>()); }
};

// pairs: [count, inputs / 4, 2]
void MakePairs(const QuantizedRows& rows, size_t count, size_t inputs,
               int32_t* HWY_RESTRICT pairs) {
  const hn::FixedTag<int32_t, 4> d32;
  const hn::FixedTag<uint16_t, 8> d16;
  for (size_t r = 0; r < count; ++r) {
    const uint8_t* q = rows.values + r * rows.stride;
    for (size_t i = 0; i < inputs; i += 16, pairs += 8) {
      const auto bytes = hn::Load(d16, reinterpret_cast<const uint16_t*>(q + i));
      const auto even = hn::And(bytes, hn::Set(d16, 255));
      const auto odd = hn::ShiftRight<8>(bytes);
      hn::StoreInterleaved2(hn::BitCast(d32, even), hn::BitCast(d32, odd), d32, pairs);
    }
  }
}

// Tiles of kRows rows, up to kTiles of them one after another while L1 holds the panel.
template <size_t kRows, size_t kVectors, size_t kTiles = 1>
struct PairMicro {
  static constexpr size_t kMaxRows = kRows * kTiles;
  static constexpr size_t kInputBytes = 2;
  static constexpr int32_t kZeroShift = 0;

  static void Prepare(const QuantizedRows& rows, size_t count, size_t inputs, char* to) {
    MakePairs(rows, count, inputs, reinterpret_cast<int32_t*>(to));
  }

  static void Multiply(const PreparedGroup& group, size_t count, const int8_t* panel,
                       int32_t* sums) {
    static constexpr PairTable<kRows, kVectors> kTable;
    const int32_t* pairs = reinterpret_cast<const int32_t*>(group.rows) + group.begin / 2;
    const EvenPieces tiles(count, kRows);
    size_t ahead = group.inputs * kPanelColumns;
    for (size_t tile = 0; tile < tiles.pieces; ++tile, ahead = 0) {
      const size_t rows = tiles.Size(tile);
      for (size_t j = 0; j < kPanelColumns; j += kVectors * kLanes) {
        kTable.tile[rows - 1](pairs, group.inputs / 2, panel + 4 * j, group.steps, ahead, sums + j);
      }
      pairs += rows * group.inputs / 2;
      sums += rows * kPanelColumns;
    }
  }
};

#if HWY_TARGET == HWY_AVX2

// Many rows: panels pass by for a block of rows, and each is widened, a part that L1 holds beside
// the rows at a time, before the block's tiles multiply it.
constexpr size_t kTileRows = 6;
constexpr size_t kBlockRows = 72;
constexpr size_t kBlockBytes = 131072;      // of pairs
constexpr size_t kPartInputs = 512;         // 16 KiB when widened
constexpr size_t kFewRows = 2 * kTileRows;  // up to here widening costs what it saves

// wide: [2 * steps][16][2]
void WidenPanel(const int8_t* HWY_RESTRICT panel, size_t steps, int16_t* HWY_RESTRICT wide) {
  const D16 d16;
  constexpr size_t kHalf = 2 * kPanelColumns;  // pairs (0, 2) of 16 columns, then (1, 3)
  for (; steps != 0; --steps, panel += 4 * kPanelColumns, wide += 2 * kHalf) {
    HWY_UNROLL(2)
    for (size_t v = 0; v < kPanelVectors; ++v) {
      const auto bytes = hn::Load(d16, reinterpret_cast<const int16_t*>(panel + 4 * kLanes * v));
      hn::Store(hn::ShiftRight<8>(hn::ShiftLeft<8>(bytes)), d16, wide + 2 * kLanes * v);
      hn::Store(hn::ShiftRight<8>(bytes), d16, wide + kHalf + 2 * kLanes * v);
    }
  }
}

// Steps unrolled, 1.4 % of the whole. 145 of the 167 GOP/s that twelve such products and sums reach
// in registers on a Zen 3 at 3.2 GHz: a sum that takes a multiplying pipe holds up a product.
constexpr size_t kWideUnroll = 4;

// The K loop over a widened part. pairs: [kRows, pair_count] at row_stride; sums: [kRows, 16], from
// zero if `first`.
template <size_t kRows>
void MultiplyTileWide(const int32_t* HWY_RESTRICT pairs, size_t row_stride,
                      const int16_t* HWY_RESTRICT wide, size_t pair_count, bool first,
                      int32_t* HWY_RESTRICT sums) {
  const DI32 di;
  const D16 d16;
  VI acc[kRows][kPanelVectors];
  HWY_UNROLL(6)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(2)
    for (size_t v = 0; v < kPanelVectors; ++v) {
      acc[i][v] = first ? hn::Zero(di) : hn::Load(di, sums + i * kPanelColumns + v * kLanes);
    }
  }
  const int32_t* row_pairs[kRows];
  HWY_UNROLL(6)
  for (size_t i = 0; i < kRows; ++i) {
    row_pairs[i] = pairs + i * row_stride;
    POZOR_HIDE_VALUE(row_pairs[i]);
  }
  size_t index = 0;
  const auto step = [&](size_t ahead) HWY_ATTR __attribute__((always_inline)) {
    hn::Vec<D16> w[kPanelVectors];
    HWY_UNROLL(2)
    for (size_t v = 0; v < kPanelVectors; ++v) {
      w[v] = hn::Load(d16, wide + 2 * (ahead * kPanelColumns + kLanes * v));
    }
    HWY_UNROLL(6)
    for (size_t i = 0; i < kRows; ++i) {
      AddProducts<kPanelVectors>(row_pairs[i][index + ahead], w, acc[i]);
    }
  };
  for (; pair_count >= kWideUnroll; pair_count -= kWideUnroll) {
    HWY_UNROLL(8)
    for (size_t s = 0; s < kWideUnroll; ++s) step(s);
    wide += 2 * kWideUnroll * kPanelColumns;
    index += kWideUnroll;
    POZOR_HIDE_VALUE(index);
  }
  for (; pair_count != 0; --pair_count, wide += 2 * kPanelColumns, ++index) step(0);
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

using MultiplyWideFunction = void (*)(const int32_t*, size_t, const int16_t*, size_t, bool,
                                      int32_t*);
constexpr MultiplyWideFunction kMultiplyWide[kTileRows] = {
    &MultiplyTileWide<1>, &MultiplyTileWide<2>, &MultiplyTileWide<3>,
    &MultiplyTileWide<4>, &MultiplyTileWide<5>, &MultiplyTileWide<6>};

// A block of rows as pairs, and where the weights' stream goes on.
struct PairBlock {
  const int32_t* pairs;  // [rows, inputs / 2]
  size_t rows, inputs;
};

// sums[rows, 16] of inputs [begin, end) of a panel; `packed` is the panel. What follows in memory
// comes to L2 meanwhile.
void MultiplyGroupWide(const PairBlock& block, const int8_t* packed, size_t begin, size_t end,
                       int32_t* sums) {
  alignas(kAlignment) int16_t wide[kPartInputs * kPanelColumns];
  const EvenPieces tiles(block.rows, kTileRows);
  const size_t row_pairs = block.inputs / 2;
  for (size_t from = begin; from < end; from += kPartInputs) {
    const size_t count = std::min(kPartInputs, end - from);
    const int8_t* part = packed + from * kPanelColumns;
    WidenPanel(part, count / 4, wide);
    const size_t ahead = DivCeil(count * kPanelColumns, tiles.pieces);
    const int8_t* next = part + count * kPanelColumns;
    size_t row = 0;
    for (size_t tile = 0; tile < tiles.pieces; ++tile, next += ahead) {
      for (size_t at = 0; at < ahead; at += kAlignment) POZOR_PREFETCH_L2(next + at);
      const size_t rows = tiles.Size(tile);
      kMultiplyWide[rows - 1](block.pairs + row * row_pairs + from / 2, row_pairs, wide, count / 2,
                              from == begin, sums + row * kPanelColumns);
      row += rows;
    }
  }
}

void MultiplyBlocksWide(const GemmArgs& args) {
  alignas(kAlignment) char memory[kBlockBytes];
  constexpr size_t kTileSize = kBlockRows * kPanelColumns;
  alignas(kAlignment) int32_t sums[2 * kTileSize];
  alignas(kAlignment) float values[kTileSize];
  int32_t* pairs = reinterpret_cast<int32_t*>(memory);
  const PackedMatrix& b = *args.b;
  const size_t inputs = RoundUp(b.k, 16), row_bytes = inputs * sizeof(int16_t);
  const size_t fit = std::min(kBlockRows, kBlockBytes / row_bytes / kTileRows * kTileRows);
  GemmEpilogue epilogue = args.epilogue;
  epilogue.bias = nullptr;  // DequantizeTile adds it
  const StoreTileFunction store = ChooseStoreTile(epilogue.activation);
  const size_t panel_bytes = PackedPanelBytes(b.layout, b.k);
  const EvenPieces blocks(args.m, fit);
  size_t row = 0;
  for (size_t i = 0; i < blocks.pieces; ++i) {
    const PairBlock block = {pairs, blocks.Size(i), inputs};
    MakePairs(args.quantized.From(row), block.rows, inputs, pairs);
    for (size_t panel = args.panel_begin; panel < args.panel_end; ++panel) {
      const int8_t* packed = static_cast<const int8_t*>(b.panels) + panel * panel_bytes;
      if (b.split != 0) MultiplyGroupWide(block, packed, 0, b.split, sums);
      MultiplyGroupWide(block, packed, b.split, inputs, sums + (b.split != 0 ? kTileSize : 0));
      const FinishedTile tile = {values, row, block.rows, panel, 1, b.n};
      DequantizeTile(args, tile, {sums, kTileSize, kPanelColumns, 0}, values);
      store(epilogue, tile);
    }
    row += block.rows;
  }
}

// True if a tile's rows fit, and there are more than one tile has.
bool IsWorthWidening(const GemmArgs& args) {
  return args.m > kFewRows && args.b->k <= kBlockBytes / sizeof(int16_t) / kFewRows;
}

#endif  // HWY_TARGET == HWY_AVX2

}  // namespace

#if HWY_TARGET == HWY_AVX3
void GemmPairsRows16(const GemmArgs& args) { MultiplyPrepared<PairMicro<16, 1>>(args); }
#elif HWY_TARGET == HWY_AVX2
void GemmPairsRows6(const GemmArgs& args) {
  IsWorthWidening(args) ? MultiplyBlocksWide(args) : MultiplyPrepared<PairMicro<4, 2, 3>>(args);
}
#else
void GemmPairsRows3(const GemmArgs& args) { MultiplyPrepared<PairMicro<3, 2>>(args); }
#endif

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_ARCH_X86
