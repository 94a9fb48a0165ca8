// Threads: all of them are oneTBB's workers and the callers' own. The only door to oneTBB beside
// graph.cc.
#ifndef POZOR_ENGINE_PARALLEL_H_
#define POZOR_ENGINE_PARALLEL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>

namespace pozor {

// No call has more threads than this: far more than CPUs bring nothing, and oneTBB ends the process
// where the system refuses to make one.
inline constexpr size_t kMostThreads = 1024;

// Threads of a call that asked for `requested`; 0: what the machine grants (planned once a
// process).
size_t ThreadsFor(size_t requested);

// Runs work(0) on the calling thread and invites idle workers, `threads` - 1 at most, to run
// work(1), work(2), ... beside it, each number once. Nobody waits for an invited worker to come:
// work(0) alone must be able to finish everything, and each call returns when nothing is left that
// it could take. Returns once those that came have returned. `work` must not throw. All callers
// that ask for the same number of threads share one pool.
void RunTeam(size_t threads, const std::function<void(size_t worker)>& work);

// Runs `work` as one of the `threads` threads of the pool; oneTBB tasks that it spawns stay there.
// With one thread every caller has a pool of its own.
void RunInPool(size_t threads, const std::function<void()>& work);

// Waits until `value` differs from `old`: looks again and again for a fraction of a millisecond,
// then sleeps. Whoever changes it calls value.notify_all().
void WaitWhileEqual(const std::atomic<uint32_t>& value, uint32_t old);

// Locks a mutex that is only ever held for some nanoseconds: tries for a while before it sleeps.
class BriefLock {
 public:
  explicit BriefLock(std::mutex& mutex);
  ~BriefLock() { mutex_.unlock(); }
  BriefLock(const BriefLock&) = delete;
  BriefLock& operator=(const BriefLock&) = delete;

 private:
  std::mutex& mutex_;
};

}  // namespace pozor

#endif  // POZOR_ENGINE_PARALLEL_H_
