#include "engine/roofline.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>

#include "engine/machine.h"
#include "engine/memory.h"
#include "kernels/cpu.h"
#include "kernels/types.h"

namespace pozor {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Best rate of windows of about a millisecond, over `seconds`: a neighbour on the same machine
// can only slow a window down.
template <class Window>
double BestOf(double seconds, Window&& window) {
  const Clock::time_point start = Clock::now();
  double best = 0;
  do {
    best = std::max(best, window());
  } while (SecondsSince(start) < seconds);
  return best;
}

ReadRate MeasureReads(std::string level, size_t bytes, double seconds) {
  constexpr size_t kSweepUnit = 1024;
  bytes = RoundUp(bytes, kSweepUnit);
  const AlignedBuffer buffer(bytes, /*huge_pages=*/true);
  // Untouched memory is one shared zero page and would be read from L1.
  std::memset(buffer.data(), 1, bytes);
  const size_t sweeps = std::max<size_t>(1, (size_t{16} << 20) / bytes);
  volatile uint64_t sink = ReadSweep(buffer.data(), bytes);
  const double rate = BestOf(seconds, [&] {
    const Clock::time_point start = Clock::now();
    for (size_t i = 0; i < sweeps; ++i) sink = sink ^ ReadSweep(buffer.data(), bytes);
    return static_cast<double>(sweeps * bytes) / SecondsSince(start);
  });
  return {std::move(level), bytes, rate * 1e-9};
}

}  // namespace

double MeasurePeakWindow(const PeakLoop& loop, double seconds) {
  constexpr size_t kBatch = 1000;  // about 4 us
  size_t iterations = 0;
  const Clock::time_point start = Clock::now();
  double elapsed = 0;
  do {
    loop.run(kBatch);
    iterations += kBatch;
    elapsed = SecondsSince(start);
  } while (elapsed < seconds);
  return static_cast<double>(iterations) * loop.ops_per_iteration / elapsed;
}

Roofline MeasureRoofline(double seconds) {
  Roofline out;
  const std::vector<CpuTier> tiers = SupportedCpuTiers();
  for (const PeakLoop& loop : AllPeakLoops()) {
    if (std::find(tiers.begin(), tiers.end(), loop.tier) == tiers.end()) continue;
    const double rate = BestOf(seconds, [&] { return MeasurePeakWindow(loop, 1e-3); });
    out.peaks.push_back({std::string(loop.name), rate * 1e-9});
  }

  constexpr size_t kLargestBuffer = size_t{512} << 20;
  const CacheSizes caches = DetectCaches();
  if (caches.l1d != 0) out.reads.push_back(MeasureReads("L1", caches.l1d / 2, seconds));
  if (caches.l2 != 0) out.reads.push_back(MeasureReads("L2", caches.l2 / 2, seconds));
  if (caches.l3 != 0) {
    // A share of it: other cores and other machines on the same chip use the cache as well.
    const size_t bytes = std::min(caches.l3 / 4, 8 * caches.l2);
    out.reads.push_back(MeasureReads("L3", bytes, seconds));
  }
  const size_t last = std::max(caches.l2, caches.l3);
  if (last != 0 && last < kLargestBuffer) {
    out.reads.push_back(MeasureReads("DRAM", std::min(4 * last, kLargestBuffer), seconds));
  }
  return out;
}

}  // namespace pozor
