// The end of a process. A program of its own: children are made before there is a second thread.
// Sanitizers have reports of their own to make at that time, and are left out.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "pozor/pozor.hpp"
#include "tests/models/golden.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define POZOR_IS_SANITIZED 1
#endif
#endif

namespace pozor {
namespace {

#ifndef POZOR_IS_SANITIZED

using test::DataPath;

// Destructors of statics run beside threads that nobody has joined.
TEST_CASE("a process may end while its threads are encoding") {
  for (int round = 0; round < 10; ++round) {
    const pid_t child = ::fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      const Model model = Model::Load(DataPath("st-prompts")).value();
      const std::vector<std::string> texts(100, "guitar");
      std::atomic<int> calls{0};
      for (int thread = 0; thread < 3; ++thread) {
        std::thread([&] {
          while (true) {
            model.Encode(std::span<const std::string>(texts)).value();
            ++calls;
          }
        }).detach();
      }
      while (calls < 3) std::this_thread::yield();
      std::exit(0);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
  }
}

#endif

}  // namespace
}  // namespace pozor
