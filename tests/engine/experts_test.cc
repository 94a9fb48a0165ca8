#include "engine/experts.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "tests/support/random.h"

namespace pozor {
namespace {

struct Chosen {
  std::vector<int32_t> experts;
  std::vector<float> shares;
};

Chosen Choose(const std::vector<float>& logits, size_t count) {
  Chosen chosen{std::vector<int32_t>(count, -1), std::vector<float>(count, -1)};
  ChooseExperts(logits, chosen.experts, chosen.shares.data());
  return chosen;
}

TEST_CASE("the experts of the largest logits, ascending, with their shares of all") {
  for (const size_t count : {1, 2, 3, 8, 41, 256}) {
    const std::vector<float> logits = test::NormalFloats(count, count, 3.0f);
    for (size_t chosen = 1; chosen <= count; chosen += 1 + chosen / 2) {
      const Chosen got = Choose(logits, chosen);
      CHECK(std::is_sorted(got.experts.begin(), got.experts.end()));
      double sum = 0;
      for (const float logit : logits) sum += std::exp(double{logit});
      for (size_t i = 0; i < chosen; ++i) {
        const float logit = logits[static_cast<size_t>(got.experts[i])];
        const auto larger =
            std::count_if(logits.begin(), logits.end(), [&](float other) { return other > logit; });
        CHECK(static_cast<size_t>(larger) < chosen);
        CHECK(std::abs(double{got.shares[i]} - std::exp(double{logit}) / sum) < 1e-7);
      }
    }
  }
}

TEST_CASE("of equal experts the first, of any logits some") {
  CHECK(Choose({1, 2, 2, 2, 0}, 2).experts == std::vector<int32_t>{1, 2});
  CHECK(Choose({1, 1, 1}, 1).experts == std::vector<int32_t>{0});
  CHECK(Choose({0, 3, -1}, 3).experts == std::vector<int32_t>{0, 1, 2});
  CHECK(Choose({500, -500}, 2).shares == std::vector<float>{1, 0});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  CHECK(Choose({nan, 1, nan}, 2).experts == std::vector<int32_t>{0, 1});
  CHECK(Choose({1, inf, nan}, 2).experts == std::vector<int32_t>{0, 1});
}

}  // namespace
}  // namespace pozor
