// The ceilings of one core, measured: arithmetic per tier, reads per cache level. Only reports
// divide by them; nothing chooses by them.
#ifndef POZOR_ENGINE_ROOFLINE_H_
#define POZOR_ENGINE_ROOFLINE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/peak.h"

namespace pozor {

// Operations a second of one window of about `seconds`. Run loops of SupportedCpuTiers() only.
double MeasurePeakWindow(const PeakLoop& loop, double seconds);

struct PeakRate {
  std::string name;      // as in PeakLoop
  double gigaflops = 0;  // best of the windows
};

struct ReadRate {
  std::string level;  // "L1", "L2", "L3", "DRAM"
  size_t bytes = 0;   // size of the buffer that was read again and again
  double gigabytes_per_second = 0;
};

struct Roofline {
  std::vector<PeakRate> peaks;
  std::vector<ReadRate> reads;
};

// One thread, about `seconds` an entry. The DRAM entry allocates 4x the last cache, at most 512
// MiB; on a machine with a larger cache, which the buffer then fits, there is none.
Roofline MeasureRoofline(double seconds);

}  // namespace pozor

#endif  // POZOR_ENGINE_ROOFLINE_H_
