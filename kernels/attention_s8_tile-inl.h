// The product tile of int8 attention: the shapes of attention_tile-inl.h, with 32-bit words of two
// or four small integers in place of floats and integer sums.
#if defined(POZOR_KERNELS_ATTENTION_S8_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_ATTENTION_S8_TILE_INL_H_
#undef POZOR_KERNELS_ATTENTION_S8_TILE_INL_H_
#else
#define POZOR_KERNELS_ATTENTION_S8_TILE_INL_H_
#endif

#include <utility>

#include "kernels/attention_tile-inl.h"
#include "kernels/simd-inl.h"
#include "kernels/vnni-inl.h"

#if !HWY_TARGET_IS_SVE  // scalable vectors cannot live in arrays

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using VI = hn::Vec<DI32>;

// Words of two 16-bit integers on both sides.
struct PairDots {
  static constexpr bool kByteKeys = false;

  // sums[v] += a b[v]. On AVX2 all products come before the sums: a sum right behind its product
  // takes a multiplying pipe more often.
  template <size_t kVectors>
  static HWY_INLINE void Add(VI (&sums)[kVectors], VI a, const VI (&b)[kVectors]) {
    const D16 d16;
    const DI32 di;
    VI products[kVectors];
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      products[v] = hn::WidenMulPairwiseAdd(di, hn::BitCast(d16, a), hn::BitCast(d16, b[v]));
      if constexpr (HWY_TARGET == HWY_AVX2) POZOR_KEEP_IN_REGISTER(products[v]);
    }
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      sums[v] = hn::Add(sums[v], products[v]);
      HoldOperand(sums[v]);
    }
  }
  template <size_t kVectors>
  static HWY_INLINE void AddScores(VI (&sums)[kVectors], VI k, const VI (&q)[kVectors]) {
    Add(sums, k, q);
  }
  template <size_t kVectors>
  static HWY_INLINE void AddContext(VI (&sums)[kVectors], VI p, const VI (&v)[kVectors]) {
    Add(sums, p, v);
  }
};

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// Scores: words of four bytes, keys unsigned with 128 added. Context: pairs.
struct VnniDots {
  static constexpr bool kByteKeys = true;

  template <size_t kVectors>
  static HWY_INLINE void AddScores(VI (&sums)[kVectors], VI k, const VI (&q)[kVectors]) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      DotBytes(sums[v], k, q[v]);
      HoldOperand(sums[v]);
    }
  }
  template <size_t kVectors>
  static HWY_INLINE void AddContext(VI (&sums)[kVectors], VI p, const VI (&v)[kVectors]) {
    HWY_UNROLL(4)
    for (size_t i = 0; i < kVectors; ++i) {
      DotPairs(sums[i], p, v[i]);
      HoldOperand(sums[i]);
    }
  }
};
#endif

struct S8TileArgs {
  const int32_t* a = nullptr;
  size_t a_row = 0;   // words from row to row of A
  size_t a_step = 0;  // words from step to step of the depth
  const int32_t* b = nullptr;
  size_t b_stride = 0;
  size_t depth = 0;  // in words

  // Scores: C = float(start[column] + A B) * column_scale[column] * row_scale[row].
  const int32_t* start = nullptr;
  const float* column_scale = nullptr;
  const float* row_scale = nullptr;
  float* scores = nullptr;
  size_t scores_stride = 0;
  float* max = nullptr;  // running maximum a column, or null

  // Context: sums, accumulated if asked to; where `scale` is not null, row r goes, times scale[r],
  // to `out` instead.
  int32_t* sums = nullptr;
  size_t sums_stride = 0;
  bool accumulate = false;
  const float* scale = nullptr;
  float* out = nullptr;  // any alignment
  size_t out_stride = 0;
};

// acc[r][v] += a[r * a_row] b[v]
template <class Dots, TileKind kKind, size_t kRows, size_t kVectors>
HWY_INLINE void MultiplyStepS8(const int32_t* HWY_RESTRICT a, size_t a_row,
                               const int32_t* HWY_RESTRICT b, VI (&acc)[kRows][kVectors]) {
  const DI32 di;
  VI row_b[kVectors];
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) row_b[v] = hn::Load(di, b + v * kLanes);
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    const VI word = hn::Set(di, a[r * a_row]);
    if constexpr (kKind == TileKind::kScores) {
      Dots::AddScores(acc[r], word, row_b);
    } else {
      Dots::AddContext(acc[r], word, row_b);
    }
  }
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) HoldOperand(row_b[v]);
}

// Puts a tile of scores, and raises `max`, a running maximum a column, unless it is null.
template <size_t kRows, size_t kVectors>
HWY_INLINE void StoreS8Scores(const VI (&acc)[kRows][kVectors],
                              const float* HWY_RESTRICT column_scale,
                              const float* HWY_RESTRICT row_scale, float* HWY_RESTRICT scores,
                              size_t stride, float* HWY_RESTRICT max) {
  const DF df;
  VF factor[kVectors], raised[kVectors];
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) {
    factor[v] = hn::Load(df, column_scale + v * kLanes);
    raised[v] = max == nullptr ? factor[v] : hn::Load(df, max + v * kLanes);
  }
  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r, scores += stride) {
    POZOR_HIDE_VALUE(scores);  // one register for all rows
    const VF row_factor = hn::Set(df, row_scale[r]);
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      const VF score = hn::Mul(hn::Mul(hn::ConvertTo(df, acc[r][v]), factor[v]), row_factor);
      hn::Store(score, df, scores + v * kLanes);
      raised[v] = hn::Max(raised[v], score);
    }
  }
  if (max == nullptr) return;
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) hn::Store(raised[v], df, max + v * kLanes);
}

// As MultiplyTile. kHeadStride: words of a head's row, or 0.
template <class Dots, size_t kRows, size_t kVectors, TileKind kKind, size_t kHeadStride>
void MultiplyTileS8(const S8TileArgs& args, size_t row, size_t column, size_t tiles) {
  constexpr bool kScores = kKind == TileKind::kScores;
  const DF df;
  const DI32 di;
  const size_t a_row = kScores ? (kHeadStride != 0 ? kHeadStride : args.a_row) : 1;
  const size_t a_step = args.a_step, b_stride = args.b_stride, depth = args.depth;
  const size_t c_stride = kScores ? args.scores_stride : args.sums_stride;
  const size_t out_stride = args.out_stride;
  const bool accumulate = !kScores && args.accumulate;
  const bool scaled = !kScores && args.scale != nullptr, raises = kScores && args.max != nullptr;
  const int32_t* HWY_RESTRICT a = args.a + row * a_row;
  const int32_t* HWY_RESTRICT b = args.b + column;
  const int32_t* HWY_RESTRICT start = kScores ? args.start + column : nullptr;
  const float* HWY_RESTRICT column_scale = kScores ? args.column_scale + column : nullptr;
  const float* HWY_RESTRICT row_scale = kScores ? args.row_scale + row : nullptr;
  float* HWY_RESTRICT scores = kScores ? args.scores + row * c_stride + column : nullptr;
  float* HWY_RESTRICT max = raises ? args.max + column : nullptr;
  int32_t* HWY_RESTRICT sums = kScores ? nullptr : args.sums + row * c_stride + column;
  const float* HWY_RESTRICT scale = scaled ? args.scale + row : nullptr;
  float* HWY_RESTRICT out = scaled ? args.out + row * out_stride + column : nullptr;
  for (; tiles != 0; --tiles, a += kRows * a_row) {
    VI acc[kRows][kVectors];
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      const VI first = kScores ? hn::Load(di, start + v * kLanes) : hn::Zero(di);
      HWY_UNROLL(16)
      for (size_t r = 0; r < kRows; ++r) acc[r][v] = first;
    }
    if (accumulate) {
      HWY_UNROLL(16)
      for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(4)
        for (size_t v = 0; v < kVectors; ++v) {
          acc[r][v] = hn::Load(di, sums + r * c_stride + v * kLanes);
        }
      }
    }

    ForEachStep<kKind, kHeadStride>(a, a_step, b, b_stride, depth,
                                    [&](const int32_t* step_a, const int32_t* step_b) HWY_ATTR
                                    __attribute__((always_inline)) {
                                      MultiplyStepS8<Dots, kKind>(step_a, a_row, step_b, acc);
                                    });

    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) POZOR_KEEP_IN_REGISTER(acc[r][v]);
    }
    if constexpr (kScores) {
      StoreS8Scores(acc, column_scale, row_scale, scores, c_stride, max);
      row_scale += kRows;
      scores += kRows * c_stride;
      continue;
    }
    if (!scaled) {
      HWY_UNROLL(16)
      for (size_t r = 0; r < kRows; ++r, sums += c_stride) {
        POZOR_HIDE_VALUE(sums);
        HWY_UNROLL(4)
        for (size_t v = 0; v < kVectors; ++v) hn::Store(acc[r][v], di, sums + v * kLanes);
      }
      continue;
    }
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r, out += out_stride) {
      const VF factor = hn::Set(df, scale[r]);
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        hn::StoreU(hn::Mul(hn::ConvertTo(df, acc[r][v]), factor), df, out + v * kLanes);
      }
    }
    scale += kRows;
    sums += kRows * c_stride;
  }
}

using S8TileFunction = void (*)(const S8TileArgs&, size_t row, size_t column, size_t tiles);

// MultiplyTileS8 for every width and its numbers of rows.
template <class Dots, TileKind kKind, size_t kHeadStride>
struct S8TileTable {
  S8TileFunction tile[kTileVectors + 1][kTileMaxRows + 1];

  template <size_t kVectors, size_t... kRow>
  constexpr void FillWidth(std::index_sequence<kRow...>) {
    ((tile[kVectors][kRow + 1] = &MultiplyTileS8<Dots, kRow + 1, kVectors, kKind, kHeadStride>),
     ...);
  }
  template <size_t... kWidth>
  constexpr void Fill(std::index_sequence<kWidth...>) {
    (FillWidth<kTileMinVectors + kWidth>(
         std::make_index_sequence<TileRows(kTileMinVectors + kWidth)>()),
     ...);
  }
  constexpr S8TileTable() : tile() {
    Fill(std::make_index_sequence<kTileVectors + 1 - kTileMinVectors>());
  }
};

// The whole product, `rows` by `columns` (a multiple of 16), both at least 1.
template <class Dots, TileKind kKind, size_t kHeadStride>
void MultiplyTilesS8(const S8TileArgs& args, size_t rows, size_t columns) {
  static constexpr S8TileTable<Dots, kKind, kHeadStride> table;
  ForEachColumnOfTiles(rows, columns,
                       [&](size_t vectors, size_t height, size_t row, size_t column, size_t tiles)
                           HWY_ATTR { table.tile[vectors][height](args, row, column, tiles); });
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // !HWY_TARGET_IS_SVE

#endif  // POZOR_KERNELS_ATTENTION_S8_TILE_INL_H_
