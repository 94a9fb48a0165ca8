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

  static HWY_INLINE void Add(VI& sum, VI a, VI b) {
    const D16 d16;
    sum = hn::Add(sum, hn::WidenMulPairwiseAdd(DI32(), hn::BitCast(d16, a), hn::BitCast(d16, b)));
  }
  static HWY_INLINE void AddScores(VI& sum, VI k, VI q) { Add(sum, k, q); }
  static HWY_INLINE void AddContext(VI& sum, VI p, VI v) { Add(sum, p, v); }
};

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
// Scores: words of four bytes, keys unsigned with 128 added. Context: pairs.
struct VnniDots {
  static constexpr bool kByteKeys = true;

  static HWY_INLINE void AddScores(VI& sum, VI k, VI q) { DotBytes(sum, k, q); }
  static HWY_INLINE void AddContext(VI& sum, VI p, VI v) { DotPairs(sum, p, v); }
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

// kRowStride, if not 0, is args.a_row.
template <class Dots, size_t kRows, size_t kVectors, TileKind kKind, size_t kRowStride>
void MultiplyTileS8(const S8TileArgs& args) {
  const DF df;
  const DI32 di;
  const int32_t* HWY_RESTRICT a = args.a;
  const int32_t* HWY_RESTRICT b = args.b;
  const size_t a_row = kRowStride != 0 ? kRowStride : args.a_row;
  const size_t a_step = args.a_step, b_stride = args.b_stride;
  VI acc[kRows][kVectors];
  if constexpr (kKind == TileKind::kScores) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      const VI start = hn::Load(di, args.start + v * kLanes);
      HWY_UNROLL(16)
      for (size_t r = 0; r < kRows; ++r) acc[r][v] = start;
    }
  } else {
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) acc[r][v] = hn::Zero(di);
    }
    if (args.accumulate) {
      HWY_UNROLL(16)
      for (size_t r = 0; r < kRows; ++r) {
        HWY_UNROLL(4)
        for (size_t v = 0; v < kVectors; ++v) {
          acc[r][v] = hn::Load(di, args.sums + r * args.sums_stride + v * kLanes);
        }
      }
    }
  }

  for (size_t step = args.depth; step != 0; --step, a += a_step, b += b_stride) {
    VI row_b[kVectors];
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) row_b[v] = hn::Load(di, b + v * kLanes);
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      const VI word = hn::Set(di, a[r * a_row]);
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        if constexpr (kKind == TileKind::kScores) {
          Dots::AddScores(acc[r][v], word, row_b[v]);
        } else {
          Dots::AddContext(acc[r][v], word, row_b[v]);
        }
      }
    }
  }

  HWY_UNROLL(16)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) POZOR_KEEP_IN_REGISTER(acc[r][v]);
  }
  if constexpr (kKind == TileKind::kScores) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      const VF column_scale = hn::Load(df, args.column_scale + v * kLanes);
      VF max = args.max == nullptr ? column_scale : hn::Load(df, args.max + v * kLanes);
      HWY_UNROLL(16)
      for (size_t r = 0; r < kRows; ++r) {
        const VF scaled = hn::Mul(hn::ConvertTo(df, acc[r][v]), column_scale);
        const VF score = hn::Mul(scaled, hn::Set(df, args.row_scale[r]));
        hn::Store(score, df, args.scores + r * args.scores_stride + v * kLanes);
        max = hn::Max(max, score);
      }
      if (args.max != nullptr) hn::Store(max, df, args.max + v * kLanes);
    }
  } else if (args.scale != nullptr) {
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      const VF scale = hn::Set(df, args.scale[r]);
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        hn::StoreU(hn::Mul(hn::ConvertTo(df, acc[r][v]), scale), df,
                   args.out + r * args.out_stride + v * kLanes);
      }
    }
  } else {
    HWY_UNROLL(16)
    for (size_t r = 0; r < kRows; ++r) {
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        hn::Store(acc[r][v], di, args.sums + r * args.sums_stride + v * kLanes);
      }
    }
  }
}

using S8TileFunction = void (*)(const S8TileArgs&);

// MultiplyTileS8 for every width and its numbers of rows.
template <class Dots, TileKind kKind, size_t kRowStride>
struct S8TileTable {
  S8TileFunction tile[kTileVectors + 1][kTileMaxRows + 1];

  template <size_t kVectors, size_t... kRow>
  constexpr void FillWidth(std::index_sequence<kRow...>) {
    ((tile[kVectors][kRow + 1] = &MultiplyTileS8<Dots, kRow + 1, kVectors, kKind, kRowStride>),
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
template <class Dots, TileKind kKind, size_t kRowStride>
void MultiplyTilesS8(S8TileArgs args, size_t rows, size_t columns) {
  static constexpr S8TileTable<Dots, kKind, kRowStride> table;
  const S8TileArgs all = args;
  const EvenCut widths(columns / kLanes, kTileVectors);
  for (size_t w = 0, column = 0; w < widths.pieces; ++w) {
    const size_t vectors = widths.Size(w);
    const EvenCut heights(rows, TileRows(vectors));
    args.b = all.b + column;
    if (kKind == TileKind::kScores) {
      args.start = all.start + column;
      args.column_scale = all.column_scale + column;
      if (all.max != nullptr) args.max = all.max + column;
    }
    for (size_t h = 0, row = 0; h < heights.pieces; ++h) {
      const size_t height = heights.Size(h);
      args.a = all.a + row * all.a_row;
      if constexpr (kKind == TileKind::kScores) {
        args.row_scale = all.row_scale + row;
        args.scores = all.scores + row * all.scores_stride + column;
      } else {
        args.sums = all.sums + row * all.sums_stride + column;
        if (all.scale != nullptr) {
          args.scale = all.scale + row;
          args.out = all.out + row * all.out_stride + column;
        }
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

#endif  // POZOR_KERNELS_ATTENTION_S8_TILE_INL_H_
