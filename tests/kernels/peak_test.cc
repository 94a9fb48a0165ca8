#include "kernels/peak.h"

#include <doctest/doctest.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/support/buffer.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/random.h"

using namespace pozor;
using namespace pozor::test;

TEST_CASE("every loop runs and is named after its tier") {
  for (const PeakLoop& loop : AllPeakLoops()) {
    const std::string name(loop.name);
    CAPTURE(name);
    const size_t dash = name.rfind('-');
    REQUIRE(dash != std::string::npos);
    CHECK(name.substr(0, dash) == CpuTierName(loop.tier));
    const std::string types = name.substr(dash + 1);
    CHECK((types == "f32" || types == "u8s8" || types == "bf16" || types == "bf16x3"));
    CHECK(loop.ops_per_iteration > 0);
  }
  for (const PeakLoop& loop : AllPeakLoops()) {
    if (CpuRunsTier(loop.tier)) loop.run(1000);
  }
}

TEST_CASE("a sweep reads every word") {
  const std::vector<float> random = RandomFloats(4096, 1);
  Buffer data(random, 0);
  ForEachTier([&](CpuTier) {
    for (const size_t bytes : {size_t{0}, size_t{1024}, size_t{5 * 1024}, size_t{16 * 1024}}) {
      CAPTURE(bytes);
      uint64_t expected = 0;
      for (size_t i = 0; i < bytes / sizeof(float); i += 2) {
        uint64_t word;
        std::memcpy(&word, data.data() + i, sizeof(word));
        expected ^= word;
      }
      CHECK(ReadSweep(data.data(), bytes) == expected);
    }
  });
}
