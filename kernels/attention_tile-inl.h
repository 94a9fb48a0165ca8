// The product tile of attention: C [rows, columns] (+)= A [rows, depth] B [depth, columns], with A
// read by broadcast and B as stored. Both products of attention have this shape:
//   scores^T = K Q^T   rows are keys,    columns queries,     depth head_dim
//   context  = P V     rows are queries, columns of the head, depth keys
// One accumulator an element, depth ascending, one fused multiply-add a step.
#if defined(POZOR_KERNELS_ATTENTION_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_ATTENTION_TILE_INL_H_
#undef POZOR_KERNELS_ATTENTION_TILE_INL_H_
#else
#define POZOR_KERNELS_ATTENTION_TILE_INL_H_
#endif

#include <utility>

#include "kernels/simd-inl.h"

#if !HWY_TARGET_IS_SVE  // scalable vectors cannot live in arrays

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

struct TileArgs {
  const float* a = nullptr;
  size_t a_row = 0;   // floats from row to row of A
  size_t a_step = 0;  // floats from step to step of the depth
  const float* b = nullptr;
  size_t b_stride = 0;
  size_t depth = 0;
  float* c = nullptr;  // 64-byte aligned rows
  size_t c_stride = 0;
  bool accumulate = false;  // C += instead of C =
  float* max = nullptr;     // scores: running maximum a column, or null

  // Context: where `scale` is not null, row r goes, times scale[r], to `out` instead of C.
  const float* scale = nullptr;
  float* out = nullptr;  // any alignment
  size_t out_stride = 0;
};

enum class TileKind { kScores, kContext };

// Widest tile, in vectors, and its rows for each width: what the registers hold beside one
// broadcast and a row of B. Columns come in groups of 16, so narrow targets need one width only.
inline constexpr size_t kTileVectors = HWY_ARCH_X86 && kLanes < 16 ? 2 : 4;
inline constexpr size_t kTileMinVectors = kLanes == 16 ? 1 : kTileVectors;

constexpr size_t TileRows(size_t vectors) {
  if (HWY_ARCH_X86 && kLanes < 16) return 6;
  return vectors <= 2 ? 12 : 24 / vectors;
}
inline constexpr size_t kTileMaxRows = TileRows(kTileMinVectors);

// kRowStride, if not 0, is args.a_row: the compiler then addresses all rows from one register.
template <size_t kRows, size_t kVectors, TileKind kKind, size_t kRowStride>
void MultiplyTile(const TileArgs& args) {
  const DF df;
  const float* HWY_RESTRICT a = args.a;
  const float* HWY_RESTRICT b = args.b;
  const size_t a_row = kRowStride != 0 ? kRowStride : args.a_row;
  const size_t a_step = args.a_step, b_stride = args.b_stride, c_stride = args.c_stride;
  VF acc[kRows][kVectors];
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) acc[r][v] = hn::Zero(df);
  }
  if (args.accumulate) {
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        acc[r][v] = hn::Load(df, args.c + r * c_stride + v * kLanes);
      }
    }
  }

  for (size_t step = args.depth; step != 0; --step, a += a_step, b += b_stride) {
    VF row_b[kVectors];
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) row_b[v] = hn::Load(df, b + v * kLanes);
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      const VF element = hn::Set(df, a[r * a_row]);
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) acc[r][v] = hn::MulAdd(element, row_b[v], acc[r][v]);
    }
  }

  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) POZOR_KEEP_IN_REGISTER(acc[r][v]);
  }
  if (kKind == TileKind::kContext && args.scale != nullptr) {
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      const VF scale = hn::Set(df, args.scale[r]);
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        hn::StoreU(hn::Mul(acc[r][v], scale), df, args.out + r * args.out_stride + v * kLanes);
      }
    }
    return;
  }
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      hn::Store(acc[r][v], df, args.c + r * c_stride + v * kLanes);
    }
  }
  if (kKind == TileKind::kContext || args.max == nullptr) return;
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) {
    VF max = hn::Load(df, args.max + v * kLanes);
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) max = hn::Max(max, acc[r][v]);
    hn::Store(max, df, args.max + v * kLanes);
  }
}

using TileFunction = void (*)(const TileArgs&);

// MultiplyTile for every width and its numbers of rows.
template <TileKind kKind, size_t kRowStride>
struct TileTable {
  TileFunction tile[kTileVectors + 1][kTileMaxRows + 1];

  template <size_t kVectors, size_t... kRow>
  constexpr void FillWidth(std::index_sequence<kRow...>) {
    ((tile[kVectors][kRow + 1] = &MultiplyTile<kRow + 1, kVectors, kKind, kRowStride>), ...);
  }
  template <size_t... kWidth>
  constexpr void Fill(std::index_sequence<kWidth...>) {
    (FillWidth<kTileMinVectors + kWidth>(
         std::make_index_sequence<TileRows(kTileMinVectors + kWidth)>()),
     ...);
  }
  constexpr TileTable() : tile() {
    Fill(std::make_index_sequence<kTileVectors + 1 - kTileMinVectors>());
  }
};

// Cuts `count` into the fewest pieces of at most `most`, as even as possible: no slivers.
struct EvenCut {
  uint32_t pieces, base, longer;  // the first `longer` pieces have base + 1

  EvenCut(size_t count, size_t most) : pieces(1), base(static_cast<uint32_t>(count)), longer(0) {
    if (count <= most) return;  // texts are short: mostly without a division
    const auto n = static_cast<uint32_t>(count), m = static_cast<uint32_t>(most);
    pieces = (n + m - 1) / m;
    base = n / pieces;
    longer = n % pieces;
  }
  size_t Size(size_t piece) const { return base + (piece < longer ? 1 : 0); }
};

// The whole product, `rows` by `columns` (a multiple of 16), both at least 1.
template <TileKind kKind, size_t kRowStride>
void MultiplyTiles(TileArgs args, size_t rows, size_t columns) {
  static constexpr TileTable<kKind, kRowStride> table;
  const TileArgs all = args;
  const EvenCut widths(columns / kLanes, kTileVectors);
  for (size_t w = 0, column = 0; w < widths.pieces; ++w) {
    const size_t vectors = widths.Size(w);
    const EvenCut heights(rows, TileRows(vectors));
    args.b = all.b + column;
    if (kKind == TileKind::kScores && all.max != nullptr) args.max = all.max + column;
    for (size_t h = 0, row = 0; h < heights.pieces; ++h) {
      const size_t height = heights.Size(h);
      args.a = all.a + row * all.a_row;
      args.c = all.c + row * all.c_stride + column;
      if (kKind == TileKind::kContext && all.scale != nullptr) {
        args.scale = all.scale + row;
        args.out = all.out + row * all.out_stride + column;
      }
      table.tile[vectors][height](args);
      row += height;
    }
    column += vectors * kLanes;
  }
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // !HWY_TARGET_IS_SVE

#endif  // POZOR_KERNELS_ATTENTION_TILE_INL_H_
