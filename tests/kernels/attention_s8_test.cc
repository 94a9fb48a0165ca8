#include "kernels/attention_s8.h"

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <vector>

#include "kernels/types.h"
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

std::vector<float> RunS8(const Head& head) {
  AttentionArgs args = head.Args();
  Buffer out(args.tokens * args.head_dim, 3);
  Buffer scratch(AttentionS8ScratchFloats(args.tokens, args.head_dim));
  args.out = out.data();
  args.out_stride = args.head_dim;
  AttentionS8(args, scratch.data());
  CHECK(out.GuardsIntact());
  CHECK(scratch.GuardsIntact());
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

TEST_CASE("int8 attention is near f32 attention") {
  const Case cases[] = {{1, 32},   {2, 16},      {17, 32},          {40, 64},
                        {130, 24}, {100, 32, 5}, {70, 64, 9, true}, {50, 32, kNoWindow, true, true},
                        {600, 32}, {1100, 16}};
  for (const Case& c : cases) {
    CAPTURE(Name(c));
    const Head head(c, 17 + c.tokens);
    const std::vector<float> want = RunF32(head);
    ForEachTier([&](CpuTier) { CHECK(MaxAbsDifference(RunS8(head), want) < 0.06); });
  }
}

}  // namespace
}  // namespace pozor::test
