#include "kernels/cpu.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <string>
#include <vector>

#include "kernels/gemm.h"
#include "tests/support/for_each_tier.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "tests/kernels/cpu_test.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

int64_t CompiledTarget() { return HWY_TARGET; }

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pozor {
namespace {

HWY_EXPORT(CompiledTarget);

// The Highway target whose code a dispatched kernel runs now.
int64_t DispatchedTarget() { return HWY_DYNAMIC_DISPATCH(CompiledTarget)(); }

constexpr CpuTier kAllTiers[] = {
    CpuTier::kSse4,       CpuTier::kAvx2, CpuTier::kAvxVnni, CpuTier::kAvx512,
    CpuTier::kAvx512Vnni, CpuTier::kZen4, CpuTier::kAmx,     CpuTier::kNeon,
    CpuTier::kDotprod,    CpuTier::kI8mm, CpuTier::kSve,
};

bool IsSupported(CpuTier tier) {
  const std::vector<CpuTier> supported = SupportedCpuTiers();
  return std::find(supported.begin(), supported.end(), tier) != supported.end();
}

// Sets an environment variable for the life of a test.
class ScopedVariable {
 public:
  ScopedVariable(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~ScopedVariable() {
    unsetenv(name_);
    ClearCpuTierCap();
  }

 private:
  const char* name_;
};

}  // namespace

TEST_CASE("every tier admits itself and those below it, but AVX-512 alone no AVX-VNNI") {
  for (const CpuTier active : kAllTiers) {
    for (const CpuTier needed : kAllTiers) {
      const bool left_out = active == CpuTier::kAvx512 && needed == CpuTier::kAvxVnni;
      CAPTURE(std::string(CpuTierName(active)));
      CAPTURE(std::string(CpuTierName(needed)));
      CHECK(TierAdmits(active, needed) == (needed <= active && !left_out));
    }
  }
}

TEST_CASE("tier names are a closed list") {
  std::set<std::string_view> names;
  for (const CpuTier tier : kAllTiers) {
    const std::string name(CpuTierName(tier));
    CAPTURE(name);
    CHECK(names.insert(CpuTierName(tier)).second);
    CpuTier parsed;
    REQUIRE(ParseCpuTier(name, &parsed));
    CHECK(parsed == tier);
    CHECK(CpuTierNames().find(name) != std::string::npos);
  }
  CpuTier untouched = CpuTier::kAvx2;
  for (const char* name : {"", "AVX2", "avx", "avx512vnni", "avx2 ", "unknown"}) {
    CHECK_FALSE(ParseCpuTier(name, &untouched));
  }
  CHECK(untouched == CpuTier::kAvx2);
}

TEST_CASE("supported tiers are ascending and the best one is active") {
  const std::vector<CpuTier> tiers = SupportedCpuTiers();
  REQUIRE(!tiers.empty());
  CHECK(std::is_sorted(tiers.begin(), tiers.end()));
  ClearCpuTierCap();
  CHECK(ActiveCpuTier() == tiers.back());
  CHECK(!CpuModelName().empty());
}

TEST_CASE("a cap restricts Highway's dispatch and the GEMM table") {
  std::set<int64_t> targets;
  test::ForEachTier([&](CpuTier tier) {
    CHECK(ActiveCpuTier() == tier);
    const GemmKernel& kernel = FindGemmKernel(PackedLayout::kF32x16, 128);
    CHECK(kernel.tier <= tier);
    const int64_t target = DispatchedTarget();
    targets.insert(target);
    switch (tier) {
#if HWY_ARCH_X86
      case CpuTier::kSse4:
        CHECK(target == HWY_SSE4);
        CHECK(kernel.tier == CpuTier::kSse4);
        CHECK_FALSE(ActiveTierIsFused());
        break;
      case CpuTier::kAvx2:
      case CpuTier::kAvxVnni:
        CHECK(target == HWY_AVX2);
        CHECK(kernel.tier == CpuTier::kAvx2);
        CHECK(ActiveTierIsFused());
        break;
      default:
        CHECK(target == HWY_AVX3);
        CHECK(kernel.tier >= CpuTier::kAvx512);
        CHECK(ActiveTierIsFused());
#else
      case CpuTier::kSve:
        CHECK((target & (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)) != 0);
        break;
      default:
        CHECK((target & (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)) == 0);
        CHECK(ActiveTierIsFused());
#endif
    }
  });
  CHECK(ActiveCpuTier() == SupportedCpuTiers().back());
  CHECK(targets.count(DispatchedTarget()) == 1);
}

TEST_CASE("a tier that the machine lacks is no cap") {
  for (const CpuTier tier : kAllTiers) {
    if (IsSupported(tier)) continue;
    CHECK_FALSE(SetCpuTierCap(tier));
    CHECK(ActiveCpuTier() == SupportedCpuTiers().back());
  }
}

TEST_CASE("POZOR_CPU") {
  SUBCASE("empty: nothing happens") {
    ScopedVariable variable("POZOR_CPU", "");
    CHECK(ApplyCpuTierFromEnvironment() == "");
    CHECK(ActiveCpuTier() == SupportedCpuTiers().back());
  }
  SUBCASE("a supported tier caps, and the reason says so") {
    const CpuTier lowest = SupportedCpuTiers().front();
    ScopedVariable variable("POZOR_CPU", std::string(CpuTierName(lowest)).c_str());
    CHECK(ApplyCpuTierFromEnvironment() == "");
    CHECK(ActiveCpuTier() == lowest);
    CHECK(ActiveCpuTierReason().find("capped") != std::string::npos);
  }
  SUBCASE("an unknown name is an error that lists the names") {
    ScopedVariable variable("POZOR_CPU", "avx3");
    const std::string error = ApplyCpuTierFromEnvironment();
    CHECK(error.find("avx3") != std::string::npos);
    CHECK(error.find("avx512-vnni") != std::string::npos);
    CHECK(ActiveCpuTier() == SupportedCpuTiers().back());
  }
  SUBCASE("a tier of other machines is an error that lists this one's") {
    for (const CpuTier tier : kAllTiers) {
      if (IsSupported(tier)) continue;
      ScopedVariable variable("POZOR_CPU", std::string(CpuTierName(tier)).c_str());
      const std::string error = ApplyCpuTierFromEnvironment();
      CHECK(error.find(CpuTierName(SupportedCpuTiers().front())) != std::string::npos);
    }
  }
}

}  // namespace pozor
#endif  // HWY_ONCE
