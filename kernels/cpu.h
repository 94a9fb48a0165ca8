// Which instruction-set tiers this CPU can run, and the cap a user may set on them.
//
// Tiers of one vendor family are ordered: a tier may use everything that the tiers before it use.
// The cap is process-wide and chosen before the first kernel runs (or between runs in tests).
#ifndef POZOR_KERNELS_CPU_H_
#define POZOR_KERNELS_CPU_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pozor {

enum class CpuTier : uint8_t {
  // x86-64
  kSse4,        // baseline, no fused multiply-add: agrees with the others within 2e-5 only
  kAvx2,        // AVX2 + FMA
  kAvxVnni,     // AVX2 + AVX-VNNI
  kAvx512,      // F, VL, DQ, BW, CD
  kAvx512Vnni,  // + AVX512-VNNI
  kZen4,        // + AVX512-BF16 on AMD
  kAmx,         // + AMX int8 and bf16 (tile state granted by the kernel)
  // AArch64
  kNeon,
  kDotprod,
  kI8mm,  // + I8MM and BF16, which Armv8.6 has together
  kSve,
};

// Lower-case name as in POZOR_CPU and --cpu: "sse4", "avx2", "avx-vnni", "avx512", ...
std::string_view CpuTierName(CpuTier tier);

// False if `name` is not one of the closed list.
bool ParseCpuTier(std::string_view name, CpuTier* tier);

// Every name of the list, for messages.
std::string CpuTierNames();

// Tiers that this machine (CPU and OS) can run, lowest first. Never empty.
std::vector<CpuTier> SupportedCpuTiers();

// True if the CPU and the system can execute what kernels of `tier` use, whatever the cap. More
// than SupportedCpuTiers(): AVX512-BF16 on Intel is slower than f32 and makes no zen4 of that CPU,
// but kernels of zen4 run on it.
bool CpuRunsTier(CpuTier tier);

// True if what is written for `needed` may run on a CPU that has it while `active` is the tier:
// every tier includes those below it, but a cap at AVX-512 leaves out dot products of bytes of any
// kind.
bool TierAdmits(CpuTier active, CpuTier needed);

// True for SupportedCpuTiers() and for the tier that EmulateCpuTier names.
bool IsCpuTierSupported(CpuTier tier);

// For tests that have an emulator of what this machine lacks: from now on `tier` may be made the
// cap. Without a tier, none may any more.
void EmulateCpuTier(std::optional<CpuTier> tier);

// Best supported tier that the cap admits.
CpuTier ActiveCpuTier();

// Caps kernels at `tier` from now on; false, and nothing changed, if this machine cannot run it.
bool SetCpuTierCap(CpuTier tier);

// Removes the cap.
void ClearCpuTierCap();

// Reads POZOR_CPU. Empty string: applied, or not set. Otherwise one sentence that names the bad
// value and the admissible ones.
std::string ApplyCpuTierFromEnvironment();

// Sentence for `pozor info`: why this tier is the active one.
std::string ActiveCpuTierReason();

// True if the active tier computes with fused multiply-add, so that its bits equal those of every
// other tier with it.
bool ActiveTierIsFused();

// Marketing name of the CPU as the machine reports it, or "unknown".
std::string CpuModelName();

}  // namespace pozor

#endif  // POZOR_KERNELS_CPU_H_
