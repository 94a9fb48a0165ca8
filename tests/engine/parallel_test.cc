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
      int left = worker == 0 ? -1 : 10;  // helpers go home early
      graph.Work(
          worker,
          [&](uint32_t task, size_t) {
            for (const uint32_t before : after[task]) too_early += !done(before);
            ++runs[task];
          },
          [&] { return left >= 0 && left-- == 0; });
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

TEST_CASE("who waits is taken along, up to the budget, in order") {
  Turnstile turnstile;
  Request first;
  REQUIRE(turnstile.Enter(first, 1));
  CHECK(!turnstile.TryEnter(1));
  CHECK(turnstile.TryEnter(2));
  turnstile.Leave();

  TokenBatch batch;
  batch.ids = {1, 2, 3};
  batch.EndText();
  const RaggedBatch view = batch.View();
  const PoolFunction pool = [](size_t, MatView<const float>) { return Status(); };
  std::atomic<int> taken_along{0}, entered{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      Request request;
      request.batch = &view;
      request.pool = &pool;
      if (turnstile.Enter(request, 1)) {
        ++entered;
        turnstile.Leave();
      } else {
        CHECK(request.status.code() == StatusCode::kCancelled);
        ++taken_along;
      }
    });
  }
  std::vector<Request*> requests;
  while (requests.size() < 2) {  // six tokens are two of the three-token batches
    std::this_thread::yield();
    turnstile.TakeWaiting(6 - 3 * requests.size(), &requests);
  }
  CHECK(requests.size() == 2);
  for (Request* request : requests) turnstile.Finish(*request, Cancelled("as asked"));
  turnstile.Leave();
  for (std::thread& caller : callers) caller.join();
  CHECK(taken_along == 2);
  CHECK(entered == 2);
  CHECK(!turnstile.crowded());
}

}  // namespace
}  // namespace pozor
