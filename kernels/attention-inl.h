// A block of queries of one text and head: its scratch, its transposed queries, its scores.
#if defined(POZOR_KERNELS_ATTENTION_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_ATTENTION_INL_H_
#undef POZOR_KERNELS_ATTENTION_INL_H_
#else
#define POZOR_KERNELS_ATTENTION_INL_H_
#endif

#include "kernels/attention.h"
#include "kernels/attention_tile-inl.h"
#include "kernels/math-inl.h"
#include "kernels/rows-inl.h"
#include "kernels/simd-inl.h"
#include "kernels/types.h"

#if !HWY_TARGET_IS_SVE

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Score of a key that a query does not see: finite, so that nothing becomes NaN.
inline constexpr float kUnseen = -3.40282347e38f;

// Arrays over queries have kQueryBlock elements.
struct Block {
  float* q;        // [head_dim rounded up to 4, width]: the block's queries, transposed
  float* scores;   // [kTwoPassKeys, width], then exponentials
  float* context;  // [kQueryBlock, head_stride]: sum of exponentials times V
  float* max;
  float* next_max;
  float* scale;    // exp(max - next_max)
  float* sum;      // of exponentials
  float* inverse;  // 1 / sum
  float* bias;     // [kTwoPassKeys + kQueryBlock]: relative_bias reversed
  int32_t* index;  // [kTwoPassKeys + kQueryBlock]: position_index from the last key on

  size_t query_begin;
  size_t queries;
  size_t width;      // queries rounded up to 16
  size_t key_begin;  // keys that any of its queries sees
  size_t key_end;

  Block() = default;
  Block(const AttentionArgs& args, float* scratch) {
    q = scratch;
    scores = q + kQueryBlock * args.head_stride;
    context = scores + kQueryBlock * HWY_MIN(args.tokens, kTwoPassKeys);
    max = context + kQueryBlock * args.head_stride;
    next_max = max + kQueryBlock;
    scale = next_max + kQueryBlock;
    sum = scale + kQueryBlock;
    inverse = sum + kQueryBlock;
    bias = inverse + kQueryBlock;
    index = reinterpret_cast<int32_t*>(bias + kTwoPassKeys + kQueryBlock);
  }

  void Start(const AttentionArgs& args, size_t first, size_t end) {
    query_begin = first;
    queries = HWY_MIN(end - first, kQueryBlock);
    width = RoundUp(queries, 16);
    const size_t last = first + queries - 1;
    key_begin = first > args.window ? first - args.window : 0;
    key_end = args.tokens - last - 1 > args.window ? last + args.window + 1 : args.tokens;
    if (args.causal) key_end = last + 1;
  }
};

// Four values each of Lanes(d) rows: lane 4b + j of the result is value j of the b-th argument.
template <class D>
HWY_INLINE hn::Vec<D> LoadFours(D d, const float* row0, const float* row4, const float* row8,
                                const float* row12) {
  const hn::Half<D> half;
  if constexpr (HWY_MAX_LANES_D(D) == 16) {
    return hn::Combine(d, LoadFours(half, row8, row12, nullptr, nullptr),
                       LoadFours(half, row0, row4, nullptr, nullptr));
  } else if constexpr (HWY_MAX_LANES_D(D) == 8) {
    return hn::Combine(d, hn::LoadU(half, row4), hn::LoadU(half, row0));
  } else {
    return hn::LoadU(d, row0);
  }
}

// Column c of kLanes rows: lane l of column[c] is rows[l * stride + c].
struct FourColumns {
  VF column[4];
};

HWY_INLINE FourColumns LoadFourColumns(const float* rows, size_t stride) {
  const DF df;
  const hn::RepartitionToWide<DF> wide;
  const size_t four = 4 * stride;
  const float* row1 = rows + stride;
  const float* row2 = row1 + stride;
  const float* row3 = row2 + stride;
  const VF v0 = LoadFours(df, rows, rows + four, rows + 2 * four, rows + 3 * four);
  const VF v1 = LoadFours(df, row1, row1 + four, row1 + 2 * four, row1 + 3 * four);
  const VF v2 = LoadFours(df, row2, row2 + four, row2 + 2 * four, row2 + 3 * four);
  const VF v3 = LoadFours(df, row3, row3 + four, row3 + 2 * four, row3 + 3 * four);
  const auto low01 = hn::BitCast(wide, hn::InterleaveLower(df, v0, v1));
  const auto low23 = hn::BitCast(wide, hn::InterleaveLower(df, v2, v3));
  const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(df, v0, v1));
  const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(df, v2, v3));
  return {{hn::BitCast(df, hn::InterleaveLower(wide, low01, low23)),
           hn::BitCast(df, hn::InterleaveUpper(wide, low01, low23)),
           hn::BitCast(df, hn::InterleaveLower(wide, high01, high23)),
           hn::BitCast(df, hn::InterleaveUpper(wide, high01, high23))}};
}

// to[d][0..kLanes) = row[0..kLanes)[d] for d < head_dim rounded up to 4.
HWY_INLINE void TransposeRows(const float* rows, size_t stride, size_t head_dim, float* to,
                              size_t width) {
  const DF df;
  for (size_t d = 0; d < head_dim; d += 4, to += 4 * width) {
    const FourColumns four = LoadFourColumns(rows + d, stride);
    HWY_UNROLL(4)
    for (size_t c = 0; c < 4; ++c) hn::Store(four.column[c], df, to + c * width);
  }
}

// block.q[d][i] = q[i][d]; columns past the last query repeat it.
HWY_INLINE void TransposeQueries(const AttentionArgs& args, const Block& block) {
  const DF df;
  const size_t stride = args.head_stride;
  for (size_t i = 0; i < block.width; i += 16) {
    const float* rows = args.q + (block.query_begin + i) * stride;
    if (i + 16 > block.queries) {
      const size_t last = block.queries - 1 - i;
      float* padded = block.context;  // not in use yet
      for (size_t r = 0; r < 16; ++r) {
        const float* row = rows + HWY_MIN(r, last) * stride;
        for (size_t d = 0; d < stride; d += kLanes) {
          hn::Store(hn::Load(df, row + d), df, padded + r * stride + d);
        }
      }
      rows = padded;
    }
    for (size_t r = 0; r < 16; r += kLanes) {
      TransposeRows(rows + r * stride, stride, args.head_dim, block.q + i + r, block.width);
    }
  }
}

// scores[j - key_begin][i] = q_i k_j for keys [key_begin, key_end); raises `max` by their maxima.
HWY_INLINE void Scores(const AttentionArgs& args, const Block& block, size_t key_begin,
                       size_t key_end, float* max) {
  TileArgs tile;
  tile.a = args.k + key_begin * args.head_stride;
  tile.a_row = args.head_stride;
  tile.a_step = 1;
  tile.b = block.q;
  tile.b_stride = block.width;
  tile.depth = args.head_dim;
  tile.c = block.scores;
  tile.c_stride = block.width;
  tile.max = max;
  MultiplyTilesOfHead<TileKind::kScores>(tile, key_end - key_begin, block.width, args.head_stride);
}

// block.bias[i] = relative_bias[key_end - 1 - query_begin - i], 0 where that is not defined: then
// column l finds its bias for key j at block.bias[key_end - 1 - j + l].
HWY_INLINE void ReverseBias(const AttentionArgs& args, const Block& block, size_t key_begin,
                            size_t key_end) {
  const auto tokens = static_cast<ptrdiff_t>(args.tokens);
  auto distance = static_cast<ptrdiff_t>(key_end - 1) - static_cast<ptrdiff_t>(block.query_begin);
  const size_t count = key_end - key_begin + block.width - 1;
  for (size_t i = 0; i < count; ++i, --distance) {
    const bool defined = distance < tokens && -distance < tokens;
    block.bias[i] = defined ? args.relative_bias[distance] : 0.0f;
  }
}

// block.index[i] = position_index[query_begin + i - (key_end - 1)], the nearest defined one at the
// ends: then column l finds its index for key j at block.index[key_end - 1 - j + l].
HWY_INLINE void CopyPositionIndex(const AttentionArgs& args, const Block& block, size_t key_begin,
                                  size_t key_end) {
  const auto most = static_cast<ptrdiff_t>(args.tokens) - 1;
  auto distance = static_cast<ptrdiff_t>(block.query_begin) - static_cast<ptrdiff_t>(key_end - 1);
  const size_t count = key_end - key_begin + block.width - 1;
  for (size_t i = 0; i < count; ++i, ++distance) {
    block.index[i] = args.position_index[HWY_MIN(HWY_MAX(distance, -most), most)];
  }
}

// Adds the scores of content against position.
HWY_INLINE void AddPositions(const AttentionArgs& args, const Block& block, size_t key_begin,
                             size_t key_end) {
  const DF df;
  const hn::RebindToSigned<DF> di;
  CopyPositionIndex(args, block, key_begin, key_end);
  const auto stride = hn::Set(di, static_cast<int32_t>(args.position_stride));
  const auto last = hn::Set(di, static_cast<int32_t>(block.queries - 1));
  const bool by_query = args.query_positions != nullptr, by_key = args.key_positions != nullptr;
  const float* queries =
      by_query ? args.query_positions + block.query_begin * args.position_stride : nullptr;
  for (size_t j = key_begin; j < key_end; ++j) {
    float* row = block.scores + (j - key_begin) * block.width;
    const int32_t* index = block.index + (key_end - 1 - j);
    const float* keys = by_key ? args.key_positions + j * args.position_stride : nullptr;
    for (size_t i = 0; i < block.width; i += kLanes) {
      const auto at = hn::LoadU(di, index + i);
      VF score = hn::Load(df, row + i);
      if (by_query) {
        const auto column = hn::Min(hn::Iota(di, static_cast<int32_t>(i)), last);
        const auto offset = hn::Add(hn::Mul(column, stride), at);
        score = hn::Add(score, hn::GatherIndex(df, queries, offset));
      }
      if (by_key) score = hn::Add(score, hn::GatherIndex(df, keys, at));
      hn::Store(score, df, row + i);
    }
  }
}

// Hides global keys [begin, end) from the queries that see them through their window; raises `max`
// by what is left.
HWY_INLINE void HideWindow(const AttentionArgs& args, const Block& block, size_t begin, size_t end,
                           float* max) {
  const DF df;
  const auto window = static_cast<ptrdiff_t>(HWY_MIN(args.window, args.tokens));
  for (size_t g = begin; g < end; ++g) {
    const ptrdiff_t place = args.global_keys[g] - static_cast<ptrdiff_t>(block.query_begin);
    const VF first = hn::Set(df, static_cast<float>(place - window));
    const VF last = hn::Set(df, static_cast<float>(place + window));
    float* row = block.scores + (g - begin) * block.width;
    for (size_t i = 0; i < block.width; i += kLanes) {
      const VF column = hn::Iota(df, static_cast<float>(i));
      const auto hidden = hn::And(hn::Ge(column, first), hn::Le(column, last));
      const VF score = hn::IfThenElse(hidden, hn::Set(df, kUnseen), hn::Load(df, row + i));
      hn::Store(score, df, row + i);
      hn::Store(hn::Max(hn::Load(df, max + i), score), df, max + i);
    }
  }
}

// Columns [first, last] of the block see key j.
struct SeenColumns {
  float first, last;  // small integers, exact as floats

  SeenColumns(const AttentionArgs& args, const Block& block, size_t j) {
    const size_t window = HWY_MIN(args.window, args.tokens);
    const size_t earliest = block.query_begin + (args.causal ? 0 : window);
    first = j > earliest ? static_cast<float>(j - earliest) : 0.0f;
    last = j + window < block.query_begin
               ? -1.0f
               : static_cast<float>(HWY_MIN(j + window - block.query_begin, block.width));
  }
};

// Adds the bias and hides what a query does not see; raises `max` by what is left.
HWY_INLINE void AdjustScores(const AttentionArgs& args, const Block& block, size_t key_begin,
                             size_t key_end, float* max) {
  const DF df;
  const bool biased = args.relative_bias != nullptr;
  if (biased) ReverseBias(args, block, key_begin, key_end);
  for (size_t j = key_begin; j < key_end; ++j) {
    const SeenColumns seen(args, block, j);
    float* row = block.scores + (j - key_begin) * block.width;
    const float* bias = block.bias + (key_end - 1 - j);
    for (size_t i = 0; i < block.width; i += kLanes) {
      VF score = hn::Load(df, row + i);
      if (biased) score = hn::Add(score, hn::LoadU(df, bias + i));
      const VF column = hn::Iota(df, static_cast<float>(i));
      const auto visible =
          hn::And(hn::Ge(column, hn::Set(df, seen.first)), hn::Le(column, hn::Set(df, seen.last)));
      score = hn::IfThenElse(visible, score, hn::Set(df, kUnseen));
      hn::Store(score, df, row + i);
      hn::Store(hn::Max(hn::Load(df, max + i), score), df, max + i);
    }
  }
}

// True if scores are more than products: positions count, or keys may be hidden.
HWY_INLINE bool IsSpecial(const AttentionArgs& args) {
  return args.causal || args.relative_bias != nullptr || args.position_index != nullptr ||
         args.window < args.tokens;
}

// Adds what positions say and hides what a query does not see; raises block.next_max.
HWY_INLINE void AdjustSpecial(const AttentionArgs& args, const Block& block, size_t begin,
                              size_t end) {
  if (args.position_index != nullptr) AddPositions(args, block, begin, end);
  AdjustScores(args, block, begin, end, block.next_max);
}

// Calls score(), which fills block.scores and raises block.next_max from the maxima so far; the
// sums that were accumulated under smaller ones are scaled down, by factors left in block.scale.
template <class Score>
HWY_INLINE void RaiseMaxima(const Block& block, bool first, const Score& score) {
  const DF df;
  for (size_t i = 0; i < block.width; i += kLanes) {
    hn::Store(first ? hn::Set(df, kUnseen) : hn::Load(df, block.max + i), df, block.next_max + i);
  }
  score();
  for (size_t i = 0; i < block.width; i += kLanes) {
    const VF next = hn::Load(df, block.next_max + i);
    if (first) {
      hn::Store(hn::Zero(df), df, block.sum + i);
    } else {
      const VF scale = Exp(df, hn::Sub(hn::Load(df, block.max + i), next));
      hn::Store(hn::Mul(hn::Load(df, block.sum + i), scale), df, block.sum + i);
      hn::Store(scale, df, block.scale + i);
    }
    hn::Store(next, df, block.max + i);
  }
}

HWY_INLINE void InvertSums(const Block& block) {
  const DF df;
  for (size_t i = 0; i < block.width; i += kLanes) {
    const VF inverse = hn::Div(hn::Set(df, 1.0f), hn::Load(df, block.sum + i));
    hn::Store(inverse, df, block.inverse + i);
  }
}

// weights[i][j] = scores[j][i] / sum_i for some queries and 16 keys: whole cache lines.
HWY_INLINE void StoreWeightsOf16Keys(const Block& block, size_t first, size_t end,
                                     const float* scores, float* weights, size_t stride) {
  const DF df;
  for (size_t i = first; i < end; i += 4) {
    const size_t rows = HWY_MIN(end - i, size_t{4});
    for (size_t j = 0; j < 16; j += kLanes) {
      const FourColumns four = LoadFourColumns(scores + j * block.width + i, block.width);
      for (size_t c = 0; c < rows; ++c) {
        const VF inverse = hn::Set(df, block.inverse[i + c]);
        hn::StoreU(hn::Mul(four.column[c], inverse), df, weights + (i + c) * stride + j);
      }
    }
  }
}

// weights[i][begin + j] = scores[j][i] / sum_i: exponentials, transposed back, for keys
// [begin, end). 16 queries at once share a cache line of scores.
HWY_INLINE void StoreWeightRows(const Block& block, size_t begin, size_t end, float* weights,
                                size_t stride) {
  for (size_t i = 0; i < block.queries; i += 16) {
    const size_t last = HWY_MIN(i + 16, block.queries);
    size_t j = begin;
    for (; j + 16 <= end; j += 16) {
      StoreWeightsOf16Keys(block, i, last, block.scores + (j - begin) * block.width, weights + j,
                           stride);
    }
    for (; j < end; ++j) {
      const float* row = block.scores + (j - begin) * block.width;
      for (size_t q = i; q < last; ++q) weights[q * stride + j] = row[q] * block.inverse[q];
    }
  }
}

// Zeros for keys that no query of the block sees.
HWY_INLINE void ClearOtherKeys(const AttentionArgs& args, const Block& block, float* weights,
                               size_t stride) {
  const DF df;
  const auto zero = [df](VF) HWY_ATTR { return hn::Zero(df); };
  for (size_t i = 0; i < block.queries; ++i) {
    float* row = weights + i * stride;
    MapRow(row, row, block.key_begin, zero);
    MapRow(row + block.key_end, row + block.key_end, args.tokens - block.key_end, zero);
  }
}

// Calls visit(begin, end, first) for the pieces of the block's keys that are scored at once: all of
// them in a short text, else blocks of `block_keys` counted from key 0.
template <class Visit>
HWY_INLINE void ForEachKeyBlock(const AttentionArgs& args, const Block& block, size_t block_keys,
                                const Visit& visit) {
  if (args.tokens <= block_keys) return visit(block.key_begin, block.key_end, true);
  size_t begin = block.key_begin;
  while (begin < block.key_end) {
    const size_t end = HWY_MIN(begin / block_keys * block_keys + block_keys, block.key_end);
    visit(begin, end, begin == block.key_begin);
    begin = end;
  }
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // !HWY_TARGET_IS_SVE

#endif  // POZOR_KERNELS_ATTENTION_INL_H_
