// Properties of rows of attention that hold in every precision.
#ifndef POZOR_TESTS_KERNELS_ATTENTION_ROWS_H_
#define POZOR_TESTS_KERNELS_ATTENTION_ROWS_H_

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "kernels/attention.h"
#include "tests/support/buffer.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"

namespace pozor::test {

// How far the rows of `weights`, [tokens, tokens], are from adding up to one.
inline double WorstRowSum(std::span<const float> weights, size_t tokens) {
  double worst = 0.0;
  for (size_t i = 0; i < tokens; ++i) {
    double sum = 0.0;
    for (const float weight : weights.subspan(i * tokens, tokens)) sum += double{weight};
    worst = std::max(worst, std::abs(sum - 1.0));
  }
  return worst;
}

// `weigh(args, scratch, weights, stride)` gives queries 23 to 69 the same rows alone as among all
// queries of `args`, and leaves the columns behind the last key alone. On every tier.
template <class Weigh>
void CheckRowsOfCutText(const AttentionArgs& args, size_t scratch_floats, const Weigh& weigh) {
  const size_t tokens = args.tokens, begin = 23, rows = 47, stride = tokens + 5;
  ForEachTier([&](CpuTier) {
    Buffer scratch(scratch_floats);
    Buffer whole(tokens * tokens), part(rows * stride, 1, 7.0f);
    weigh(args, scratch.data(), whole.data(), tokens);
    AttentionArgs cut = args;
    cut.query_begin = begin;
    cut.query_end = begin + rows;
    weigh(cut, scratch.data(), part.data(), stride);
    CHECK(part.GuardsIntact());
    CHECK(scratch.GuardsIntact());
    size_t wrong = 0;
    for (size_t i = 0; i < rows; ++i) {
      const auto row = part.span().subspan(i * stride, stride);
      wrong += !SameBits(row.first(tokens), whole.span().subspan((begin + i) * tokens, tokens));
      for (const float untouched : row.last(5)) wrong += untouched != 7.0f;
    }
    CHECK(wrong == 0);
  });
}

}  // namespace pozor::test

#endif  // POZOR_TESTS_KERNELS_ATTENTION_ROWS_H_
