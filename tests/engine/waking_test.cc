// Workers are kept off their caller's CPU while they wake, and have it back when they run.
#include "engine/waking.h"

#include <doctest/doctest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "engine/parallel.h"

namespace pozor {
namespace {

cpu_set_t MaskOf(pid_t thread) {
  cpu_set_t mask;
  REQUIRE(sched_getaffinity(thread, sizeof(mask), &mask) == 0);
  return mask;
}

int FirstOf(const cpu_set_t& mask) {
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) return cpu;
  }
  return -1;
}

cpu_set_t Without(cpu_set_t mask, int cpu) {
  CPU_CLR(cpu, &mask);
  return mask;
}

bool Same(const cpu_set_t& a, const cpu_set_t& b) { return CPU_EQUAL(&a, &b) != 0; }

bool IsOne(const cpu_set_t& mask) {
  if (CPU_COUNT(&mask) > 1) return false;
  MESSAGE("skipped: one CPU");
  return true;
}

// A thread that arrives as a worker whenever it is told to.
class FakeWorker {
 public:
  FakeWorker() : thread_([this] { Live(); }) { Await(1); }
  ~FakeWorker() {
    ends_ = true;
    Arrive();
    thread_.join();
  }

  pid_t id() const { return id_; }
  void Arrive() {
    const uint32_t before = arrivals_;
    ++wanted_;
    wanted_.notify_all();
    Await(before + 1);
  }

 private:
  void Live() {
    id_ = static_cast<pid_t>(syscall(SYS_gettid));
    do {
      ArriveAsWorker();
      const uint32_t seen = wanted_;
      const bool ends = ends_;  // before it arrives: afterwards the destructor may have begun
      ++arrivals_;
      arrivals_.notify_all();
      if (ends) return;
      wanted_.wait(seen);
    } while (true);
  }
  void Await(uint32_t count) {
    for (uint32_t now; (now = arrivals_) < count;) arrivals_.wait(now);
  }

  std::atomic<pid_t> id_{0};
  std::atomic<uint32_t> wanted_{0}, arrivals_{0};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

TEST_CASE("a worker lacks the caller's CPU from the call until it arrives") {
  const cpu_set_t all = MaskOf(0);
  if (IsOne(all)) return;
  const int cpu = FirstOf(all), other = FirstOf(Without(all, cpu));
  FakeWorker worker;
  CHECK(Same(MaskOf(worker.id()), all));
  KeepWorkersOff(cpu, 1);
  CHECK(Same(MaskOf(worker.id()), Without(all, cpu)));
  KeepWorkersOff(cpu, 1);
  CHECK(Same(MaskOf(worker.id()), Without(all, cpu)));
  KeepWorkersOff(other, 1);  // of a caller elsewhere
  CHECK(Same(MaskOf(worker.id()), Without(all, other)));
  worker.Arrive();
  CHECK(Same(MaskOf(worker.id()), all));
  CHECK(Same(MaskOf(0), all));
}

TEST_CASE("no more workers than asked for, and none that has ended") {
  const cpu_set_t all = MaskOf(0);
  if (IsOne(all)) return;
  const int cpu = FirstOf(all);
  {
    const FakeWorker gone;
  }
  FakeWorker workers[3];
  KeepWorkersOff(cpu, 2);
  int kept_off = 0;
  for (const FakeWorker& worker : workers) {
    kept_off += Same(MaskOf(worker.id()), Without(all, cpu));
  }
  CHECK(kept_off == 2);
}

TEST_CASE("a worker keeps its only CPU, and masks that others have set") {
  const cpu_set_t all = MaskOf(0);
  if (IsOne(all)) return;
  const int cpu = FirstOf(all);
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(cpu, &only);
  FakeWorker worker;
  REQUIRE(sched_setaffinity(worker.id(), sizeof(only), &only) == 0);
  KeepWorkersOff(cpu, 1);
  CHECK(Same(MaskOf(worker.id()), only));
  worker.Arrive();
  CHECK(Same(MaskOf(worker.id()), only));

  REQUIRE(sched_setaffinity(worker.id(), sizeof(all), &all) == 0);
  KeepWorkersOff(cpu, 1);
  REQUIRE(sched_setaffinity(worker.id(), sizeof(only), &only) == 0);
  worker.Arrive();
  CHECK(Same(MaskOf(worker.id()), only));
}

TEST_CASE("CPUs that are none") {
  const cpu_set_t all = MaskOf(0);
  FakeWorker worker;
  for (const int cpu : {-1, CPU_SETSIZE, CPU_SETSIZE - 1}) {
    KeepWorkersOff(cpu, 1);
    CHECK(Same(MaskOf(worker.id()), all));
  }
}

TEST_CASE("a team's workers run with the process's own mask, however long they have slept") {
  const cpu_set_t all = MaskOf(0);
  for (const int pause : {0, 1, 20}) {
    std::this_thread::sleep_for(std::chrono::milliseconds(pause));
    std::atomic<int> came{0}, wrong{0};
    const auto start = std::chrono::steady_clock::now();
    RunTeam(2, [&](size_t worker) {
      if (worker == 1) {
        wrong += !Same(MaskOf(0), all);
        came = 1;
      }
      while (came == 0 && std::chrono::steady_clock::now() - start < std::chrono::seconds(1)) {
      }
    });
    CHECK(wrong == 0);
  }
  CHECK(Same(MaskOf(0), all));
}

}  // namespace
}  // namespace pozor
