#include "engine/waking.h"

#include <sched.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <mutex>
#include <vector>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace pozor {
namespace {

// A thread that works for callers. Its fields are touched under the mutex of Workers.
struct Worker {
  pid_t thread = 0;
  pid_t process = 0;  // a forked child does not have its parent's threads
  int taken = -1;     // the CPU that is out of its mask, or -1
  cpu_set_t left;     // its mask since then
};

class Workers {
 public:
  // Never destroyed: workers may end after static destructors have run.
  static Workers& Get() {
    static Workers* workers = new Workers;
    return *workers;
  }

  void Add(Worker* worker) {
    const std::lock_guard lock(mutex_);
    known_.push_back(worker);
  }
  void Remove(Worker* worker) {
    const std::lock_guard lock(mutex_);
    std::erase(known_, worker);
  }

  void GiveBack(Worker& worker) {
    const std::lock_guard lock(mutex_);
    if (worker.taken < 0) return;
    cpu_set_t now;
    if (sched_getaffinity(0, sizeof(now), &now) == 0 && CPU_EQUAL(&now, &worker.left)) {
      CPU_SET(worker.taken, &now);
      sched_setaffinity(0, sizeof(now), &now);
    }
    worker.taken = -1;
  }

  void KeepOff(int cpu, size_t most) {
    const std::lock_guard lock(mutex_);
    const pid_t process = getpid();
    for (Worker* worker : known_) {
      if (most == 0) return;
      if (worker->process != process || worker->taken == cpu) continue;
      Take(*worker, cpu);
      --most;
    }
  }

 private:
  static void Take(Worker& worker, int cpu) {
    cpu_set_t now;
    if (sched_getaffinity(worker.thread, sizeof(now), &now) != 0) return;
    if (worker.taken >= 0 && CPU_EQUAL(&now, &worker.left)) CPU_SET(worker.taken, &now);
    worker.taken = -1;
    if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &now) || CPU_COUNT(&now) == 1) return;
    CPU_CLR(cpu, &now);
    if (sched_setaffinity(worker.thread, sizeof(now), &now) != 0) return;
    worker.taken = cpu;
    worker.left = now;
  }

  std::mutex mutex_;
  std::vector<Worker*> known_;
};

// Of the calling thread, while it lives.
class Membership {
 public:
  Membership() {
    worker_.thread = static_cast<pid_t>(syscall(SYS_gettid));
    worker_.process = getpid();
    Workers::Get().Add(&worker_);
  }
  ~Membership() { Workers::Get().Remove(&worker_); }
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  Worker& worker() { return worker_; }

 private:
  Worker worker_;
};

}  // namespace

bool WakesBesideCaller() {
#if defined(__x86_64__)
  // CPUID.1:ECX[31]: a hypervisor is present.
  static const bool guest = [] {
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c >> 31) != 0;
  }();
  return guest;
#else
  return false;
#endif
}

void ArriveAsWorker() {
  thread_local Membership membership;
  Workers::Get().GiveBack(membership.worker());
}

void KeepWorkersOff(int cpu, size_t most) { Workers::Get().KeepOff(cpu, most); }

}  // namespace pozor
