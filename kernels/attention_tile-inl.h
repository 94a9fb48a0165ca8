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

// Steps of the depth unrolled, for the reasons of gemm_f32.cc. Eight are no faster: depths are
// short.
inline constexpr size_t kTileUnroll = HWY_TARGET == HWY_AVX2 ? 4 : 1;

// Where the steps of an unrolled loop read an operand. kStride: elements from step to step, or 0 if
// only the run time knows them: then the pointer goes on at every step, which costs an instruction,
// since offsets of several steps would not fit the registers.
template <class T, size_t kStride>
class StepsOf {
 public:
  StepsOf(const T* first, size_t stride) : at_(first), stride_(stride) {}

  HWY_INLINE const T* At(size_t step) const { return at_ + step * kStride; }
  HWY_INLINE void AdvanceBehind(size_t step) {
    if (kStride != 0 && step + 1 < kTileUnroll) return;
    at_ += kStride != 0 ? kTileUnroll * kStride : stride_;
    POZOR_HIDE_VALUE(at_);
  }

 private:
  const T* at_;
  size_t stride_;
};

// Calls multiply(a, b) at every step of the depth. kHeadStride as for MultiplyTile.
template <TileKind kKind, size_t kHeadStride, class T, class Multiply>
HWY_INLINE void ForEachStep(const T* HWY_RESTRICT a, size_t a_step, const T* HWY_RESTRICT b,
                            size_t b_stride, size_t depth, const Multiply& multiply) {
  constexpr bool kScores = kKind == TileKind::kScores;
  if constexpr (kTileUnroll > 1) {
    StepsOf<T, kScores && kHeadStride != 0 ? 1 : 0> steps_a(a, a_step);
    StepsOf<T, kScores ? 0 : kHeadStride> steps_b(b, b_stride);
    for (; depth >= kTileUnroll; depth -= kTileUnroll) {
      HWY_UNROLL(4)
      for (size_t s = 0; s < kTileUnroll; ++s) {
        multiply(steps_a.At(s), steps_b.At(s));
        steps_a.AdvanceBehind(s);
        steps_b.AdvanceBehind(s);
      }
    }
    a = steps_a.At(0);
    b = steps_b.At(0);
  }
  for (; depth != 0; --depth, a += a_step, b += b_stride) multiply(a, b);
}

// acc[r][v] += a[r * a_row] b[v]
template <size_t kRows, size_t kVectors>
HWY_INLINE void MultiplyStep(const float* HWY_RESTRICT a, size_t a_row, const float* HWY_RESTRICT b,
                             VF (&acc)[kRows][kVectors]) {
  const DF df;
  VF row_b[kVectors];
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) row_b[v] = hn::Load(df, b + v * kLanes);
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    const VF element = hn::Set(df, a[r * a_row]);
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      acc[r][v] = hn::MulAdd(element, row_b[v], acc[r][v]);
      HoldOperand(acc[r][v]);
    }
    HoldOperand(element);
  }
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) HoldOperand(row_b[v]);
}

template <size_t kRows, size_t kVectors>
HWY_INLINE void StoreTile(const VF (&acc)[kRows][kVectors], float* HWY_RESTRICT c,
                          size_t c_stride) {
  const DF df;
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r, c += c_stride) {
    POZOR_HIDE_VALUE(c);  // one register for all rows
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) hn::Store(acc[r][v], df, c + v * kLanes);
  }
}

template <size_t kRows, size_t kVectors>
HWY_INLINE void RaiseTileMaxima(const VF (&acc)[kRows][kVectors], float* HWY_RESTRICT max) {
  const DF df;
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) {
    VF raised = hn::Load(df, max + v * kLanes);
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) raised = hn::Max(raised, acc[r][v]);
    hn::Store(raised, df, max + v * kLanes);
  }
}

// `tiles` tiles below each other, whose first element is C[row, column]: the processor then works
// on the end of one and the start of the next at once. kHeadStride, if not 0, is args.a_row of
// scores and args.b_stride of a context.
template <size_t kRows, size_t kVectors, TileKind kKind, size_t kHeadStride>
void MultiplyTile(const TileArgs& args, size_t row, size_t column, size_t tiles) {
  constexpr bool kScores = kKind == TileKind::kScores;
  const DF df;
  const size_t a_row = kScores ? (kHeadStride != 0 ? kHeadStride : args.a_row) : 1;
  const size_t a_step = args.a_step, b_stride = args.b_stride, depth = args.depth;
  const size_t c_stride = args.c_stride, out_stride = args.out_stride;
  const bool accumulate = !kScores && args.accumulate;
  const bool scaled = !kScores && args.scale != nullptr, raises = kScores && args.max != nullptr;
  const float* HWY_RESTRICT a = args.a + row * a_row;
  const float* HWY_RESTRICT b = args.b + column;
  float* c = args.c + row * c_stride + column;
  float* HWY_RESTRICT max = raises ? args.max + column : nullptr;
  const float* HWY_RESTRICT scale = scaled ? args.scale + row : nullptr;
  float* out = scaled ? args.out + row * out_stride + column : nullptr;  // may be c
  for (; tiles != 0; --tiles, a += kRows * a_row, c += kRows * c_stride) {
    VF acc[kRows][kVectors];
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) acc[r][v] = hn::Zero(df);
    }
    if (accumulate) {
      HWY_UNROLL(16)
      for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(4)
        for (size_t v = 0; v < kVectors; ++v) {
          acc[r][v] = hn::Load(df, c + r * c_stride + v * kLanes);
        }
      }
    }

    ForEachStep<kKind, kHeadStride>(
        a, a_step, b, b_stride, depth,
        [&](const float* step_a, const float* step_b) HWY_ATTR
        __attribute__((always_inline)) { MultiplyStep(step_a, a_row, step_b, acc); });

    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) POZOR_KEEP_IN_REGISTER(acc[r][v]);
    }
    if (!scaled) {
      StoreTile(acc, c, c_stride);
      if (raises) RaiseTileMaxima(acc, max);
      continue;
    }
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r, out += out_stride) {
      const VF factor = hn::Set(df, scale[r]);
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        hn::StoreU(hn::Mul(acc[r][v], factor), df, out + v * kLanes);
      }
    }
    scale += kRows;
  }
}

using TileFunction = void (*)(const TileArgs&, size_t row, size_t column, size_t tiles);

// MultiplyTile for every width and its numbers of rows.
template <TileKind kKind, size_t kHeadStride>
struct TileTable {
  TileFunction tile[kTileVectors + 1][kTileMaxRows + 1];

  template <size_t kVectors, size_t... kRow>
  constexpr void FillWidth(std::index_sequence<kRow...>) {
    ((tile[kVectors][kRow + 1] = &MultiplyTile<kRow + 1, kVectors, kKind, kHeadStride>), ...);
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
  // Pieces of the size of `piece`, a first one, from there on.
  size_t Alike(size_t piece) const { return piece < longer ? longer : pieces - longer; }
};

// Calls multiply(vectors, height, row, column, tiles) for columns of tiles, each `vectors` wide and
// `height` high and the first one at [row, column], that make up `rows` by `columns`.
template <class Multiply>
HWY_INLINE void ForEachColumnOfTiles(size_t rows, size_t columns, const Multiply& multiply) {
  const EvenCut widths(columns / kLanes, kTileVectors);
  for (size_t w = 0, column = 0; w < widths.pieces; ++w) {
    const size_t vectors = widths.Size(w);
    const EvenCut heights(rows, TileRows(vectors));
    for (size_t h = 0, row = 0; h < heights.pieces;) {
      const size_t height = heights.Size(h), tiles = heights.Alike(h);
      multiply(vectors, height, row, column, tiles);
      row += height * tiles;
      h += tiles;
    }
    column += vectors * kLanes;
  }
}

// The whole product, `rows` by `columns` (a multiple of 16), both at least 1.
template <TileKind kKind, size_t kHeadStride>
void MultiplyTiles(const TileArgs& args, size_t rows, size_t columns) {
  static constexpr TileTable<kKind, kHeadStride> table;
  ForEachColumnOfTiles(rows, columns,
                       [&](size_t vectors, size_t height, size_t row, size_t column, size_t tiles)
                           HWY_ATTR { table.tile[vectors][height](args, row, column, tiles); });
}

// The same, compiled for the usual strides of heads. Without unrolling a context has nothing to
// gain.
template <TileKind kKind>
HWY_INLINE void MultiplyTilesOfHead(const TileArgs& args, size_t rows, size_t columns,
                                    size_t head_stride) {
  constexpr bool kUsual = kKind == TileKind::kScores || kTileUnroll > 1;
  switch (kUsual ? head_stride : 0) {
    case 32:
      return MultiplyTiles<kKind, 32>(args, rows, columns);
    case 64:
      return MultiplyTiles<kKind, 64>(args, rows, columns);
    default:
      return MultiplyTiles<kKind, 0>(args, rows, columns);
  }
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // !HWY_TARGET_IS_SVE

#endif  // POZOR_KERNELS_ATTENTION_TILE_INL_H_
