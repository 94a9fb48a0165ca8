// Attention of one text and one head by query blocks of 64.
//
// Scores are held transposed, [keys, queries], queries along the vector: maxima, exponentials and
// sums then need no horizontal step, the number of keys is exact, and only the last queries of a
// block are padded to 16 columns (with copies of a real one, never stored).
#include "kernels/attention.h"

#include "kernels/check.h"
#include "kernels/types.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention.cc"
#include "hwy/foreach_target.h"
#include "kernels/attention-inl.h"
#include "kernels/attention_tile-inl.h"
#include "kernels/simd-inl.h"
#include "kernels/softmax-inl.h"

// 4 x 128-bit NEON has the flops of 2 x 256-bit SVE, and scalable vectors cannot live in arrays:
// every Arm machine uses the NEON code of the baseline.
#if HWY_ARCH_X86 || HWY_TARGET == HWY_STATIC_TARGET

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

// Keys whose exponentials are taken and multiplied with V while they are in L1.
constexpr size_t kKeyChunk = 64;

// Exponentials of kVectors columns: see below.
template <bool kHidden, size_t kVectors>
HWY_INLINE void ExponentialColumns(const Block& block, size_t column, size_t begin, size_t end) {
  const DF df;
  const size_t width = block.width;
  VF max[kVectors], sum[kVectors];
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) {
    max[v] = hn::Load(df, block.max + column + v * kLanes);
    sum[v] = hn::Load(df, block.sum + column + v * kLanes);
  }
  float* HWY_RESTRICT row = block.scores + begin * width + column;
  for (size_t j = begin; j < end; ++j, row += width) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      const VF score = hn::Load(df, row + v * kLanes);
      VF e = Exp(df, hn::Sub(score, max[v]));
      if constexpr (kHidden) e = hn::IfThenZeroElse(hn::Le(score, hn::Set(df, kUnseen)), e);
      sum[v] = hn::Add(sum[v], e);
      hn::Store(e, df, row + v * kLanes);
    }
  }
  HWY_UNROLL(4)
  for (size_t v = 0; v < kVectors; ++v) {
    hn::Store(sum[v], df, block.sum + column + v * kLanes);
  }
}

// scores = exp(scores - max) for rows [begin, end); adds them to the running sums.
template <bool kHidden>
void Exponentials(const Block& block, size_t begin, size_t end) {
  constexpr size_t kStep = kTileVectors * kLanes;
  size_t i = 0;
  for (; i + kStep <= block.width; i += kStep) {
    ExponentialColumns<kHidden, kTileVectors>(block, i, begin, end);
  }
  if constexpr (kTileMinVectors < kTileVectors) {
    const size_t vectors = (block.width - i) / kLanes;
    if (vectors == 3) ExponentialColumns<kHidden, 3>(block, i, begin, end);
    if (vectors == 2) ExponentialColumns<kHidden, 2>(block, i, begin, end);
    if (vectors == 1) ExponentialColumns<kHidden, 1>(block, i, begin, end);
  }
}

// Score rows [begin, end) and the keys from `key` on that they belong to.
struct Chunk {
  size_t begin, end, key;
  bool first, last;  // of all that the block sees
};

// context (+)= P V; the last chunk sends the finished rows, over their sums, to args.out.
HWY_INLINE void AddContext(const AttentionArgs& args, const Block& block, const Chunk& chunk) {
  TileArgs tile;
  tile.a = block.scores + chunk.begin * block.width;
  tile.a_row = 1;
  tile.a_step = block.width;
  tile.b = args.v + chunk.key * args.head_stride;
  tile.b_stride = args.head_stride;
  tile.depth = chunk.end - chunk.begin;
  tile.c = block.context;
  tile.c_stride = args.head_stride;
  tile.accumulate = !chunk.first;
  const bool whole_vectors = args.head_dim == args.head_stride;
  float* out = args.out + block.query_begin * args.out_stride;
  if (chunk.last) {
    InvertSums(block);
    tile.scale = block.inverse;
    tile.out = whole_vectors ? out : block.context;
    tile.out_stride = whole_vectors ? args.out_stride : args.head_stride;
  }
  MultiplyTilesOfHead<TileKind::kContext>(tile, block.queries, args.head_stride, args.head_stride);
  if (chunk.last && !whole_vectors) {
    for (size_t i = 0; i < block.queries; ++i) {
      MapRow(block.context + i * args.head_stride, out + i * args.out_stride, args.head_dim,
             [](VF v) HWY_ATTR { return v; });
    }
  }
}

// What happens to scores between the product and the exponentials.
enum class Adjust {
  kNothing,
  kSpecial,  // biases are added and keys that a query does not see are hidden
  kGlobal,   // global keys: hidden from those who see them through their window
};

HWY_INLINE void AdjustBlock(const AttentionArgs& args, const Block& block, size_t begin, size_t end,
                            Adjust adjust) {
  if (adjust == Adjust::kGlobal) return HideWindow(args, block, begin, end, block.next_max);
  AdjustSpecial(args, block, begin, end);
}

HWY_INLINE void ScoreBlock(const AttentionArgs& args, const Block& block, size_t begin, size_t end,
                           Adjust adjust, bool first) {
  const bool special = adjust != Adjust::kNothing;
  RaiseMaxima(block, first, [&]() HWY_ATTR {
    Scores(args, block, begin, end, special ? nullptr : block.next_max);
    if (special) AdjustBlock(args, block, begin, end, adjust);
  });
}

// context rows *= the factors that RaiseMaxima left.
HWY_INLINE void RescaleContext(const AttentionArgs& args, const Block& block) {
  const DF df;
  for (size_t i = 0; i < block.queries; ++i) {
    float* row = block.context + i * args.head_stride;
    const float scale = block.scale[i];
    if (scale == 1.0f) continue;
    for (size_t c = 0; c < args.head_stride; c += kLanes) {
      hn::Store(hn::Mul(hn::Load(df, row + c), hn::Set(df, scale)), df, row + c);
    }
  }
}

Adjust AdjustOf(const AttentionArgs& args) {
  return IsSpecial(args) ? Adjust::kSpecial : Adjust::kNothing;
}

// The arguments with the global keys in place of the text's own.
AttentionArgs GlobalKeys(const AttentionArgs& args) {
  AttentionArgs global = args;
  global.k = args.global_k;
  global.v = args.global_v;
  return global;
}

// Calls visit(begin, end) for pieces of the global keys.
template <class Visit>
HWY_INLINE void ForEachGlobalBlock(const AttentionArgs& args, const Visit& visit) {
  for (size_t begin = 0; begin < args.global_count; begin += kTwoPassKeys) {
    visit(begin, HWY_MIN(begin + kTwoPassKeys, args.global_count));
  }
}

HWY_INLINE void ExponentialsOf(const Block& block, size_t begin, size_t end, Adjust adjust) {
  if (adjust != Adjust::kNothing) {
    Exponentials<true>(block, begin, end);
  } else {
    Exponentials<false>(block, begin, end);
  }
}

// Takes in keys [begin, end): the first ones of the block's queries, the last ones, or some
// between.
HWY_INLINE void AddKeys(const AttentionArgs& args, const Block& block, size_t begin, size_t end,
                        Adjust adjust, bool first, bool last) {
  ScoreBlock(args, block, begin, end, adjust, first);
  if (!first) RescaleContext(args, block);
  for (size_t j = begin; j < end; j += kKeyChunk) {
    Chunk chunk;
    chunk.begin = j - begin;
    chunk.end = HWY_MIN(end - begin, chunk.begin + kKeyChunk);
    chunk.key = j;
    chunk.first = first && j == begin;
    chunk.last = last && begin + chunk.end == end;
    ExponentialsOf(block, chunk.begin, chunk.end, adjust);
    AddContext(args, block, chunk);
  }
}

void AttentionQueries(const AttentionArgs& args, float* scratch) {
  const Adjust adjust = AdjustOf(args);
  const bool any_global = args.global_count > 0;
  Block block(args, scratch);
  for (size_t q = args.query_begin; q < args.query_end; q += kQueryBlock) {
    block.Start(args, q, args.query_end);
    TransposeQueries(args, block);
    ForEachGlobalBlock(args, [&](size_t begin, size_t end) HWY_ATTR {
      AddKeys(GlobalKeys(args), block, begin, end, Adjust::kGlobal, begin == 0, false);
    });
    ForEachKeyBlock(args, block, kTwoPassKeys, [&](size_t begin, size_t end, bool first) HWY_ATTR {
      AddKeys(args, block, begin, end, adjust, first && !any_global, end == block.key_end);
    });
  }
}

// exp(score - max) of keys [begin, end), with the maxima of whole rows.
HWY_INLINE void ScoreAgain(const AttentionArgs& args, const Block& block, size_t begin, size_t end,
                           Adjust adjust) {
  Scores(args, block, begin, end, nullptr);
  if (adjust != Adjust::kNothing) AdjustBlock(args, block, begin, end, adjust);
  ExponentialsOf(block, 0, end - begin, adjust);
}

// What queries give to global keys outside their window.
HWY_INLINE void AddGlobalWeights(const AttentionArgs& args, const Block& block, float* weights,
                                 size_t stride) {
  ForEachGlobalBlock(args, [&](size_t begin, size_t end) HWY_ATTR {
    ScoreAgain(GlobalKeys(args), block, begin, end, Adjust::kGlobal);
    for (size_t g = begin; g < end; ++g) {
      const float* row = block.scores + (g - begin) * block.width;
      float* column = weights + args.global_keys[g];
      for (size_t i = 0; i < block.queries; ++i) column[i * stride] += row[i] * block.inverse[i];
    }
  });
}

// Rows of the block in `weights`. In a short text block.scores still has all exponentials.
void StoreWeights(const AttentionArgs& args, const Block& block, Adjust adjust, float* weights,
                  size_t stride) {
  const bool kept = args.tokens <= kTwoPassKeys;
  ClearOtherKeys(args, block, weights, stride);
  ForEachKeyBlock(args, block, kTwoPassKeys, [&](size_t begin, size_t end, bool) HWY_ATTR {
    if (!kept) ScoreAgain(args, block, begin, end, adjust);
    StoreWeightRows(block, begin, end, weights, stride);
  });
  AddGlobalWeights(args, block, weights, stride);
}

void AttentionRows(const AttentionArgs& args, float* scratch, float* weights, size_t stride) {
  const Adjust adjust = AdjustOf(args);
  Block block(args, scratch);
  for (size_t q = args.query_begin; q < args.query_end; q += kQueryBlock) {
    block.Start(args, q, args.query_end);
    TransposeQueries(args, block);
    ForEachGlobalBlock(args, [&](size_t begin, size_t end) HWY_ATTR {
      ScoreBlock(GlobalKeys(args), block, begin, end, Adjust::kGlobal, begin == 0);
      ExponentialsOf(block, 0, end - begin, Adjust::kGlobal);
    });
    ForEachKeyBlock(args, block, kTwoPassKeys, [&](size_t begin, size_t end, bool first) HWY_ATTR {
      ScoreBlock(args, block, begin, end, adjust, first && args.global_count == 0);
      ExponentialsOf(block, 0, end - begin, adjust);
    });
    InvertSums(block);
    StoreWeights(args, block, adjust, weights + (q - args.query_begin) * stride, stride);
  }
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_ARCH_X86 || HWY_TARGET == HWY_STATIC_TARGET

#if HWY_ONCE
namespace pozor {
namespace {

void CheckArgs([[maybe_unused]] const AttentionArgs& args) {
  POZOR_DCHECK(args.head_stride == RoundUp(args.head_dim, kPanelColumns));
  POZOR_DCHECK(args.query_begin <= args.query_end && args.query_end <= args.tokens);
}

}  // namespace

size_t AttentionScratchFloats(size_t tokens, size_t head_dim) {
  const size_t head_stride = RoundUp(head_dim, kPanelColumns);
  const size_t rows = 2 * head_stride + HWY_MIN(tokens, kTwoPassKeys) + 5;
  return rows * kQueryBlock + 2 * (kTwoPassKeys + kQueryBlock);
}

#if HWY_ARCH_ARM

void Attention(const AttentionArgs& args, float* scratch) {
  CheckArgs(args);
  HWY_STATIC_DISPATCH(AttentionQueries)(args, scratch);
}

void AttentionWeights(const AttentionArgs& args, float* scratch, float* weights, size_t stride) {
  CheckArgs(args);
  HWY_STATIC_DISPATCH(AttentionRows)(args, scratch, weights, stride);
}

#else

HWY_EXPORT(AttentionQueries);
HWY_EXPORT(AttentionRows);

void Attention(const AttentionArgs& args, float* scratch) {
  CheckArgs(args);
  HWY_DYNAMIC_DISPATCH(AttentionQueries)(args, scratch);
}

void AttentionWeights(const AttentionArgs& args, float* scratch, float* weights, size_t stride) {
  CheckArgs(args);
  HWY_DYNAMIC_DISPATCH(AttentionRows)(args, scratch, weights, stride);
}

#endif  // HWY_ARCH_ARM

}  // namespace pozor
#endif  // HWY_ONCE
