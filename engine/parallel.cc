#include "engine/parallel.h"

#include <oneapi/tbb/global_control.h>
#include <oneapi/tbb/info.h>
#include <oneapi/tbb/task_arena.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "engine/machine.h"
#include "engine/waking.h"

#if defined(__x86_64__) || defined(__i386__)
#include <immintrin.h>
#endif

namespace pozor {
namespace {

// How long a waiting thread looks before it goes to sleep: longer than the pieces of work that it
// waits for while a short text is encoded. Waking a CPU takes 50 us, and in a virtual machine the
// woken thread may stand behind its waker for 4 ms (waking.h).
constexpr std::chrono::microseconds kPatience{300};

// Workers whose masks a call changes: a microsecond or two each. In large pools the rest follow in
// later calls, and those who come early wake others.
constexpr size_t kMostKeptOff = 8;

// Looks at a lock before waiting for it: some microseconds.
constexpr int kLooksAtLock = 100;

void Pause() {
#if defined(__x86_64__) || defined(__i386__)
  _mm_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// One arena a number of threads, kept for the life of the process: workers outlive static
// destructors, so it is never destroyed.
class Pools {
 public:
  static Pools& Get() {
    static Pools* pools = new Pools;
    return *pools;
  }

  tbb::task_arena& For(size_t threads) {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<tbb::task_arena>& arena = arenas_[threads];
    if (arena == nullptr) {
      AdmitWorkers(threads);
      arena = std::make_unique<tbb::task_arena>(static_cast<int>(threads), 1);
    }
    return *arena;
  }

 private:
  // oneTBB makes as many workers as there are CPUs; who asks for more threads gets them.
  void AdmitWorkers(size_t threads) {
    using Control = tbb::global_control;
    if (threads <= Control::active_value(Control::max_allowed_parallelism)) return;
    control_.reset();
    control_ = std::make_unique<Control>(Control::max_allowed_parallelism, threads);
  }

  std::mutex mutex_;
  std::map<size_t, std::unique_ptr<tbb::task_arena>> arenas_;
  std::unique_ptr<tbb::global_control> control_;
};

// What a caller shares with the workers it invited. An invitation may be read long after the call
// is over: it holds the team, and looks at `work` only between a successful Enter and Leave.
class Team {
 public:
  // For a call's work; the caller is the first to hold the team.
  void Open(const std::function<void(size_t)>& work) {
    work_ = &work;
    next_worker_.store(1, std::memory_order_relaxed);
    state_.store(0, std::memory_order_relaxed);
    holders_.store(1, std::memory_order_relaxed);
  }

  void Help() {
    if (Enter()) (*work_)(next_worker_.fetch_add(1, std::memory_order_relaxed));
    Leave();
  }

  // After this nobody starts; returns, when those who had started are through, how many these were.
  size_t Close() {
    uint32_t state = state_.fetch_or(kClosed, std::memory_order_acq_rel) | kClosed;
    while (state != kClosed) {
      WaitWhileEqual(state_, state);
      state = state_.load(std::memory_order_acquire);
    }
    return next_worker_.load(std::memory_order_relaxed) - 1;
  }

  void Hold() { holders_.fetch_add(1, std::memory_order_relaxed); }
  // True: nobody holds it any more.
  bool Release() { return holders_.fetch_sub(1, std::memory_order_acq_rel) == 1; }

 private:
  static constexpr uint32_t kClosed = uint32_t{1} << 31;

  bool Enter() { return (state_.fetch_add(1, std::memory_order_acq_rel) & kClosed) == 0; }
  void Leave() {
    if (state_.fetch_sub(1, std::memory_order_acq_rel) == (kClosed | 1)) state_.notify_all();
  }

  const std::function<void(size_t)>* work_ = nullptr;
  std::atomic<size_t> next_worker_{1};
  std::atomic<uint32_t> state_{0};    // helpers inside, and kClosed
  std::atomic<uint32_t> holders_{0};  // the caller, and invitations nobody has read
};

// All teams there are, kept for the life of the process and used again. The process may end before
// an invitation is read: a team that belonged to its holders would then be a leak.
class Teams {
 public:
  static Teams& Get() {
    static Teams* teams = new Teams;
    return *teams;
  }

  Team& Open(const std::function<void(size_t)>& work) {
    const BriefLock lock(mutex_);
    if (free_.empty()) {
      all_.push_back(std::make_unique<Team>());
      free_.reserve(all_.capacity());  // giving one back allocates nothing
      free_.push_back(all_.back().get());
    }
    Team& team = *free_.back();
    free_.pop_back();
    team.Open(work);
    return team;
  }

  void Release(Team& team) {
    if (!team.Release()) return;
    const BriefLock lock(mutex_);
    free_.push_back(&team);
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Team>> all_;
  std::vector<Team*> free_;
};

// When a team last had all the workers that it had invited. If that was longer than kDozing ago
// they may be fast asleep, on CPUs that are asleep as well.
class LastCompleteTeam {
 public:
  static void IsNow() { last_.store(Now(), std::memory_order_relaxed); }
  static void IsUnknown() { last_.store(0, std::memory_order_relaxed); }
  static bool IsLongAgo() { return Now() - last_.load(std::memory_order_relaxed) > kDozing; }

 private:
  static constexpr int64_t kDozing = 300'000;  // nanoseconds

  static int64_t Now() {
    return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  static inline std::atomic<int64_t> last_{0};
};

}  // namespace

size_t ThreadsFor(size_t requested) {
  static const size_t granted = PlanThreads().threads;
  return requested == 0 ? granted : std::min(requested, kMostThreads);
}

void WaitWhileEqual(const std::atomic<uint32_t>& value, uint32_t old) {
  constexpr int kLooksBetweenTimes = 64;
  const auto start = std::chrono::steady_clock::now();
  do {
    for (int look = 0; look < kLooksBetweenTimes; ++look) {
      if (value.load(std::memory_order_acquire) != old) return;
      Pause();
    }
  } while (std::chrono::steady_clock::now() - start < kPatience);
  value.wait(old, std::memory_order_acquire);
}

BriefLock::BriefLock(std::mutex& mutex) : mutex_(mutex) {
  for (int look = 0; look < kLooksAtLock; ++look) {
    if (mutex_.try_lock()) return;
    Pause();
  }
  mutex_.lock();
}

void RunTeam(size_t threads, const std::function<void(size_t worker)>& work) {
  if (threads <= 1) return work(0);
  // Whatever happens, nobody is inside any more when `work` ends.
  struct Closer {
    Team& team;
    size_t invited;
    ~Closer() {
      const bool complete = team.Close() == invited;
      Teams::Get().Release(team);
      complete ? LastCompleteTeam::IsNow() : LastCompleteTeam::IsUnknown();
    }
  };
  const Closer closer{Teams::Get().Open(work), threads - 1};
  tbb::task_arena& arena = Pools::Get().For(threads);
  if (WakesBesideCaller() && LastCompleteTeam::IsLongAgo()) {
    KeepWorkersOff(sched_getcpu(), std::min(threads - 1, kMostKeptOff));
  }
  for (size_t i = 1; i < threads; ++i) {
    closer.team.Hold();
    arena.enqueue([&team = closer.team] {
      ArriveAsWorker();
      team.Help();
      Teams::Get().Release(team);
    });
  }
  work(0);
}

void RunInPool(size_t threads, const std::function<void()>& work) {
  if (threads <= 1) {
    tbb::task_arena alone(1, 1);
    alone.execute(work);
  } else {
    Pools::Get().For(threads).execute(work);
  }
}

}  // namespace pozor
