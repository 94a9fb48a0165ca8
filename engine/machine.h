// What this process may use: cores by affinity, cgroup quota and OMP_NUM_THREADS; caches; memory.
#ifndef POZOR_ENGINE_MACHINE_H_
#define POZOR_ENGINE_MACHINE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "pozor/status.h"

namespace pozor {

struct ThreadPlan {
  size_t threads = 1;
  std::string reason;                 // "2: affinity mask of 2 CPUs"
  std::vector<std::string> warnings;  // one line each: an environment value that was ignored
};

// What the plan looks at. Tests put a folder with proc/ and sys/ in place of the root.
struct MachineView {
  size_t affinity_cpus = 1;
  std::string omp_num_threads;  // empty: not set
  std::string root;             // before /proc/self and the cgroup mounts

  static MachineView Current();
};

// The smallest of: CPUs of the affinity mask, the cgroup v1 or v2 CPU quota rounded up (at least
// 1), and a valid OMP_NUM_THREADS. Never fails.
ThreadPlan PlanThreads();
ThreadPlan PlanThreads(const MachineView& view);

struct CacheSizes {
  size_t l1d = 0, l2 = 0, l3 = 0;  // bytes; 0: the machine does not say
};
CacheSizes DetectCaches();
CacheSizes DetectCaches(const std::string& root);

// Peak resident set of this process (VmHWM) and its current one, in bytes; 0 if unknown.
size_t PeakResidentBytes();
size_t ResidentBytes();

// Current resident set, with at least `mapped` bytes of file pages: those of a mapped file that has
// not been read through yet.
size_t ResidentBytesWith(size_t mapped);

// "42 MiB", rounded up.
std::string MebibyteText(size_t bytes);

// ResourceExhausted, with both numbers, if `what` ("the model's weights") takes the process to
// `needed` bytes, beyond a `ceiling` other than 0.
Status CheckCeiling(const std::string& what, size_t ceiling, size_t needed);

}  // namespace pozor

#endif  // POZOR_ENGINE_MACHINE_H_
