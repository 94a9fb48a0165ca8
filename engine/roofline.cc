#include "engine/roofline.h"

#include <chrono>
#include <cstddef>

namespace pozor {

double MeasurePeakWindow(const PeakLoop& loop, double seconds) {
  using Clock = std::chrono::steady_clock;
  constexpr size_t kBatch = 1000;  // a few microseconds
  size_t iterations = 0;
  double elapsed = 0;
  const Clock::time_point start = Clock::now();
  do {
    loop.run(kBatch);
    iterations += kBatch;
    elapsed = std::chrono::duration<double>(Clock::now() - start).count();
  } while (elapsed < seconds);
  return static_cast<double>(iterations) * loop.ops_per_iteration / elapsed;
}

}  // namespace pozor
