// Runs a check once on every tier that this machine has.
#ifndef POZOR_TESTS_SUPPORT_FOR_EACH_TIER_H_
#define POZOR_TESTS_SUPPORT_FOR_EACH_TIER_H_

#include <doctest/doctest.h>

#include <string>

#include "kernels/cpu.h"

namespace pozor::test {

// Calls check(tier) with kernels capped at each supported tier in turn, lowest first, and removes
// the cap afterwards.
template <class Check>
void ForEachTier(Check&& check) {
  for (const CpuTier tier : SupportedCpuTiers()) {
    REQUIRE(SetCpuTierCap(tier));
    const std::string name(CpuTierName(tier));
    CAPTURE(name);
    check(tier);
  }
  ClearCpuTierCap();
}

// The same for the tiers whose bits must agree: those with fused multiply-add.
template <class Check>
void ForEachFusedTier(Check&& check) {
  ForEachTier([&](CpuTier tier) {
    if (ActiveTierIsFused()) check(tier);
  });
}

}  // namespace pozor::test

#endif  // POZOR_TESTS_SUPPORT_FOR_EACH_TIER_H_
