#include "kernels/cpu.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "kernels/simd-inl.h"

#if HWY_ARCH_X86
#include <cpuid.h>
#endif
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#if HWY_ARCH_ARM_A64
#include <sys/auxv.h>
#endif
#endif

namespace pozor {
namespace {

struct TierRow {
  CpuTier tier;
  std::string_view name;
};

constexpr TierRow kTiers[] = {
    {CpuTier::kSse4, "sse4"},
    {CpuTier::kAvx2, "avx2"},
    {CpuTier::kAvxVnni, "avx-vnni"},
    {CpuTier::kAvx512, "avx512"},
    {CpuTier::kAvx512Vnni, "avx512-vnni"},
    {CpuTier::kZen4, "zen4"},
    {CpuTier::kAmx, "amx"},
    {CpuTier::kNeon, "neon"},
    {CpuTier::kDotprod, "dotprod"},
    {CpuTier::kI8mm, "i8mm"},
    {CpuTier::kSve, "sve"},
};

#if HWY_ARCH_X86

struct CpuidLeaf {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuidLeaf Cpuid(unsigned leaf, unsigned subleaf) {
  CpuidLeaf out;
  // Zeros if the CPU does not have the leaf.
  (void)__get_cpuid_count(leaf, subleaf, &out.eax, &out.ebx, &out.ecx, &out.edx);
  return out;
}

bool Bit(unsigned word, int bit) { return ((word >> bit) & 1u) != 0; }

// Asks Linux for the AMX tile state, once for the process; the answer covers all its threads.
// False elsewhere, in sandboxes that hide the call, and if a thread's signal stack is too small.
bool AmxStateGranted() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr long kRequestStatePermission = 0x1023;
  constexpr long kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestStatePermission, kTileData) == 0;
#else
  return false;
#endif
}

// True if the system saves tile configurations and tiles: bits 17 and 18 of XCR0.
bool SystemSavesTiles() {
  constexpr unsigned kTileState = 3u << 17;
  if (!Bit(Cpuid(1, 0).ecx, 27)) return false;  // OSXSAVE: XGETBV may be executed
  unsigned low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & kTileState) == kTileState;
}

bool HasAvx512Bf16() { return Cpuid(7, 0).eax >= 1 && Bit(Cpuid(7, 1).eax, 5); }

std::vector<CpuTier> DetectTiers() {
  // Highway's answer includes the operating system's part (XCR0) for AVX2 and AVX-512.
  const int64_t targets = hwy::SupportedTargets();
  const CpuidLeaf vendor = Cpuid(0, 0);
  const bool amd = vendor.ebx == signature_AMD_ebx && vendor.ecx == signature_AMD_ecx &&
                   vendor.edx == signature_AMD_edx;
  const CpuidLeaf leaf7 = Cpuid(7, 0);
  const CpuidLeaf leaf7_1 = leaf7.eax >= 1 ? Cpuid(7, 1) : CpuidLeaf();

  std::vector<CpuTier> tiers = {CpuTier::kSse4};
  if ((targets & HWY_AVX2) == 0) return tiers;
  tiers.push_back(CpuTier::kAvx2);
  if (Bit(leaf7_1.eax, 4)) tiers.push_back(CpuTier::kAvxVnni);
  if ((targets & HWY_AVX3) == 0) return tiers;
  tiers.push_back(CpuTier::kAvx512);
  if (!Bit(leaf7.ecx, 11)) return tiers;
  tiers.push_back(CpuTier::kAvx512Vnni);
  if (amd && HasAvx512Bf16()) tiers.push_back(CpuTier::kZen4);
  const bool amx = Bit(leaf7.edx, 22) && Bit(leaf7.edx, 24) && Bit(leaf7.edx, 25);
  if (amx && SystemSavesTiles() && AmxStateGranted()) tiers.push_back(CpuTier::kAmx);
  return tiers;
}

// Instructions of a tier on a CPU that the tier is not for.
bool RunsForeignTier(const std::vector<CpuTier>& own, CpuTier tier) {
  return tier == CpuTier::kZen4 && HasAvx512Bf16() &&
         std::find(own.begin(), own.end(), CpuTier::kAvx512) != own.end();
}

// What Highway may dispatch to under a cap, as a mask of targets to disable.
int64_t TargetsAbove(CpuTier cap) {
  constexpr int64_t kAllAvx3 = HWY_AVX3 | HWY_AVX3_DL | HWY_AVX3_ZEN4 | HWY_AVX3_SPR;
  switch (cap) {
    case CpuTier::kSse4:
      return kAllAvx3 | HWY_AVX2;
    case CpuTier::kAvx2:
    case CpuTier::kAvxVnni:
      return kAllAvx3;
    default:
      return 0;
  }
}

#elif HWY_ARCH_ARM_A64

unsigned long Hwcap(bool second) {
#if defined(__linux__)
  return getauxval(second ? AT_HWCAP2 : AT_HWCAP);
#else
  return 0;
#endif
}

std::vector<CpuTier> DetectTiers() {
  constexpr unsigned long kHwcapDotprod = 1ul << 20, kHwcapSve = 1ul << 22;
  constexpr unsigned long kHwcap2I8mmBf16 = 3ul << 13;
  std::vector<CpuTier> tiers = {CpuTier::kNeon};
  if ((Hwcap(false) & kHwcapDotprod) != 0) tiers.push_back(CpuTier::kDotprod);
  if ((Hwcap(true) & kHwcap2I8mmBf16) == kHwcap2I8mmBf16) tiers.push_back(CpuTier::kI8mm);
  if ((Hwcap(false) & kHwcapSve) != 0) tiers.push_back(CpuTier::kSve);
  return tiers;
}

bool RunsForeignTier(const std::vector<CpuTier>&, CpuTier) { return false; }

int64_t TargetsAbove(CpuTier cap) {
  return cap == CpuTier::kSve ? 0 : HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128;
}

#else
#error "Pozor's tiers cover x86-64 and AArch64"
#endif

// Never destroyed: when the process ends, threads may still be computing.
const std::vector<CpuTier>& CachedTiers() {
  static const auto* const tiers = new std::vector<CpuTier>(DetectTiers());
  return *tiers;
}

// The cap as a CpuTier, or kNoCap.
constexpr int kNoCap = -1;
std::atomic<int> tier_cap{kNoCap};
std::atomic<int> emulated_tier{kNoCap};

void RestrictHighway(int64_t disabled_targets) {
  hwy::DisableTargets(disabled_targets);
  hwy::GetChosenTarget().Update(hwy::SupportedTargets());
}

}  // namespace

std::string_view CpuTierName(CpuTier tier) {
  for (const TierRow& row : kTiers) {
    if (row.tier == tier) return row.name;
  }
  return "unknown";
}

bool ParseCpuTier(std::string_view name, CpuTier* tier) {
  for (const TierRow& row : kTiers) {
    if (row.name != name) continue;
    *tier = row.tier;
    return true;
  }
  return false;
}

std::string CpuTierNames() {
  std::string names;
  for (const TierRow& row : kTiers) {
    if (!names.empty()) names += ' ';
    names += row.name;
  }
  return names;
}

std::vector<CpuTier> SupportedCpuTiers() { return CachedTiers(); }

bool CpuRunsTier(CpuTier tier) {
  const std::vector<CpuTier>& tiers = CachedTiers();
  return std::find(tiers.begin(), tiers.end(), tier) != tiers.end() || RunsForeignTier(tiers, tier);
}

bool TierAdmits(CpuTier active, CpuTier needed) {
  if (active == CpuTier::kAvx512 && needed == CpuTier::kAvxVnni) return false;
  return needed <= active;
}

CpuTier ActiveCpuTier() {
  const std::vector<CpuTier>& tiers = CachedTiers();
  const int cap = tier_cap.load(std::memory_order_relaxed);
  if (cap == kNoCap) return tiers.back();
  return static_cast<CpuTier>(cap);
}

bool IsCpuTierSupported(CpuTier tier) {
  const std::vector<CpuTier>& tiers = CachedTiers();
  return std::find(tiers.begin(), tiers.end(), tier) != tiers.end() ||
         emulated_tier.load(std::memory_order_relaxed) == static_cast<int>(tier);
}

void EmulateCpuTier(std::optional<CpuTier> tier) {
  emulated_tier.store(tier.has_value() ? static_cast<int>(*tier) : kNoCap,
                      std::memory_order_relaxed);
}

bool SetCpuTierCap(CpuTier tier) {
  if (!IsCpuTierSupported(tier)) return false;
  tier_cap.store(static_cast<int>(tier), std::memory_order_relaxed);
  RestrictHighway(TargetsAbove(tier));
  return true;
}

void ClearCpuTierCap() {
  tier_cap.store(kNoCap, std::memory_order_relaxed);
  RestrictHighway(0);
}

std::string ApplyCpuTierFromEnvironment() {
  const char* value = std::getenv("POZOR_CPU");
  if (value == nullptr || *value == '\0') return "";
  CpuTier tier;
  if (!ParseCpuTier(value, &tier)) {
    return "POZOR_CPU=" + std::string(value) + ": no such CPU tier; use one of " + CpuTierNames();
  }
  if (SetCpuTierCap(tier)) return "";
  std::string supported;
  for (const CpuTier own : CachedTiers()) {
    if (!supported.empty()) supported += ' ';
    supported += CpuTierName(own);
  }
  return "POZOR_CPU=" + std::string(value) + ": this CPU cannot run it; use one of " + supported;
}

std::string ActiveCpuTierReason() {
  const std::string best(CpuTierName(CachedTiers().back()));
  if (tier_cap.load(std::memory_order_relaxed) == kNoCap) return "best tier of this CPU";
  return "capped by request; this CPU can run " + best;
}

bool ActiveTierIsFused() { return ActiveCpuTier() != CpuTier::kSse4; }

#if HWY_ARCH_X86

std::string CpuModelName() {
  constexpr unsigned kFirstBrandLeaf = 0x80000002u;
  char name[3 * 16 + 1] = {};
  for (unsigned i = 0; i < 3; ++i) {
    const CpuidLeaf leaf = Cpuid(kFirstBrandLeaf + i, 0);
    const unsigned words[4] = {leaf.eax, leaf.ebx, leaf.ecx, leaf.edx};
    std::memcpy(name + 16 * i, words, sizeof(words));
  }
  std::string trimmed(name);
  const size_t first = trimmed.find_first_not_of(' ');
  if (first == std::string::npos) return "unknown";
  return trimmed.substr(first, trimmed.find_last_not_of(' ') - first + 1);
}

#else

std::string CpuModelName() {
  constexpr unsigned long kHwcapCpuid = 1ul << 11;  // the kernel lets programs read MIDR_EL1
  if ((Hwcap(false) & kHwcapCpuid) == 0) return "unknown";
  uint64_t midr = 0;
  asm("mrs %0, MIDR_EL1" : "=r"(midr));
  static constexpr char kHex[] = "0123456789abcdef";
  std::string name = "AArch64 implementer 0x";
  name += kHex[(midr >> 28) & 15];
  name += kHex[(midr >> 24) & 15];
  name += " part 0x";
  for (int shift = 12; shift >= 4; shift -= 4) name += kHex[(midr >> shift) & 15];
  return name;
}

#endif

}  // namespace pozor
