#include "kernels/attention.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
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
  size_t buckets = 0;   // of scores of content against position
  bool by_key = false;  // those of keys as well, else of queries only
  size_t globals = 0;   // keys that everybody sees
  bool by_query = true;
};

std::string Name(const Case& c) {
  return "tokens " + std::to_string(c.tokens) + " head_dim " + std::to_string(c.head_dim) +
         (c.window == kNoWindow ? "" : " window " + std::to_string(c.window)) +
         (c.causal ? " causal" : "") + (c.bias ? " bias" : "") +
         (c.buckets == 0 ? "" : " buckets " + std::to_string(c.buckets)) +
         (c.by_query ? "" : " of keys only") +
         (c.globals == 0 ? "" : " globals " + std::to_string(c.globals));
}

// One text and head with random Q, K, V in the layout of the split GEMM epilogue.
struct Head {
  Case options;
  size_t stride;
  Buffer q, k, v;
  std::vector<float> bias;                            // [2 * tokens - 1]
  std::vector<float> query_positions, key_positions;  // [tokens, buckets]
  std::vector<int32_t> index;                         // [2 * tokens - 1]
  std::vector<int32_t> global_keys;
  Buffer global_k, global_v;

  Head(const Case& c, uint64_t seed, float spread = 1.0f)
      : options(c),
        stride(RoundUp(c.head_dim, kPanelColumns)),
        q(c.tokens * stride),
        k(c.tokens * stride),
        v(c.tokens * stride),
        bias(RandomFloats(2 * c.tokens - 1, seed + 1, -2.0f, 2.0f)),
        query_positions(RandomFloats(c.tokens * c.buckets, seed + 2, -2.0f, 2.0f)),
        key_positions(RandomFloats(c.tokens * c.buckets, seed + 3, -2.0f, 2.0f)),
        index(2 * c.tokens - 1),
        global_k(c.globals * stride),
        global_v(c.globals * stride) {
    Random random(seed);
    for (size_t t = 0; t < c.tokens; ++t) {
      for (size_t d = 0; d < c.head_dim; ++d) {
        q[t * stride + d] = spread * random.Normal() / std::sqrt(static_cast<float>(c.head_dim));
        k[t * stride + d] = random.Normal();
        v[t * stride + d] = random.Normal();
      }
    }
    for (int32_t& bucket : index) bucket = static_cast<int32_t>(random.Index(c.buckets + 1));
    for (int32_t& bucket : index) bucket = std::min(bucket, static_cast<int32_t>(c.buckets) - 1);
    for (size_t g = 0; g < c.globals; ++g) {
      const size_t key = g * c.tokens / c.globals;
      global_keys.push_back(static_cast<int32_t>(key));
      std::copy_n(&k[key * stride], stride, &global_k[g * stride]);
      std::copy_n(&v[key * stride], stride, &global_v[g * stride]);
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
    if (options.buckets > 0) {
      if (options.by_query) args.query_positions = query_positions.data();
      if (options.by_key) args.key_positions = key_positions.data();
      args.position_stride = options.buckets;
      args.position_index = index.data() + options.tokens - 1;
    }
    args.global_keys = global_keys.data();
    args.global_count = options.globals;
    args.global_k = global_k.data();
    args.global_v = global_v.data();
    return args;
  }

  bool Sees(size_t i, size_t j) const {
    const size_t distance = i > j ? i - j : j - i;
    if (std::find(global_keys.begin(), global_keys.end(), static_cast<int32_t>(j)) !=
        global_keys.end()) {
      return true;
    }
    return distance <= options.window && (!options.causal || j <= i);
  }

  // Softmax rows [tokens, tokens] in double precision.
  std::vector<double> Weights() const {
    const size_t n = options.tokens;
    std::vector<double> weights(n * n, 0.0);
    for (size_t i = 0; i < n; ++i) {
      double max = -std::numeric_limits<double>::infinity(), sum = 0.0;
      for (size_t j = 0; j < n; ++j) {
        if (!Sees(i, j)) continue;
        double score = options.bias ? static_cast<double>(bias[n - 1 + j - i]) : 0.0;
        if (options.buckets > 0) {
          const auto bucket = static_cast<size_t>(index[n - 1 + i - j]);
          if (options.by_query) {
            score += static_cast<double>(query_positions[i * options.buckets + bucket]);
          }
          if (options.by_key) {
            score += static_cast<double>(key_positions[j * options.buckets + bucket]);
          }
        }
        for (size_t d = 0; d < options.head_dim; ++d) {
          score += static_cast<double>(q[i * stride + d]) * static_cast<double>(k[j * stride + d]);
        }
        weights[i * n + j] = score;
        max = std::max(max, score);
      }
      for (size_t j = 0; j < n; ++j) {
        if (!Sees(i, j)) continue;
        weights[i * n + j] = std::exp(weights[i * n + j] - max);
        sum += weights[i * n + j];
      }
      for (size_t j = 0; j < n; ++j) weights[i * n + j] /= sum;
    }
    return weights;
  }

  std::vector<double> Context(const std::vector<double>& weights) const {
    const size_t n = options.tokens;
    std::vector<double> context(n * options.head_dim, 0.0);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        for (size_t d = 0; d < options.head_dim; ++d) {
          context[i * options.head_dim + d] +=
              weights[i * n + j] * static_cast<double>(v[j * stride + d]);
        }
      }
    }
    return context;
  }
};

// Runs queries [begin, end) into rows of `out` with an odd stride.
void Run(const Head& head, size_t begin, size_t end, Buffer* out, size_t out_stride) {
  AttentionArgs args = head.Args();
  args.query_begin = begin;
  args.query_end = end;
  args.out = out->data();
  args.out_stride = out_stride;
  Buffer scratch(AttentionScratchFloats(args.tokens, args.head_dim));
  Attention(args, scratch.data());
  CHECK(scratch.GuardsIntact());
}

std::vector<float> RunAll(const Head& head) {
  const size_t dim = head.options.head_dim;
  Buffer out(head.options.tokens * dim, 3);
  Run(head, 0, head.options.tokens, &out, dim);
  CHECK(out.GuardsIntact());
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
  for (const size_t tokens : {1, 2, 17, 70, 130, 600}) {
    cases.push_back({tokens, 12, kNoWindow, false, false, 9});
    cases.push_back({tokens, 32, kNoWindow, tokens == 70, tokens == 17, 2 * tokens - 1, true});
    cases.push_back({tokens, 24, kNoWindow, false, false, 11, true, 0, false});
    for (const size_t window : {0, 3, 50}) {
      for (const size_t globals : {1, 3}) {
        if (globals > tokens) continue;
        cases.push_back({tokens, 20, window, false, false, 0, false, globals});
      }
    }
  }
  cases.push_back({1200, 8, 40, false, false, 0, false, 520});
  cases.push_back({530, 16, kNoWindow, true, true});
  cases.push_back({530, 16, 5});
  cases.push_back({1030, 8, 200, false, true});
  return cases;
}

TEST_CASE("attention agrees with double precision, and on all fused tiers bit for bit") {
  for (const Case& c : Cases()) {
    CAPTURE(Name(c));
    const Head head(c, 17 + c.tokens);
    const std::vector<double> context = head.Context(head.Weights());
    std::vector<float> first;
    ForEachTier([&](CpuTier) {
      const std::vector<float> out = RunAll(head);
      CHECK(MaxAbsDifference(out, context) < 3e-6);
      if (!ActiveTierIsFused()) return;
      if (first.empty()) first = out;
      CHECK(SameBits(out, first));
    });
  }
}

TEST_CASE("a query's bits do not depend on how its text is cut") {
  const Case cases[] = {{20, 32},
                        {65, 32},
                        {130, 64},
                        {530, 16},
                        {530, 16, 5},
                        {530, 16, 5, true},
                        {1100, 8, 300, false, true},
                        {130, 20, kNoWindow, false, false, 40, true},
                        {600, 16, 20, false, false, 0, false, 5}};
  for (const Case& c : cases) {
    CAPTURE(Name(c));
    const Head head(c, 1700 + c.tokens);
    ForEachTier([&](CpuTier) {
      const std::vector<float> whole = RunAll(head);
      for (const size_t piece : {1, 7, 16, 50, 64, 100}) {
        if (piece < 16 && c.tokens > 100) continue;
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
  const Head head({10, 20}, 5);
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

TEST_CASE("a window costs what it sees: keys outside it are not read") {
  const size_t tokens = 1200, window = 64, first = 900, end = 1000;
  Head head({tokens, 64, window}, 6);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (size_t t = 0; t < tokens; ++t) {
    if (t + window < first || t >= end + window) {
      std::fill_n(&head.k[t * 64], 64, nan);
      std::fill_n(&head.v[t * 64], 64, nan);
    }
  }
  ForEachTier([&](CpuTier) {
    Buffer out(tokens * 64);
    Run(head, first, end, &out, 64);
    CHECK(
        std::none_of(out.span().begin(), out.span().end(), [](float x) { return std::isnan(x); }));
  });
}

TEST_CASE("softmax rows agree with double precision and sum to one") {
  for (const Case& c : Cases()) {
    if (c.tokens > 130 && c.tokens != 530) continue;
    CAPTURE(Name(c));
    const Head head(c, 99 + c.tokens);
    const std::vector<double> expected = head.Weights();
    ForEachTier([&](CpuTier) {
      AttentionArgs args = head.Args();
      Buffer scratch(AttentionScratchFloats(c.tokens, c.head_dim));
      Buffer weights(c.tokens * c.tokens, 1, -1.0f);
      AttentionWeights(args, scratch.data(), weights.data(), c.tokens);
      CHECK(weights.GuardsIntact());
      CHECK(MaxAbsDifference(weights.span(), expected) < 2e-6);
      size_t unseen_weights = 0;
      for (size_t i = 0; i < c.tokens; ++i) {
        for (size_t j = 0; j < c.tokens; ++j) {
          unseen_weights += !head.Sees(i, j) && weights[i * c.tokens + j] != 0.0f;
        }
      }
      CHECK(WorstRowSum(weights.span(), c.tokens) < 5e-6);
      CHECK(unseen_weights == 0);
    });
  }
}

// Columns that no key has keep what they had.
TEST_CASE("softmax rows of a cut text are those of the whole text") {
  const Case cases[] = {{600, 32, 100},
                        {513, 20},
                        {300, 16, 40},
                        {130, 20, kNoWindow, true},
                        {90, 36, kNoWindow, false, true},
                        {600, 16, 20, false, false, 0, false, 5},
                        {70, 16, 3, false, false, 0, false, 5}};
  for (const Case& c : cases) {
    CAPTURE(Name(c));
    const Head head(c, 3);
    CheckRowsOfCutText(head.Args(), AttentionScratchFloats(c.tokens, c.head_dim), AttentionWeights);
  }
}

TEST_CASE("large scores neither overflow nor lose the winner") {
  for (const size_t tokens : {30, 520}) {
    const Case c{tokens, 32};
    const Head head(c, 8, 100.0f);
    const std::vector<double> context = head.Context(head.Weights());
    ForEachTier([&](CpuTier) { CHECK(MaxAbsDifference(RunAll(head), context) < 2e-4); });
  }
}

TEST_CASE("equal scores give the mean of the values") {
  for (const size_t tokens : {5, 100, 513}) {
    Head head({tokens, 16}, 4);
    std::fill(head.q.span().begin(), head.q.span().end(), 0.0f);
    std::fill(head.v.span().begin(), head.v.span().end(), 2.5f);
    ForEachTier([&](CpuTier) {
      CHECK(MaxAbsDifference(RunAll(head), std::vector<float>(tokens * 16, 2.5f)) < 1e-5);
    });
  }
}

TEST_CASE("a NaN key reaches every query and nothing hangs") {
  for (const size_t tokens : {9, 520}) {
    Head head({tokens, 32}, 4);
    head.k[3 * 32 + 1] = std::numeric_limits<float>::quiet_NaN();
    ForEachTier([&](CpuTier) {
      const std::vector<float> out = RunAll(head);
      CHECK(std::all_of(out.begin(), out.end(), [](float x) { return std::isnan(x); }));
    });
  }
}

TEST_CASE("a NaN query stays with itself") {
  Head head({70, 32}, 4);
  head.q[3 * 32 + 1] = std::numeric_limits<float>::quiet_NaN();
  ForEachTier([&](CpuTier) {
    const std::vector<float> out = RunAll(head);
    for (size_t i = 0; i < 70; ++i) CHECK(std::isnan(out[i * 32]) == (i == 3));
  });
}

}  // namespace
}  // namespace pozor::test
