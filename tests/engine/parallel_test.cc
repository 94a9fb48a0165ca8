// Teams, task graphs and the turnstile: everything is done once, whoever comes.
#include "engine/parallel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <thread>
#include <vector>

#include "engine/task_graph.h"
#include "engine/turnstile.h"
#include "tests/support/leaks.h"
#include "tests/support/random.h"

namespace pozor {
namespace {

size_t ThreadsOfProcess() {
  size_t count = 0;
  for ([[maybe_unused]] const auto& entry :
       std::filesystem::directory_iterator("/proc/self/task")) {
    ++count;
  }
  return count;
}

double ProcessSeconds() {
  timespec time;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

TEST_CASE("threads asked for, or those of the machine") {
  CHECK(ThreadsFor(3) == 3);
  CHECK(ThreadsFor(0) >= 1);
  CHECK(ThreadsFor(kMostThreads + 1) == kMostThreads);
  CHECK(ThreadsFor(SIZE_MAX) == kMostThreads);
}

TEST_CASE("a team takes every piece once, and nobody is inside afterwards") {
  for (const size_t threads : {1u, 2u, 4u}) {
    CAPTURE(threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<std::atomic<int>> taken(50);
      std::atomic<size_t> next{0};
      std::atomic<int> inside{0}, workers{0};
      RunTeam(threads, [&](size_t worker) {
        ++inside;
        workers.fetch_or(1 << worker);
        for (size_t i; (i = next.fetch_add(1)) < taken.size();) ++taken[i];
        --inside;
      });
      CHECK(inside == 0);
      CHECK((workers & 1) == 1);
      CHECK(workers < (1 << threads));
      for (const std::atomic<int>& times : taken) CHECK(times == 1);
    }
  }
}

TEST_CASE("many callers of teams share the workers") {
  // Workers of one pool of four: three, beside the callers and this thread.
  std::vector<std::thread> callers;
  std::atomic<size_t> sum{0};
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        std::atomic<size_t> next{0};
        RunTeam(4, [&](size_t) {
          for (size_t i; (i = next.fetch_add(1)) < 20;) ++sum;
        });
      }
    });
  }
  CHECK(ThreadsOfProcess() <= 1 + 8 + 3 + 2);
  for (std::thread& caller : callers) caller.join();
  CHECK(sum == 8 * 50 * 20);
}

// The worker of a pool of two stays with one caller, so that nobody reads another's invitations: as
// when a process ends just after a call.
TEST_CASE("invitations that no worker has read are no leak, and their teams serve again") {
  std::atomic<uint32_t> came{0}, go{0};
  std::thread host([&] {
    RunTeam(2, [&](size_t worker) {
      if (worker == 0) return WaitWhileEqual(came, 0);
      came = 1;
      came.notify_all();
      WaitWhileEqual(go, 0);
    });
  });
  WaitWhileEqual(came, 0);
  std::atomic<int> runs{0};
  for (int call = 0; call < 100; ++call) RunTeam(2, [&](size_t) { ++runs; });
  CHECK(runs == 100);
  CHECK_FALSE(test::LeaksAreFound());
  go = 1;
  go.notify_all();
  host.join();
  for (int call = 0; call < 100; ++call) RunTeam(2, [&](size_t worker) { runs += worker == 0; });
  CHECK(runs == 200);
}

TEST_CASE("idle workers use no CPU") {
  RunTeam(2, [](size_t) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  const double before = ProcessSeconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(ProcessSeconds() - before < 0.02);
}

TEST_CASE("a waiting thread notices the change and uses no CPU meanwhile") {
  std::atomic<uint32_t> value{0};
  std::thread changer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    value = 1;
    value.notify_all();
  });
  const double before = ProcessSeconds();
  WaitWhileEqual(value, 0);
  CHECK(value == 1);
  CHECK(ProcessSeconds() - before < 0.05);
  changer.join();
}

// Random layered graphs with joins; each task checks that those before it are done.
TEST_CASE("a task graph runs every task once, after those it depends on") {
  test::Random random(9);
  for (int round = 0; round < 60; ++round) {
    CAPTURE(round);
    TaskGraph graph;
    std::vector<std::vector<uint32_t>> after;
    std::vector<bool> is_join;
    for (size_t i = 0; i < 40; ++i) {
      std::vector<uint32_t> before;
      for (uint32_t other = 0; other < i; ++other) {
        if (random.Index(8) == 0) before.push_back(other);
      }
      const bool join = before.size() > 1 && random.Index(3) == 0;
      const uint32_t node = join ? graph.Join(before) : graph.Add(random.Index(5), before);
      CHECK(node == i);
      after.push_back(before);
      is_join.push_back(join);
    }
    const size_t lanes = 1 + random.Index(4);
    graph.Start(lanes);
    std::vector<std::atomic<int>> runs(after.size());
    std::atomic<int> too_early{0};
    const std::function<bool(uint32_t)> done = [&](uint32_t node) {
      if (!is_join[node]) return runs[node] == 1;
      for (const uint32_t before : after[node]) {
        if (!done(before)) return false;
      }
      return true;
    };
    RunTeam(lanes, [&](size_t worker) {
      int left = 10;
      graph.Work(
          worker,
          [&](uint32_t task, size_t) {
            for (const uint32_t before : after[task]) too_early += !done(before);
            ++runs[task];
          },
          [&] { return worker != 0 && left-- == 0; });  // helpers go home early
    });
    CHECK(too_early == 0);
    for (size_t i = 0; i < after.size(); ++i) CHECK(runs[i] == (is_join[i] ? 0 : 1));
  }
}

TEST_CASE("the turnstile lets in as many as it should, first come first served") {
  Turnstile turnstile;
  std::atomic<int> inside{0}, most{0}, served{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 8; ++caller) {
    callers.emplace_back([&] {
      for (int round = 0; round < 200; ++round) {
        Request request;
        REQUIRE(turnstile.Enter(request, 2));
        const int now = ++inside;
        int seen = most;
        while (seen < now && !most.compare_exchange_weak(seen, now)) {
        }
        ++served;
        --inside;
        turnstile.Leave();
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(served == 1600);
  CHECK(most <= 2);
  CHECK(turnstile.HasRoom(1));
}

// Callers of three tokens each who wait for a place.
struct Waiters {
  TokenBatch batch;
  std::atomic<int> taken_along{0}, entered{0};
  std::vector<std::thread> callers;

  Waiters(Turnstile& turnstile, size_t count, size_t limit) {
    batch.ids = {1, 2, 3};
    batch.EndText();
    for (size_t caller = 0; caller < count; ++caller) {
      callers.emplace_back([this, &turnstile, limit] {
        const RaggedBatch view = batch.View();
        const PoolFunction pool = [](size_t, MatView<const float>) { return Status(); };
        Request request;
        request.batch = &view;
        request.pool = &pool;
        request.shareable = true;
        request.tokens = view.tokens();
        if (turnstile.Enter(request, limit)) {
          ++entered;
          turnstile.Leave(&request);
        } else {
          CHECK(request.status.code() == StatusCode::kCancelled);
          ++taken_along;
        }
      });
      while (turnstile.waiting() <= caller) std::this_thread::yield();
    }
  }
  void Join() {
    for (std::thread& caller : callers) caller.join();
  }
};

TEST_CASE("who waits is taken along, up to the budget") {
  Turnstile turnstile;
  Request first;
  first.tokens = 3;
  REQUIRE(turnstile.Enter(first, 1));
  CHECK(!turnstile.TryEnter(1));
  CHECK(turnstile.TryEnter(2));
  turnstile.Leave();

  Waiters waiters(turnstile, 4, 1);
  std::vector<Request*> requests = {&first};
  turnstile.TakeWaiting(1, 11, &requests);  // room for two of the three-token batches
  CHECK(requests.size() == 3);
  for (size_t i = 1; i < requests.size(); ++i) {
    turnstile.Finish(*requests[i], Cancelled("as asked"));
  }
  turnstile.Leave(&first);
  waiters.Join();
  CHECK(waiters.taken_along == 2);
  CHECK(waiters.entered == 2);
  CHECK(!turnstile.crowded());
}

TEST_CASE("nobody takes along more than a fair share") {
  Turnstile turnstile;
  Request first, second;
  first.tokens = second.tokens = 3;
  REQUIRE(turnstile.Enter(first, 2));
  REQUIRE(turnstile.Enter(second, 2));
  Waiters waiters(turnstile, 6, 2);  // 24 tokens in all: 12 for each place
  std::vector<Request*> requests = {&first};
  turnstile.TakeWaiting(2, 1000, &requests);
  CHECK(requests.size() == 4);
  std::vector<Request*> others = {&second};
  turnstile.TakeWaiting(2, 1000, &others);
  CHECK(others.size() == 4);
  for (Request* request :
       {requests[1], requests[2], requests[3], others[1], others[2], others[3]}) {
    turnstile.Finish(*request, Cancelled("as asked"));
  }
  turnstile.Leave(&first);
  turnstile.Leave(&second);
  waiters.Join();
  CHECK(waiters.taken_along == 6);
  CHECK(turnstile.HasRoom(1));
}

}  // namespace
}  // namespace pozor
