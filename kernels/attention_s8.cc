#include "kernels/attention_s8.h"

#include <cstring>

#include "kernels/check.h"
#include "kernels/types.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/attention_s8.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

constexpr float kHidden = -3.40282347e38f;

float ExpOf(float x) {
  const DF df;
  return hn::GetLane(Exp(df, hn::Set(df, x)));
}

float Fused(float a, float b, float c) {
  const DF df;
  return hn::GetLane(hn::MulAdd(hn::Set(df, a), hn::Set(df, b), hn::Set(df, c)));
}

int32_t RoundProduct(float a, float b) {
  const float rounded = Fused(a, b, 12582912.0f);
  int32_t bits;
  std::memcpy(&bits, &rounded, sizeof(bits));
  return bits - 0x4B400000;
}

float QuantizeRow(const float* x, size_t n, int8_t* to) {
  uint32_t largest = 0;
  for (size_t i = 0; i < n; ++i) {
    uint32_t bits;
    std::memcpy(&bits, x + i, sizeof(bits));
    largest = HWY_MAX(largest, bits & 0x7FFFFFFFu);
  }
  float max;
  std::memcpy(&max, &largest, sizeof(max));
  const bool finite = largest < 0x7F800000u;
  const bool zero = !finite || max < 1e-35f;
  const float inverse = zero ? 0.0f : 127.0f / max;
  for (size_t i = 0; i < n; ++i) {
    to[i] = zero ? int8_t{0} : static_cast<int8_t>(RoundProduct(x[i], inverse));
  }
  return !finite ? __builtin_nanf("") : zero ? 0.0f : max * (1.0f / 127.0f);
}

struct Text {
  int8_t *k, *v, *q;  // k, v: [tokens, head_stride]
  float *k_scale, *v_scale, *score, *context;

  Text(const AttentionArgs& args, float* scratch) {
    k_scale = scratch;
    v_scale = k_scale + args.tokens;
    score = v_scale + args.tokens;
    context = score + args.tokens;
    k = reinterpret_cast<int8_t*>(context + args.head_stride);
    v = k + args.tokens * args.head_stride;
    q = v + args.tokens * args.head_stride;
    for (size_t j = 0; j < args.tokens; ++j) {
      const size_t at = j * args.head_stride;
      k_scale[j] = QuantizeRow(args.k + at, args.head_dim, k + at);
      v_scale[j] = QuantizeRow(args.v + at, args.head_dim, v + at);
    }
  }
};

bool Sees(const AttentionArgs& args, size_t i, size_t j) {
  const size_t distance = i > j ? i - j : j - i;
  return distance <= args.window && (!args.causal || j <= i);
}

// Scores of query i with keys [begin, end), and their maximum, or NaN.
float ScoreKeys(const AttentionArgs& args, const Text& text, size_t i, float q_scale, size_t begin,
                size_t end) {
  float max = kHidden;
  for (size_t j = begin; j < end; ++j) {
    int32_t sum = 0;
    for (size_t d = 0; d < args.head_dim; ++d) {
      sum += text.q[d] * text.k[j * args.head_stride + d];
    }
    float score = static_cast<float>(sum) * q_scale * text.k_scale[j];
    if (args.relative_bias != nullptr) {
      score += args.relative_bias[static_cast<ptrdiff_t>(j) - static_cast<ptrdiff_t>(i)];
    }
    text.score[j] = Sees(args, i, j) ? score : kHidden;
    if (text.score[j] > max) max = text.score[j];
  }
  return max;
}

float LargestScale(const Text& text, size_t begin, size_t end) {
  float largest = 0;
  for (size_t j = begin; j < end; ++j) {
    if (!(text.v_scale[j] <= largest)) largest = text.v_scale[j];
    if (largest != largest) break;
  }
  return largest;
}

void Query(const AttentionArgs& args, const Text& text, size_t i, float* weights) {
  const float q_scale = QuantizeRow(args.q + i * args.head_stride, args.head_dim, text.q);
  const bool whole = args.tokens <= kExactKeys;
  float max = kHidden, sum = 0;
  for (size_t c = 0; c < args.head_dim; ++c) text.context[c] = 0;
  for (size_t begin = 0; begin < args.tokens; begin += kExactKeys) {
    const size_t end = HWY_MIN(begin + kExactKeys, args.tokens);
    const float block_max = ScoreKeys(args, text, i, q_scale, begin, end);
    const float next = block_max > max ? block_max : max;
    const float rescale = ExpOf(max - next);
    max = next;
    sum *= rescale;
    const float largest = LargestScale(text, begin, end);
    int32_t acc[1024] = {};
    for (size_t j = begin; j < end; ++j) {
      const float e = text.score[j] <= kHidden ? 0.0f : ExpOf(text.score[j] - max);
      sum += e;
      const float ratio = largest > 0 ? text.v_scale[j] / largest : 0.0f;
      const int32_t p = RoundProduct(e, 16383.0f * ratio) & 0x3FFF;
      for (size_t c = 0; c < args.head_dim; ++c) acc[c] += p * text.v[j * args.head_stride + c];
    }
    const float unit = largest * (1.0f / 16383.0f);
    for (size_t c = 0; c < args.head_dim; ++c) {
      const float value = static_cast<float>(acc[c]);
      text.context[c] =
          whole ? value * (unit / sum) : Fused(value, unit, text.context[c] * rescale);
    }
  }
  for (size_t c = 0; args.out != nullptr && c < args.head_dim; ++c) {
    args.out[i * args.out_stride + c] = whole ? text.context[c] : text.context[c] * (1.0f / sum);
  }
  for (size_t j = 0; weights != nullptr && j < args.tokens; ++j) {
    weights[j] = text.score[j] <= kHidden ? 0.0f : ExpOf(text.score[j] - max) * (1.0f / sum);
  }
}

void AttentionRows(const AttentionArgs& args, float* scratch, float* weights, size_t stride) {
  const Text text(args, scratch);
  for (size_t i = args.query_begin; i < args.query_end; ++i) {
    Query(args, text, i, weights == nullptr ? nullptr : weights + (i - args.query_begin) * stride);
  }
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pozor {

HWY_EXPORT(AttentionRows);

size_t AttentionS8ScratchFloats(size_t tokens, size_t head_dim) {
  const size_t head_stride = RoundUp(head_dim, kPanelColumns);
  const size_t width = 2 * RoundUp(head_stride, 16) + RoundUp(HWY_MIN(tokens, kExactKeys), 16) + 8;
  return width * kQueryBlock + RoundUp(tokens, 64) * (head_stride + 3) + kExactKeys + kQueryBlock;
}

void AttentionS8(const AttentionArgs& args, float* scratch) {
  HWY_DYNAMIC_DISPATCH(AttentionRows)(args, scratch, nullptr, 0);
}

void AttentionS8Weights(const AttentionArgs& args, float* scratch, float* weights, size_t stride) {
  AttentionArgs without_context = args;
  without_context.out = nullptr;
  HWY_DYNAMIC_DISPATCH(AttentionRows)(without_context, scratch, weights, stride);
}

}  // namespace pozor
#endif  // HWY_ONCE
