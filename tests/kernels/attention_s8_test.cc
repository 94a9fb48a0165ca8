#include "kernels/attention_s8.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "kernels/types.h"
#include "tests/kernels/attention_rows.h"
#include "tests/support/buffer.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/random.h"

namespace pozor::test {
namespace {

struct Case {
  size_t tokens;
  size_t head_dim;
  size_t window = kNoWindow;
  bool causal = false;
  bool bias = false;
};

std::string Name(const Case& c) {
  return "tokens " + std::to_string(c.tokens) + " head_dim " + std::to_string(c.head_dim) +
         (c.window == kNoWindow ? "" : " window " + std::to_string(c.window)) +
         (c.causal ? " causal" : "") + (c.bias ? " bias" : "");
}

// One text and head with random Q, K, V in the layout of the split GEMM epilogue.
struct Head {
  Case options;
  size_t stride;
  Buffer q, k, v;
  std::vector<float> bias;  // [2 * tokens - 1]

  Head(const Case& c, uint64_t seed)
      : options(c),
        stride(RoundUp(c.head_dim, kPanelColumns)),
        q(c.tokens * stride),
        k(c.tokens * stride),
        v(c.tokens * stride),
        bias(RandomFloats(2 * c.tokens - 1, seed + 1, -2.0f, 2.0f)) {
    Random random(seed);
    for (size_t t = 0; t < c.tokens; ++t) {
      for (size_t d = 0; d < c.head_dim; ++d) {
        q[t * stride + d] = random.Normal() / std::sqrt(static_cast<float>(c.head_dim));
        k[t * stride + d] = random.Normal();
        v[t * stride + d] = random.Normal();
      }
    }
  }

  AttentionArgs Args() const {
    AttentionArgs args;
    args.q = q.data();
    args.k = k.data();
    args.v = v.data();
    args.head_dim = options.head_dim;
    args.head_stride = stride;
    args.tokens = options.tokens;
    args.query_end = options.tokens;
    args.window = options.window;
    args.causal = options.causal;
    if (options.bias) args.relative_bias = bias.data() + options.tokens - 1;
    return args;
  }
};

// The kernel's exponentials, step by step.
struct ExpSteps {
  static constexpr float kRound = 12583039.0f;

  static float PowerOfTwo(float rounded) {
    return std::ldexp(1.0f, static_cast<int>(rounded - kRound));
  }

  static float Short(float x) {
    x = std::isnan(x) ? x : std::max(x, -87.0f);
    const float rounded = std::fma(x, 1.44269504f, kRound);
    const float r = std::fma(-(rounded - kRound), 0.693147182f, x);
    float p = std::fma(0.0423805602f, r, 0.16808638f);
    p = std::fma(p, r, 0.499959618f);
    p = std::fma(p, r, 0.999951541f);
    return std::fma(p, r, 1.0f) * PowerOfTwo(rounded);
  }

  static float Full(float x) {
    if (x < -87.33654f) return 0.0f;
    const float rounded = std::fma(x, 1.44269504f, kRound), n = rounded - kRound;
    const float r = std::fma(-n, 3.19461833e-05f, std::fma(-n, 0.693115234f, x));
    float p = std::fma(0.00829031505f, r, 0.0418979302f);
    p = std::fma(p, r, 0.166676357f);
    p = std::fma(p, r, 0.499991506f);
    p = std::fma(p, r, 0.999999702f);
    return std::fma(p, r, 1.0f) * PowerOfTwo(rounded);
  }
};

// Rows as integers, and their scales.
struct IntegerRows {
  std::vector<int> values;  // [rows, dim]
  std::vector<float> scales;

  IntegerRows(const Buffer& x, size_t rows, size_t stride, size_t dim) {
    for (size_t r = 0; r < rows; ++r) {
      float max = 0;
      for (size_t d = 0; d < dim; ++d) max = std::max(max, std::abs(x[r * stride + d]));
      const bool zero = max < 1e-35f;
      const double inverse = zero ? 0.0 : static_cast<double>(127.0f / max);
      for (size_t d = 0; d < dim; ++d) {
        const double exact = static_cast<double>(x[r * stride + d]) * inverse;
        values.push_back(static_cast<int>(std::nearbyint(exact)));
      }
      scales.push_back(zero ? 0.0f : max * (1.0f / 127.0f));
    }
  }
};

// The formulas of the header with every query for itself, and the softmax rows.
struct Twin {
  const Head& head;
  size_t tokens, dim;
  IntegerRows q, k, v;
  std::vector<float> context, weights;  // [tokens, dim], [tokens, tokens]

  explicit Twin(const Head& h)
      : head(h),
        tokens(h.options.tokens),
        dim(h.options.head_dim),
        q(h.q, tokens, h.stride, dim),
        k(h.k, tokens, h.stride, dim),
        v(h.v, tokens, h.stride, dim),
        context(tokens * dim),
        weights(tokens * tokens) {
    for (size_t i = 0; i < tokens; ++i) Query(i);
  }

  bool Sees(size_t i, size_t j) const {
    const size_t distance = i > j ? i - j : j - i;
    return distance <= head.options.window && (!head.options.causal || j <= i);
  }

  float Score(size_t i, size_t j) const {
    int sum = 0;
    for (size_t d = 0; d < dim; ++d) sum += q.values[i * dim + d] * k.values[j * dim + d];
    const float score = static_cast<float>(sum) * q.scales[i] * k.scales[j];
    return head.options.bias ? score + head.bias[tokens - 1 + j - i] : score;
  }

  void Query(size_t i) {
    const bool whole = tokens <= kExactKeys;
    float max = -3.40282347e38f, sum = 0;
    std::vector<float> scores(tokens);
    for (size_t begin = 0; begin < tokens; begin += kExactKeys) {
      const size_t end = std::min(begin + kExactKeys, tokens);
      float next = max, largest = 0;
      for (size_t j = begin; j < end; ++j) {
        scores[j] = Score(i, j);
        if (Sees(i, j)) next = std::max(next, scores[j]);
        largest = std::max(largest, v.scales[j]);
      }
      const float rescale = ExpSteps::Full(max - next);
      max = next;
      sum *= rescale;
      std::vector<int64_t> sums(dim);
      for (size_t j = begin; j < end; ++j) {
        if (!Sees(i, j)) continue;
        const float e = ExpSteps::Short(scores[j] - max);
        sum += e;
        const float weight = v.scales[j] / (largest == 0 ? 1.0f : largest) * 16383.0f;
        const double exact = static_cast<double>(e) * static_cast<double>(weight);
        const auto p = static_cast<int64_t>(std::nearbyint(exact));
        for (size_t d = 0; d < dim; ++d) sums[d] += p * v.values[j * dim + d];
      }
      const float unit = largest * (1.0f / 16383.0f);
      for (size_t d = 0; d < dim; ++d) {
        float& c = context[i * dim + d];
        const float value = static_cast<float>(sums[d]);
        c = whole ? value * (unit / sum) : std::fma(value, unit, c * rescale);
      }
    }
    for (size_t d = 0; d < dim && !whole; ++d) context[i * dim + d] *= 1.0f / sum;
    for (size_t j = 0; j < tokens; ++j) {
      if (Sees(i, j)) weights[i * tokens + j] = ExpSteps::Short(scores[j] - max) * (1.0f / sum);
    }
  }
};

// Runs queries [begin, end) into rows of `out`.
void Run(const Head& head, size_t begin, size_t end, Buffer* out, size_t out_stride) {
  AttentionArgs args = head.Args();
  args.query_begin = begin;
  args.query_end = end;
  args.out = out->data();
  args.out_stride = out_stride;
  Buffer scratch(AttentionS8ScratchFloats(args.tokens, args.head_dim));
  AttentionS8(args, scratch.data());
  CHECK(scratch.GuardsIntact());
}

std::vector<float> RunAll(const Head& head) {
  const size_t dim = head.options.head_dim;
  Buffer out(head.options.tokens * dim, 3);
  Run(head, 0, head.options.tokens, &out, dim);
  CHECK(out.GuardsIntact());
  return {out.span().begin(), out.span().end()};
}

std::vector<float> RunF32(const Head& head) {
  AttentionArgs args = head.Args();
  Buffer out(args.tokens * args.head_dim);
  Buffer scratch(AttentionScratchFloats(args.tokens, args.head_dim));
  args.out = out.data();
  args.out_stride = args.head_dim;
  Attention(args, scratch.data());
  return {out.span().begin(), out.span().end()};
}

std::vector<Case> Cases() {
  std::vector<Case> cases;
  for (const size_t tokens : {1,  2,  3,  5,  8,  11, 12, 13,  15,  16,  17,  20, 31,
                              33, 47, 49, 63, 64, 65, 77, 100, 129, 200, 512, 513}) {
    cases.push_back({tokens, 32});
  }
  for (const size_t head_dim : {1, 3, 8, 16, 17, 24, 48, 64, 80, 96, 128}) {
    for (const size_t tokens : {7, 40}) cases.push_back({tokens, head_dim});
  }
  for (const size_t tokens : {1, 9, 40, 70, 130}) {
    cases.push_back({tokens, 64, kNoWindow, true});
    cases.push_back({tokens, 32, kNoWindow, false, true});
    for (const size_t window : {0, 1, 5, 64, 1000}) {
      cases.push_back({tokens, 64, window});
      cases.push_back({tokens, 16, window, true, true});
    }
  }
  cases.push_back({530, 16, kNoWindow, true, true});
  cases.push_back({1024, 16});
  cases.push_back({1025, 16});
  cases.push_back({1100, 8, 5});
  cases.push_back({1100, 16, 200, true, true});
  cases.push_back({2100, 8, 300, false, true});
  return cases;
}

TEST_CASE("int8 attention gives the bits of its formulas on every fused tier") {
  for (const Case& c : Cases()) {
    CAPTURE(Name(c));
    const Head head(c, 17 + c.tokens);
    const Twin twin(head);
    ForEachTier([&](CpuTier) {
      const std::vector<float> out = RunAll(head);
      CHECK(MaxAbsDifference(out, twin.context) < 2e-2);
      if (ActiveTierIsFused()) CHECK(SameBits(out, twin.context));
    });
  }
}

TEST_CASE("int8 attention is near f32 attention, the nearer the longer the text") {
  const std::vector<Case> cases = {
      Case{8, 32},   Case{40, 64},   Case{130, 24},    Case{300, 32},
      Case{600, 32}, Case{1100, 16}, Case{100, 32, 5}, Case{50, 32, kNoWindow, true, true}};
  for (const Case& c : cases) {
    CAPTURE(Name(c));
    const Head head(c, 17 + c.tokens);
    const std::vector<float> want = RunF32(head);
    const double most = c.tokens >= 300 ? 0.02 : 0.06;
    ForEachTier([&](CpuTier) { CHECK(MaxAbsDifference(RunAll(head), want) < most); });
  }
}

TEST_CASE("one strong key leaves the many weak ones their part") {
  // A tenth of a query's attention is spread over 599 keys: below 1/255 of the strongest each.
  const size_t tokens = 600, dim = 32;
  Head head({tokens, dim}, 5);
  std::fill(head.q.span().begin(), head.q.span().end(), 0.0f);
  for (size_t t = 0; t < tokens; ++t) {
    head.q[t * dim] = 1.0f;
    head.k[t * dim] = t == 7 ? 8.6f : 0.0f;
    for (size_t d = 0; d < dim; ++d) head.v[t * dim + d] = t == 7 ? 0.0f : 1.0f;
  }
  const std::vector<float> want = RunF32(head);
  CHECK(want[0] > 0.09f);
  ForEachTier([&](CpuTier) { CHECK(MaxAbsDifference(RunAll(head), want) < 0.01 * want[0]); });
}

TEST_CASE("a query's bits do not depend on how its text is cut") {
  const std::vector<Case> cases = {{20, 32},
                                   {65, 32},
                                   {130, 64},
                                   {530, 16, 5, true},
                                   {1100, 16},
                                   {1100, 16, 33},
                                   {2100, 8, 300, false, true}};
  for (const Case& c : cases) {
    CAPTURE(Name(c));
    const Head head(c, 1700 + c.tokens);
    ForEachTier([&](CpuTier) {
      const std::vector<float> whole = RunAll(head);
      for (const size_t piece : {1, 7, 16, 50, 64, 100}) {
        if (piece < 50 && c.tokens > 100) continue;
        Buffer out(c.tokens * c.head_dim);
        for (size_t begin = 0; begin < c.tokens; begin += piece) {
          Run(head, begin, std::min(begin + piece, c.tokens), &out, c.head_dim);
        }
        CHECK(SameBits(out.span(), whole));
      }
    });
  }
}

TEST_CASE("only head_dim columns of the chosen rows are written") {
  const Case c{10, 20};
  const Head head(c, 5);
  ForEachTier([&](CpuTier) {
    Buffer out(10 * 33, 1, 7.0f);
    Run(head, 2, 9, &out, 33);
    CHECK(out.GuardsIntact());
    for (size_t i = 0; i < 10; ++i) {
      for (size_t d = 0; d < 33; ++d) {
        if (i < 2 || i >= 9 || d >= 20) CHECK(out[i * 33 + d] == 7.0f);
      }
    }
  });
}

TEST_CASE("softmax rows have the bits of their formula and sum to one") {
  for (const Case& c : Cases()) {
    if (c.tokens > 130 && c.tokens != 530 && c.tokens != 1100) continue;
    CAPTURE(Name(c));
    const Head head(c, 99 + c.tokens);
    const Twin twin(head);
    ForEachTier([&](CpuTier) {
      const AttentionArgs args = head.Args();
      Buffer scratch(AttentionS8ScratchFloats(c.tokens, c.head_dim));
      Buffer weights(c.tokens * c.tokens, 1, -1.0f);
      AttentionS8Weights(args, scratch.data(), weights.data(), c.tokens);
      CHECK(weights.GuardsIntact());
      CHECK(scratch.GuardsIntact());
      CHECK(MaxAbsDifference(weights.span(), twin.weights) < 1e-2);
      if (ActiveTierIsFused()) CHECK(SameBits(weights.span(), twin.weights));
      CHECK(WorstRowSum(weights.span(), c.tokens) < 2e-5);
    });
  }
}

// Columns that no key has keep what they had.
TEST_CASE("softmax rows of a cut text are those of the whole text") {
  const Case cases[] = {{1100, 32, 100},
                        {1030, 20},
                        {300, 16, 40},
                        {130, 20, 7, true},
                        {90, 36, kNoWindow, false, true}};
  for (const Case& c : cases) {
    CAPTURE(Name(c));
    const Head head(c, 3);
    CheckRowsOfCutText(head.Args(), AttentionS8ScratchFloats(c.tokens, c.head_dim),
                       AttentionS8Weights);
  }
}

TEST_CASE("scores of content against position are added") {
  const size_t tokens = 37, dim = 16, stride = 20;
  const Head head({tokens, dim}, 6);
  const std::vector<float> by_query = NormalFloats(tokens * stride, 1);
  const std::vector<float> by_key = NormalFloats(tokens * stride, 2);
  std::vector<int32_t> index(2 * tokens - 1);
  for (size_t i = 0; i < index.size(); ++i) index[i] = static_cast<int32_t>(i * 7 % stride);
  AttentionArgs args = head.Args();
  args.query_positions = by_query.data();
  args.key_positions = by_key.data();
  args.position_stride = stride;
  args.position_index = index.data() + tokens - 1;
  Buffer scratch(
      std::max(AttentionScratchFloats(tokens, dim), AttentionS8ScratchFloats(tokens, dim)));
  Buffer out(tokens * dim), want(tokens * dim);
  args.out_stride = dim;
  args.out = want.data();
  Attention(args, scratch.data());
  args.out = out.data();
  ForEachTier([&](CpuTier) {
    AttentionS8(args, scratch.data());
    CHECK(MaxAbsDifference(out.span(), want.span()) < 0.1);
  });
}

TEST_CASE("large scores neither overflow nor lose the winner") {
  for (const size_t tokens : {30, 1040}) {
    Head head({tokens, 32}, 8);
    for (float& value : head.q.span()) value *= 100.0f;
    const Twin twin(head);
    ForEachTier([&](CpuTier) {
      const std::vector<float> out = RunAll(head);
      if (ActiveTierIsFused()) CHECK(SameBits(out, twin.context));
    });
  }
}

TEST_CASE("extreme integers are summed exactly over the most keys of one sum") {
  // Every weight is the largest, every value 127 or -127.
  for (const size_t tokens : {1024, 1030}) {
    Head head({tokens, 16}, 4);
    std::fill(head.q.span().begin(), head.q.span().end(), 0.0f);
    for (size_t i = 0; i < head.v.size(); ++i) head.v[i] = i % 16 % 2 == 0 ? 2.0f : -2.0f;
    const Twin twin(head);
    ForEachTier([&](CpuTier) {
      const std::vector<float> out = RunAll(head);
      CHECK(SameBits(out, twin.context));
      for (size_t i = 0; i < out.size(); ++i) CHECK(std::abs(std::abs(out[i]) - 2.0f) < 1e-4f);
    });
  }
}

TEST_CASE("rows of zeros count as zero") {
  Head head({20, 32}, 4);
  std::fill_n(head.q.data(), 32, 0.0f);
  std::fill_n(head.k.data() + 3 * 32, 32, 1e-38f);
  std::fill(head.v.span().begin(), head.v.span().end(), 0.0f);
  ForEachTier([&](CpuTier) {
    for (const float value : RunAll(head)) CHECK(value == 0.0f);
  });
}

TEST_CASE("a NaN key or value reaches every query and nothing hangs") {
  for (const size_t tokens : {9, 1030}) {
    for (const bool in_key : {false, true}) {
      Head head({tokens, 32}, 4);
      (in_key ? head.k : head.v)[3 * 32 + 1] = std::numeric_limits<float>::quiet_NaN();
      ForEachTier([&](CpuTier) {
        const std::vector<float> out = RunAll(head);
        CHECK(std::all_of(out.begin(), out.end(), [](float x) { return std::isnan(x); }));
      });
    }
  }
}

TEST_CASE("a NaN query stays with itself") {
  Head head({70, 32}, 4);
  head.q[3 * 32 + 1] = std::numeric_limits<float>::infinity();
  ForEachTier([&](CpuTier) {
    const std::vector<float> out = RunAll(head);
    for (size_t i = 0; i < 70; ++i) CHECK(std::isnan(out[i * 32]) == (i == 3));
  });
}

}  // namespace
}  // namespace pozor::test
