// What int8 attention computes with: a text's keys and values as integers, a block's queries.
#if defined(POZOR_KERNELS_ATTENTION_S8_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_ATTENTION_S8_INL_H_
#undef POZOR_KERNELS_ATTENTION_S8_INL_H_
#else
#define POZOR_KERNELS_ATTENTION_S8_INL_H_
#endif

#include <cstring>

#include "kernels/attention-inl.h"
#include "kernels/attention_s8.h"
#include "kernels/attention_s8_tile-inl.h"
#include "kernels/quantize-inl.h"
#include "kernels/simd-inl.h"

#if !HWY_TARGET_IS_SVE

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Largest weight of a value: 14 bits.
inline constexpr float kLargestWeight = 16383.0f;

// Scratch of one call, cut up. Every part starts on a 64-byte boundary.
struct S8Scratch {
  float* at;

  template <class T>
  T* Take(size_t count) {
    T* taken = reinterpret_cast<T*>(at);
    at += RoundUp(count, 16);
    return taken;
  }
};

// Keys [begin, end) of one text and head, whole blocks of kExactKeys, as integers. Arrays are
// indexed by key - begin.
struct S8Text {
  size_t begin, end;
  size_t k_stride;  // words of a key
  int32_t* k;       // [keys, k_stride]: bytes with 128 added, or 16-bit pairs
  int32_t* v;       // [keys / 2, head_stride]: 16-bit pairs of a column of two keys
  float* k_scale;   // [keys]
  float* v_weight;  // [keys] kLargestWeight * sv / max sv
  float* v_unit;    // [blocks] max sv / kLargestWeight
  float* inverse;   // [keys], while they are quantised
  float* v_inverse;
};

struct S8Block : Block {
  int32_t* query_words;  // [head_stride / 2, width]: words of the block's queries, transposed
  int32_t* query_rows;   // [kQueryBlock, head_stride / 2], before that
  float* query_scale;    // [kQueryBlock]
  int32_t* start;        // [kQueryBlock]: what an integer score starts from
  int32_t* sums;         // [kQueryBlock, head_stride]
};

// max|x| of a row, lane by lane, as bit patterns: NaN above infinity.
HWY_INLINE VI LargestOfRow(const float* row, size_t cols) {
  const DF df;
  const DI32 di;
  VI max = hn::BitCast(di, hn::Abs(hn::Load(df, row)));
  for (size_t c = kLanes; c < cols; c += kLanes) {
    max = hn::Max(max, hn::BitCast(di, hn::Abs(hn::Load(df, row + c))));
  }
  return max;
}

// In every 128-bit block the maxima of that block of four vectors.
HWY_INLINE VI ReduceBlocks(VI v0, VI v1, VI v2, VI v3) {
  const DI32 di;
  const hn::RepartitionToWide<DI32> wide;
  const VI low = hn::Max(hn::InterleaveLower(di, v0, v1), hn::InterleaveUpper(di, v0, v1));
  const VI high = hn::Max(hn::InterleaveLower(di, v2, v3), hn::InterleaveUpper(di, v2, v3));
  const auto low64 = hn::BitCast(wide, low), high64 = hn::BitCast(wide, high);
  return hn::Max(hn::BitCast(di, hn::InterleaveLower(wide, low64, high64)),
                 hn::BitCast(di, hn::InterleaveUpper(wide, low64, high64)));
}

// max|x| of rows [first, first + kLanes), a lane each; rows past the last repeat it.
HWY_INLINE VI LargestOfRows(const float* x, size_t first, size_t rows, size_t cols) {
  const auto largest = [&](size_t row) HWY_ATTR {
    return LargestOfRow(x + HWY_MIN(first + row, rows - 1) * cols, cols);
  };
  const auto four = [&](size_t row) HWY_ATTR {
    return ReduceBlocks(largest(row), largest(row + 1), largest(row + 2), largest(row + 3));
  };
  if constexpr (kLanes == 4) {
    return four(0);
  } else {
    const DI32 di;
    const VI u0 = four(0), u1 = four(4);
    const VI v0 = hn::Max(hn::ConcatLowerLower(di, u1, u0), hn::ConcatUpperUpper(di, u1, u0));
    if constexpr (kLanes == 8) {
      return v0;
    } else {
      const VI u2 = four(8), u3 = four(12);
      const VI v1 = hn::Max(hn::ConcatLowerLower(di, u3, u2), hn::ConcatUpperUpper(di, u3, u2));
      alignas(64) static constexpr int32_t kEven[16] = {0,  1,  2,  3,  8,  9,  10, 11,
                                                        16, 17, 18, 19, 24, 25, 26, 27};
      alignas(64) static constexpr int32_t kOdd[16] = {4,  5,  6,  7,  12, 13, 14, 15,
                                                       20, 21, 22, 23, 28, 29, 30, 31};
      return hn::Max(hn::TwoTablesLookupLanes(di, v0, v1, hn::SetTableIndices(di, kEven)),
                     hn::TwoTablesLookupLanes(di, v0, v1, hn::SetTableIndices(di, kOdd)));
    }
  }
}

// scales[r] = max|row r| / 127 and inverses[r] = 127 / max|row r| for rows [rows, cols], cols a
// multiple of 16 at this stride. Arrays have room for whole vectors.
HWY_INLINE void ScalesOfRows(const float* x, size_t rows, size_t cols, float* scales,
                             float* inverses) {
  const DF df;
  const DI32 di;
  for (size_t r = 0; r < rows; r += kLanes) {
    const VI bits = LargestOfRows(x, r, rows, cols);
    const VF max = hn::BitCast(df, bits);
    const auto finite = hn::RebindMask(df, hn::Lt(bits, hn::Set(di, 0x7F800000)));
    const auto usable = hn::And(finite, hn::Ge(max, hn::Set(df, 1e-35f)));
    const VF inverse = hn::IfThenElseZero(usable, hn::Div(hn::Set(df, 127.0f), max));
    const VF scale = hn::IfThenElseZero(usable, hn::Mul(max, hn::Set(df, 1.0f / 127.0f)));
    hn::Store(inverse, df, inverses + r);
    hn::Store(hn::IfThenElse(finite, scale, hn::Set(df, __builtin_nanf(""))), df, scales + r);
  }
}

// rne(x * inverse) in the low 16 bits, and in the low 8 bits, of every lane.
HWY_INLINE VI RoundToWord(VF x, VF inverse) {
  const DF df;
  return hn::BitCast(DI32(), hn::MulAdd(x, inverse, hn::Set(df, 12582912.0f)));
}

// The low halves of `even` and, above them, those of `odd`.
HWY_INLINE VI JoinHalves(VI even, VI odd) {
  const D16 d16;
  const DI32 di;
  const auto shifted = hn::BitCast(d16, hn::ShiftLeft<16>(odd));
  return hn::BitCast(di, hn::OddEven(shifted, hn::BitCast(d16, even)));
}

// RowsToWords for rows of kInRow vectors; 0: of any number.
template <class Dots, size_t kInRow>
void RowsToWordsOf(const float* x, size_t rows, size_t cols, const float* inverses, int32_t offset,
                   int32_t* words) {
  const DF df;
  const DI32 di;
  constexpr size_t kAtOnce = Dots::kByteKeys ? 4 : 2;
  const auto base = hn::Set(di, offset - 0x4B400000);
  const size_t in_row = kInRow != 0 ? kInRow : cols / kLanes, vectors = rows * in_row;
  const auto integers = [&](size_t i) HWY_ATTR {
    const VF value = hn::Load(df, x + i * kLanes);
    return hn::Add(RoundToWord(value, hn::Set(df, inverses[i / in_row])), base);
  };
  const auto or_zero = [&](size_t i) HWY_ATTR { return i < vectors ? integers(i) : hn::Zero(di); };
  const auto store = [&](size_t i, VI v0, VI v1, VI v2, VI v3) HWY_ATTR {
    if constexpr (Dots::kByteKeys) {
      const DU8 d8;
      hn::Store(PackBytes(v0, v1, v2, v3), d8, reinterpret_cast<uint8_t*>(words) + i * kLanes);
    } else {
      const D16 d16;
      const auto pairs = hn::OrderedDemote2To(d16, v0, v1);
      hn::Store(pairs, d16, reinterpret_cast<int16_t*>(words) + i * kLanes);
    }
  };
  size_t i = 0;
  for (; i + kAtOnce <= vectors; i += kAtOnce) {
    if constexpr (kAtOnce == 4) {
      store(i, integers(i), integers(i + 1), integers(i + 2), integers(i + 3));
    } else {
      const VI v0 = integers(i), v1 = integers(i + 1);
      store(i, v0, v1, v0, v1);
    }
  }
  if (i < vectors) store(i, or_zero(i), or_zero(i + 1), or_zero(i + 2), or_zero(i + 3));
}

// Rows of `cols` floats (a multiple of 16) to rows of words: bytes plus `offset`, or 16-bit pairs.
template <class Dots>
HWY_INLINE void RowsToWords(const float* x, size_t rows, size_t cols, const float* inverses,
                            int32_t offset, int32_t* words) {
  switch (cols / kLanes) {
    case 2:
      return RowsToWordsOf<Dots, 2>(x, rows, cols, inverses, offset, words);
    case 4:
      return RowsToWordsOf<Dots, 4>(x, rows, cols, inverses, offset, words);
    default:
      return RowsToWordsOf<Dots, 0>(x, rows, cols, inverses, offset, words);
  }
}

// Values as pairs of two keys; the last key of an odd number has a zero beside it.
HWY_INLINE void ValuesToPairs(const float* x, size_t rows, size_t cols, const float* inverses,
                              int32_t* pairs) {
  const DF df;
  const DI32 di;
  for (size_t r = 0; r < rows; r += 2, x += 2 * cols, pairs += cols) {
    const bool both = r + 1 < rows;
    const VF inverse0 = hn::Set(df, inverses[r]);
    const VF inverse1 = both ? hn::Set(df, inverses[r + 1]) : hn::Zero(df);
    for (size_t c = 0; c < cols; c += kLanes) {
      const VI even = RoundToWord(hn::Load(df, x + c), inverse0);
      const VI odd = both ? RoundToWord(hn::Load(df, x + cols + c), inverse1) : hn::Zero(di);
      hn::Store(JoinHalves(even, odd), di, pairs + c);
    }
  }
}

// v_scales become weights; v_unit gets the unit of each block.
HWY_INLINE void WeighValues(const S8Text& text, size_t keys) {
  const DF df;
  const DI32 di;
  for (size_t block = 0, first = 0; first < keys; ++block, first += kExactKeys) {
    const size_t count = HWY_MIN(keys - first, kExactKeys);
    float* scales = text.v_weight + first;
    for (size_t i = count; i < RoundUp(count, kLanes); ++i) scales[i] = 0.0f;
    auto max = hn::Zero(di);  // as bits, which order NaN last
    for (size_t i = 0; i < count; i += kLanes) {
      max = hn::Max(max, hn::BitCast(di, hn::Load(df, scales + i)));
    }
    const int32_t bits = hn::ReduceMax(di, max);
    float largest;
    std::memcpy(&largest, &bits, sizeof(largest));
    const VF divisor = hn::Set(df, largest == 0.0f ? 1.0f : largest);
    const VF factor = hn::Set(df, kLargestWeight);
    for (size_t i = 0; i < count; i += kLanes) {
      const VF ratio = hn::Div(hn::Load(df, scales + i), divisor);
      hn::Store(hn::Mul(ratio, factor), df, scales + i);
    }
    text.v_unit[block] = largest * (1.0f / kLargestWeight);
  }
}

// Cuts the scratch of a call: the text's part, then the block's.
template <class Dots>
HWY_INLINE void PlaceS8(const AttentionArgs& args, float* memory, S8Text* text, S8Block* block) {
  S8Scratch scratch = {memory};
  const size_t keys = args.tokens, head = args.head_stride;
  text->k_stride = head / (Dots::kByteKeys ? 4 : 2);
  text->k = scratch.Take<int32_t>(keys * head / 2 + 16);
  text->v = scratch.Take<int32_t>((keys + 1) / 2 * head);
  text->k_scale = scratch.Take<float>(keys);
  text->v_weight = scratch.Take<float>(keys);
  text->inverse = scratch.Take<float>(keys);
  text->v_inverse = scratch.Take<float>(keys);
  text->v_unit = scratch.Take<float>(DivCeil(keys, kExactKeys));
  const size_t block_keys = HWY_MIN(keys, kExactKeys);
  block->query_words = scratch.Take<int32_t>(kQueryBlock * head / 2);
  block->query_rows = scratch.Take<int32_t>(kQueryBlock * head / 2);
  block->scores = scratch.Take<float>(kQueryBlock * block_keys);
  block->sums = scratch.Take<int32_t>(kQueryBlock * head);
  block->context = scratch.Take<float>(kQueryBlock * head);
  for (float** part : {&block->max, &block->next_max, &block->scale, &block->sum, &block->inverse,
                       &block->query_scale}) {
    *part = scratch.Take<float>(kQueryBlock);
  }
  block->start = scratch.Take<int32_t>(kQueryBlock);
  block->bias = scratch.Take<float>(block_keys + kQueryBlock);
  block->index = scratch.Take<int32_t>(block_keys + kQueryBlock);
}

// Quantises the keys and values of all blocks of kExactKeys that the call's queries may see.
template <class Dots>
HWY_INLINE void QuantizeText(const AttentionArgs& args, S8Text* text) {
  const size_t window = HWY_MIN(args.window, args.tokens);
  const size_t first = args.query_begin > window ? args.query_begin - window : 0;
  const size_t last = args.causal ? args.query_end : args.query_end + window;
  text->begin = first / kExactKeys * kExactKeys;
  text->end = HWY_MIN(RoundUp(last, kExactKeys), args.tokens);
  const size_t keys = text->end - text->begin, at = text->begin * args.head_stride;
  ScalesOfRows(args.k + at, keys, args.head_stride, text->k_scale, text->inverse);
  ScalesOfRows(args.v + at, keys, args.head_stride, text->v_weight, text->v_inverse);
  RowsToWords<Dots>(args.k + at, keys, args.head_stride, text->inverse, 128 * Dots::kByteKeys,
                    text->k);
  ValuesToPairs(args.v + at, keys, args.head_stride, text->v_inverse, text->v);
  WeighValues(*text, keys);
}

// The block's queries; columns past the last one repeat it.
template <class Dots>
HWY_INLINE void QuantizeQueries(const AttentionArgs& args, const S8Text& text,
                                const S8Block& block) {
  const DI32 di;
  const size_t words = text.k_stride;
  const float* rows = args.q + block.query_begin * args.head_stride;
  ScalesOfRows(rows, block.queries, args.head_stride, block.query_scale, block.inverse);
  RowsToWords<Dots>(rows, block.queries, args.head_stride, block.inverse, 128 * Dots::kByteKeys,
                    block.query_rows);
  const size_t last = block.queries - 1;
  for (size_t i = block.queries; i < block.width; ++i) {
    std::memcpy(block.query_rows + i * words, block.query_rows + last * words, words * 4);
    block.query_scale[i] = block.query_scale[last];
  }
  for (size_t i = 0; i < block.width; i += kLanes) {
    TransposeRows(reinterpret_cast<const float*>(block.query_rows + i * words), words, words,
                  reinterpret_cast<float*>(block.query_words + i), block.width);
  }
  for (size_t i = 0; i < block.width; i += kLanes) {
    VI start[1] = {hn::Zero(di)};
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    if constexpr (Dots::kByteKeys) {
      // Back to signed bytes; -128 times their sum undoes the keys' 128.
      const VI flip = hn::Set(di, static_cast<int32_t>(0x80808080u));
      for (size_t d = 0; d < words; ++d) {
        int32_t* at = block.query_words + d * block.width + i;
        const VI q[1] = {hn::Xor(hn::Load(di, at), flip)};
        hn::Store(q[0], di, at);
        Dots::AddScores(start, flip, q);
      }
      start[0] = hn::Neg(start[0]);
    }
#endif
    hn::Store(start[0], di, block.start + i);
  }
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // !HWY_TARGET_IS_SVE

#endif  // POZOR_KERNELS_ATTENTION_S8_INL_H_
