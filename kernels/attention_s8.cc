// int8 attention of one text and one head, block by block as in attention.cc: scores transposed,
// queries along the vector. Weights overwrite the scores that they come from, two keys a word.
#include "kernels/attention_s8.h"

#include "kernels/check.h"
#include "kernels/cpu.h"
#include "kernels/types.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_s8.cc"
#include "hwy/foreach_target.h"
#include "kernels/attention-inl.h"
#include "kernels/attention_s8-inl.h"
#include "kernels/attention_s8_tile-inl.h"
#include "kernels/simd-inl.h"
#include "kernels/softmax-inl.h"

#if HWY_ARCH_X86 || HWY_TARGET == HWY_STATIC_TARGET

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

// Keys whose weights are made and multiplied with V while they are in L1; even.
constexpr size_t kKeyChunk = 64;

// scores[j - begin][i] = q_i k_j for keys [begin, end); raises `max` by their maxima.
template <class Dots>
HWY_INLINE void S8Scores(const S8Text& text, const S8Block& block, size_t begin, size_t end,
                         float* max) {
  S8TileArgs tile;
  tile.a = text.k + (begin - text.begin) * text.k_stride;
  tile.a_row = text.k_stride;
  tile.a_step = 1;
  tile.b = block.query_words;
  tile.b_stride = block.width;
  tile.depth = text.k_stride;
  tile.start = block.start;
  tile.column_scale = block.query_scale;
  tile.row_scale = text.k_scale + (begin - text.begin);
  tile.scores = block.scores;
  tile.scores_stride = block.width;
  tile.max = max;
  switch (text.k_stride) {
    case 8:
      return MultiplyTilesS8<Dots, TileKind::kScores, 8>(tile, end - begin, block.width);
    case 16:
      return MultiplyTilesS8<Dots, TileKind::kScores, 16>(tile, end - begin, block.width);
    default:
      return MultiplyTilesS8<Dots, TileKind::kScores, 0>(tile, end - begin, block.width);
  }
}

// Scores, by score(begin, end, max), of keys [begin, end).
template <class Score>
HWY_INLINE void ScoreBlock(const AttentionArgs& args, const Block& block, size_t begin, size_t end,
                           bool special, bool first, const Score& score) {
  RaiseMaxima(block, first, [&]() HWY_ATTR {
    score(begin, end, special ? nullptr : block.next_max);
    if (special) AdjustSpecial(args, block, begin, end);
  });
}

// exp(score - max), 0 for what is hidden.
template <bool kHidden>
HWY_INLINE VF Weight(VF score, VF max) {
  const DF df;
  const VF e = ShortExp(df, hn::Sub(score, max));
  if constexpr (kHidden) return hn::IfThenZeroElse(hn::Le(score, hn::Set(df, kUnseen)), e);
  return e;
}

// Weights of kVectors columns: see below.
template <bool kHidden, bool kPack, size_t kVectors>
HWY_INLINE void WeightColumns(const S8Block& block, const float* HWY_RESTRICT value_weight,
                              size_t column, size_t begin, size_t end) {
  const DF df;
  const DI32 di;
  const size_t width = block.width;
  const VF round = hn::Set(df, 12582912.0f);  // leaves the integer in the low 16 bits
  VF max[kVectors], sum[kVectors];
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) {
    max[v] = hn::Load(df, block.max + column + v * kLanes);
    sum[v] = hn::Load(df, block.sum + column + v * kLanes);
  }
  float* row = block.scores + begin * width + column;
  int32_t* words = reinterpret_cast<int32_t*>(block.scores) + begin / 2 * width + column;
  for (size_t j = begin; j < end; j += 2, row += 2 * width, words += width) {
    const bool both = j + 1 < end;
    const VF weight0 = hn::Set(df, value_weight[j]);
    const VF weight1 = hn::Set(df, both ? value_weight[j + 1] : 0.0f);
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      const VF e0 = Weight<kHidden>(hn::Load(df, row + v * kLanes), max[v]);
      sum[v] = hn::Add(sum[v], e0);
      VF e1 = hn::Zero(df);
      if (both) {
        e1 = Weight<kHidden>(hn::Load(df, row + width + v * kLanes), max[v]);
        sum[v] = hn::Add(sum[v], e1);
      }
      if constexpr (kPack) {
        const VI p0 = hn::BitCast(di, hn::MulAdd(e0, weight0, round));
        const VI p1 = hn::BitCast(di, hn::MulAdd(e1, weight1, round));
        hn::Store(JoinHalves(p0, p1), di, words + v * kLanes);
      } else {
        hn::Store(e0, df, row + v * kLanes);
        if (both) hn::Store(e1, df, row + width + v * kLanes);
      }
    }
  }
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) hn::Store(sum[v], df, block.sum + column + v * kLanes);
}

// Score rows [begin, end), `begin` even, become exp(score - max), which are added to the running
// sums. With kPack they are stored as integer weights, two rows a word, from row begin / 2 on.
template <bool kHidden, bool kPack>
void WeighScores(const S8Block& block, const float* value_weight, size_t begin, size_t end) {
  constexpr size_t kStep = kTileVectors * kLanes;
  size_t i = 0;
  for (; i + kStep <= block.width; i += kStep) {
    WeightColumns<kHidden, kPack, kTileVectors>(block, value_weight, i, begin, end);
  }
  if constexpr (kTileMinVectors < kTileVectors) {
    const size_t left = (block.width - i) / kLanes;
    if (left == 3) WeightColumns<kHidden, kPack, 3>(block, value_weight, i, begin, end);
    if (left == 2) WeightColumns<kHidden, kPack, 2>(block, value_weight, i, begin, end);
    if (left == 1) WeightColumns<kHidden, kPack, 1>(block, value_weight, i, begin, end);
  }
}

template <bool kPack>
HWY_INLINE void WeighScoresOf(const S8Block& block, const float* value_weight, size_t begin,
                              size_t end, bool special) {
  if (special) {
    WeighScores<true, kPack>(block, value_weight, begin, end);
  } else {
    WeighScores<false, kPack>(block, value_weight, begin, end);
  }
}

// Score rows [begin, end) and the keys from `key` on that they belong to.
struct S8Chunk {
  size_t begin, end, key;
  bool first, last;  // of an integer sum
};

// sums (+)= P V. Of a text of one sum, the last chunk sends the context to args.out.
template <class Dots>
HWY_INLINE void AddS8Context(const AttentionArgs& args, const S8Text& text, const S8Block& block,
                             const S8Chunk& chunk, bool one_sum) {
  const DF df;
  S8TileArgs tile;
  tile.a = reinterpret_cast<const int32_t*>(block.scores) + chunk.begin / 2 * block.width;
  tile.a_row = 1;
  tile.a_step = block.width;
  tile.b = text.v + (chunk.key - text.begin) / 2 * args.head_stride;
  tile.b_stride = args.head_stride;
  tile.depth = DivCeil(chunk.end - chunk.begin, 2);
  tile.sums = block.sums;
  tile.sums_stride = args.head_stride;
  tile.accumulate = !chunk.first;
  const bool finish = chunk.last && one_sum, whole_vectors = args.head_dim == args.head_stride;
  float* out = args.out + block.query_begin * args.out_stride;
  if (finish) {
    const VF unit = hn::Set(df, *text.v_unit);
    for (size_t i = 0; i < block.width; i += kLanes) {
      hn::Store(hn::Div(unit, hn::Load(df, block.sum + i)), df, block.inverse + i);
    }
    tile.scale = block.inverse;
    tile.out = whole_vectors ? out : block.context;
    tile.out_stride = whole_vectors ? args.out_stride : args.head_stride;
  }
  switch (kTileUnroll > 1 ? args.head_stride : 0) {
    case 32:
      MultiplyTilesS8<Dots, TileKind::kContext, 32>(tile, block.queries, args.head_stride);
      break;
    case 64:
      MultiplyTilesS8<Dots, TileKind::kContext, 64>(tile, block.queries, args.head_stride);
      break;
    default:
      MultiplyTilesS8<Dots, TileKind::kContext, 0>(tile, block.queries, args.head_stride);
  }
  if (!finish || whole_vectors) return;
  for (size_t i = 0; i < block.queries; ++i) {
    MapRow(block.context + i * args.head_stride, out + i * args.out_stride, args.head_dim,
           [](VF v) HWY_ATTR { return v; });
  }
}

// context = context * scale + sums * unit, of one block of keys in a long text.
HWY_INLINE void FlushSums(const AttentionArgs& args, const S8Block& block, float unit, bool first) {
  const DF df;
  const DI32 di;
  for (size_t i = 0; i < block.queries; ++i) {
    float* context = block.context + i * args.head_stride;
    const int32_t* sums = block.sums + i * args.head_stride;
    const VF scale = hn::Set(df, first ? 0.0f : block.scale[i]);
    for (size_t c = 0; c < args.head_stride; c += kLanes) {
      const VF before = first ? hn::Zero(df) : hn::Mul(hn::Load(df, context + c), scale);
      const VF sum = hn::ConvertTo(df, hn::Load(di, sums + c));
      hn::Store(hn::MulAdd(sum, hn::Set(df, unit), before), df, context + c);
    }
  }
}

HWY_INLINE void StoreContext(const AttentionArgs& args, const S8Block& block) {
  const DF df;
  InvertSums(block);
  for (size_t i = 0; i < block.queries; ++i) {
    const VF inverse = hn::Set(df, block.inverse[i]);
    float* out = args.out + (block.query_begin + i) * args.out_stride;
    MapRow(block.context + i * args.head_stride, out, args.head_dim,
           [inverse](VF v) HWY_ATTR { return hn::Mul(v, inverse); });
  }
}

// A block's queries and the keys that any of them sees, from an even key on.
template <class Dots>
HWY_INLINE void StartBlock(const AttentionArgs& args, const S8Text& text, size_t query,
                           S8Block* block) {
  block->Start(args, query, args.query_end);
  block->key_begin = block->key_begin / 2 * 2;
  QuantizeQueries<Dots>(args, text, *block);
}

template <class Dots>
void S8Queries(const AttentionArgs& args, float* scratch) {
  const bool special = IsSpecial(args), one_sum = args.tokens <= kExactKeys;
  if (args.query_begin >= args.query_end) return;
  S8Text text;
  S8Block block;
  PlaceS8<Dots>(args, scratch, &text, &block);
  QuantizeText<Dots>(args, &text);
  const auto score = [&](size_t begin, size_t end, float* max)
                         HWY_ATTR { S8Scores<Dots>(text, block, begin, end, max); };
  for (size_t q = args.query_begin; q < args.query_end; q += kQueryBlock) {
    StartBlock<Dots>(args, text, q, &block);
    ForEachKeyBlock(args, block, kExactKeys, [&](size_t begin, size_t end, bool first) HWY_ATTR {
      ScoreBlock(args, block, begin, end, special, first, score);
      const float* value_weight = text.v_weight + (begin - text.begin);
      for (size_t j = begin; j < end; j += kKeyChunk) {
        S8Chunk chunk;
        chunk.begin = j - begin;
        chunk.end = HWY_MIN(end - begin, chunk.begin + kKeyChunk);
        chunk.key = j;
        chunk.first = j == begin;
        chunk.last = begin + chunk.end == end;
        WeighScoresOf<true>(block, value_weight, chunk.begin, chunk.end, special);
        AddS8Context<Dots>(args, text, block, chunk, one_sum);
      }
      if (!one_sum) {
        FlushSums(args, block, text.v_unit[(begin - text.begin) / kExactKeys], first);
      }
    });
    if (!one_sum) StoreContext(args, block);
  }
}

// Rows of the block in `weights`: exp(score - max) / sum with the maxima and sums of the whole row.
// In a text of one sum block.scores still has all exponentials.
template <class Dots>
void StoreS8Weights(const AttentionArgs& args, const S8Text& text, const S8Block& block,
                    float* weights, size_t stride) {
  const bool special = IsSpecial(args), kept = args.tokens <= kExactKeys;
  ClearOtherKeys(args, block, weights, stride);
  ForEachKeyBlock(args, block, kExactKeys, [&](size_t begin, size_t end, bool) HWY_ATTR {
    if (!kept) {
      S8Scores<Dots>(text, block, begin, end, nullptr);
      if (special) AdjustSpecial(args, block, begin, end);
      WeighScoresOf<false>(block, text.v_weight, 0, end - begin, special);
    }
    StoreWeightRows(block, begin, end, weights, stride);
  });
}

template <class Dots>
void S8Rows(const AttentionArgs& args, float* scratch, float* weights, size_t stride) {
  const bool special = IsSpecial(args);
  if (args.query_begin >= args.query_end) return;
  S8Text text;
  S8Block block;
  PlaceS8<Dots>(args, scratch, &text, &block);
  QuantizeText<Dots>(args, &text);
  const auto score = [&](size_t begin, size_t end, float* max)
                         HWY_ATTR { S8Scores<Dots>(text, block, begin, end, max); };
  for (size_t q = args.query_begin; q < args.query_end; q += kQueryBlock) {
    StartBlock<Dots>(args, text, q, &block);
    ForEachKeyBlock(args, block, kExactKeys, [&](size_t begin, size_t end, bool first) HWY_ATTR {
      ScoreBlock(args, block, begin, end, special, first, score);
      WeighScoresOf<false>(block, text.v_weight, 0, end - begin, special);
    });
    InvertSums(block);
    StoreS8Weights<Dots>(args, text, block, weights + (q - args.query_begin) * stride, stride);
  }
}

}  // namespace

void S8QueriesByPairs(const AttentionArgs& args, float* scratch) {
  S8Queries<PairDots>(args, scratch);
}
void S8RowsByPairs(const AttentionArgs& args, float* scratch, float* weights, size_t stride) {
  S8Rows<PairDots>(args, scratch, weights, stride);
}

#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
void S8QueriesByVnni(const AttentionArgs& args, float* scratch) {
  S8Queries<VnniDots>(args, scratch);
}
void S8RowsByVnni(const AttentionArgs& args, float* scratch, float* weights, size_t stride) {
  S8Rows<VnniDots>(args, scratch, weights, stride);
}
#endif

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_ARCH_X86 || HWY_TARGET == HWY_STATIC_TARGET

#if HWY_ONCE
namespace pozor {
namespace {

struct S8Functions {
  void (*queries)(const AttentionArgs& args, float* scratch);
  void (*rows)(const AttentionArgs& args, float* scratch, float* weights, size_t stride);
};

#if HWY_ARCH_X86

HWY_EXPORT(S8QueriesByPairs);
HWY_EXPORT(S8RowsByPairs);

S8Functions ChooseFunctions() {
  const CpuTier tier = ActiveCpuTier();
#if HWY_TARGETS & HWY_AVX3
  if (tier >= CpuTier::kAvx512Vnni) return {&N_AVX3::S8QueriesByVnni, &N_AVX3::S8RowsByVnni};
#endif
#if HWY_TARGETS & HWY_AVX2
  if (tier == CpuTier::kAvxVnni) return {&N_AVX2::S8QueriesByVnni, &N_AVX2::S8RowsByVnni};
#endif
  return {HWY_DYNAMIC_POINTER(S8QueriesByPairs), HWY_DYNAMIC_POINTER(S8RowsByPairs)};
}

#else

S8Functions ChooseFunctions() {
  return {&HWY_STATIC_DISPATCH(S8QueriesByPairs), &HWY_STATIC_DISPATCH(S8RowsByPairs)};
}

#endif

void CheckArgs([[maybe_unused]] const AttentionArgs& args) {
  POZOR_DCHECK(args.head_stride == RoundUp(args.head_dim, kPanelColumns));
  POZOR_DCHECK(args.query_begin <= args.query_end && args.query_end <= args.tokens);
  POZOR_CHECK(args.global_count == 0);
}

}  // namespace

size_t AttentionS8ScratchFloats(size_t tokens, size_t head_dim) {
  const size_t head = RoundUp(head_dim, kPanelColumns);
  const size_t block_keys = HWY_MIN(tokens, kExactKeys);
  const size_t text = tokens * head / 2 + (tokens + 1) / 2 * head + 4 * tokens + tokens / 16;
  const size_t block = kQueryBlock * (3 * head + block_keys + 7) + 2 * (block_keys + kQueryBlock);
  return text + block + 20 * 16;  // every part is rounded up
}

void AttentionS8(const AttentionArgs& args, float* scratch) {
  CheckArgs(args);
  ChooseFunctions().queries(args, scratch);
}

void AttentionS8Weights(const AttentionArgs& args, float* scratch, float* weights, size_t stride) {
  CheckArgs(args);
  ChooseFunctions().rows(args, scratch, weights, stride);
}

}  // namespace pozor
#endif  // HWY_ONCE
