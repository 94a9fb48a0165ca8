#include "engine/roofline.h"

#include <doctest/doctest.h>

#include <string>

#include "tests/support/for_each_tier.h"

TEST_CASE("every loop that runs here has a rate a processor can have") {
  pozor::test::ForEachTier([](pozor::CpuTier tier) {
    for (const pozor::PeakLoop& loop : pozor::AllPeakLoops()) {
      if (loop.tier != tier) continue;
      const std::string name(loop.name);
      CAPTURE(name);
      const double rate = pozor::MeasurePeakWindow(loop, 1e-4);
      CHECK(rate > 0);
      CHECK(rate < 1e13);
    }
  });
}
