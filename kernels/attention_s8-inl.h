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
};

struct S8Block : Block {
  int32_t* query_words;  // [head_stride / 2, width]: words of the block's queries, transposed
  int32_t* query_rows;   // [kQueryBlock, head_stride / 2], before that
  float* query_scale;    // [kQueryBlock]
  int32_t* start;        // [kQueryBlock]: what an integer score starts from
  int32_t* sums;         // [kQueryBlock, head_stride]
};

// scales[r] = max|row r| / 127 and inverses[r] = 127 / max|row r| for rows [rows, cols], cols a
// multiple of 16 at this stride. Arrays have room for whole vectors.
HWY_INLINE void ScalesOfRows(const float* x, size_t rows, size_t cols, float* scales,
                             float* inverses) {
  const DF df;
  const DI32 di;
  for (size_t r = 0; r < rows; ++r) {
    const float* row = x + r * cols;
    auto max = hn::BitCast(di, hn::Abs(hn::Load(df, row)));
    for (size_t c = kLanes; c < cols; c += kLanes) {
      max = hn::Max(max, hn::BitCast(di, hn::Abs(hn::Load(df, row + c))));
    }
    const int32_t bits = hn::ReduceMax(di, max);
    std::memcpy(scales + r, &bits, sizeof(bits));
  }
  for (size_t r = 0; r < rows; r += kLanes) {
    const VF max = hn::Load(df, scales + r);
    const auto finite = hn::Lt(hn::BitCast(di, max), hn::Set(di, 0x7F800000));
    const auto usable = hn::And(hn::RebindMask(df, finite), hn::Ge(max, hn::Set(df, 1e-35f)));
    const VF inverse = hn::IfThenElseZero(usable, hn::Div(hn::Set(df, 127.0f), max));
    const VF scale = hn::IfThenElseZero(usable, hn::Mul(max, hn::Set(df, 1.0f / 127.0f)));
    hn::Store(inverse, df, inverses + r);
    hn::Store(hn::IfThenElse(hn::RebindMask(df, finite), scale, hn::Set(df, __builtin_nanf(""))),
              df, scales + r);
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

// Rows of `cols` floats (a multiple of 16) to rows of words: bytes plus `offset`, or 16-bit pairs.
template <class Dots>
HWY_INLINE void RowsToWords(const float* x, size_t rows, size_t cols, const float* inverses,
                            int32_t offset, int32_t* words) {
  const DF df;
  const DI32 di;
  const auto base = hn::Set(di, offset - 0x4B400000);
  const size_t vectors = rows * cols / kLanes, in_row = cols / kLanes;
  size_t row = 0, column = 0;
  const auto next = [&]() HWY_ATTR {
    const VF value = hn::Load(df, x);
    const VI integers = hn::Add(RoundToWord(value, hn::Set(df, inverses[row])), base);
    x += kLanes;
    if (++column == in_row) column = 0, ++row;
    return integers;
  };
  if constexpr (Dots::kByteKeys) {
    const DU8 d8;
    uint8_t* to = reinterpret_cast<uint8_t*>(words);
    size_t i = 0;
    for (; i + 4 <= vectors; i += 4, to += 4 * kLanes) {
      const VI v0 = next(), v1 = next(), v2 = next(), v3 = next();
      hn::Store(PackBytes(v0, v1, v2, v3), d8, to);
    }
    if (i == vectors) return;
    const VI zero = hn::Zero(di);
    const VI v0 = next();
    const VI v1 = i + 1 < vectors ? next() : zero;
    const VI v2 = i + 2 < vectors ? next() : zero;
    hn::Store(PackBytes(v0, v1, v2, zero), d8, to);
  } else {
    const D16 d16;
    int16_t* to = reinterpret_cast<int16_t*>(words);
    for (size_t i = 0; i + 2 <= vectors; i += 2, to += 2 * kLanes) {
      const VI v0 = next(), v1 = next();
      hn::Store(hn::OrderedDemote2To(d16, v0, v1), d16, to);
    }
    if (vectors % 2 != 0) {
      const VI v0 = next();
      hn::Store(hn::OrderedDemote2To(d16, v0, hn::Zero(di)), d16, to);
    }
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
  RowsToWords<Dots>(args.k + at, keys, args.head_stride, text->inverse, 128 * Dots::kByteKeys,
                    text->k);
  ScalesOfRows(args.v + at, keys, args.head_stride, text->v_weight, text->inverse);
  ValuesToPairs(args.v + at, keys, args.head_stride, text->inverse, text->v);
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
    VI start = hn::Zero(di);
#if HWY_TARGET == HWY_AVX3 || HWY_TARGET == HWY_AVX2
    if constexpr (Dots::kByteKeys) {
      // Back to signed bytes; -128 times their sum undoes the keys' 128.
      const VI flip = hn::Set(di, static_cast<int32_t>(0x80808080u));
      for (size_t d = 0; d < words; ++d) {
        int32_t* at = block.query_words + d * block.width + i;
        const VI q = hn::Xor(hn::Load(di, at), flip);
        hn::Store(q, di, at);
        Dots::AddScores(start, flip, q);
      }
      start = hn::Neg(start);
    }
#endif
    hn::Store(start, di, block.start + i);
  }
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // !HWY_TARGET_IS_SVE

#endif  // POZOR_KERNELS_ATTENTION_S8_INL_H_
