// What one core can do: register-only arithmetic loops and read sweeps, the ceilings that reports
// divide by. No clock here: the caller times them (engine/roofline).
#ifndef POZOR_KERNELS_PEAK_H_
#define POZOR_KERNELS_PEAK_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "kernels/cpu.h"

namespace pozor {

struct PeakLoop {
  std::string_view name;  // <tier>-<types>, e.g. avx512-f32, avx512-vnni-u8s8
  CpuTier tier;
  double ops_per_iteration;  // multiplies and adds counted apart; of the values' own products only
  void (*run)(size_t iterations);
};

// Loops that this build contains; run only those whose tier CpuRunsTier() admits.
std::span<const PeakLoop> AllPeakLoops();

// Reads n bytes (a multiple of 1024, 64-byte aligned) once, at full width; returns a checksum.
uint64_t ReadSweep(const void* data, size_t n);

}  // namespace pozor

#endif  // POZOR_KERNELS_PEAK_H_
