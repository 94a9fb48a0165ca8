// What this process may use: cores by affinity, cgroup quota and OMP_NUM_THREADS; caches; memory.
#ifndef POZOR_ENGINE_MACHINE_H_
#define POZOR_ENGINE_MACHINE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace pozor {

struct ThreadPlan {
  size_t threads = 1;
  std::string reason;                 // "2: affinity mask of 2 CPUs"
  std::vector<std::string> warnings;  // one line each: an environment value that was ignored
};

// The smallest of: CPUs of the affinity mask, the cgroup v1 or v2 CPU quota rounded up (at least
// 1), and a valid OMP_NUM_THREADS. Never fails.
ThreadPlan PlanThreads();

struct CacheSizes {
  size_t l1d = 0, l2 = 0, l3 = 0;  // bytes; 0: the machine does not say
};
CacheSizes DetectCaches();

// Peak resident set of this process (VmHWM) and its current one, in bytes; 0 if unknown.
size_t PeakResidentBytes();
size_t ResidentBytes();

}  // namespace pozor

#endif  // POZOR_ENGINE_MACHINE_H_
