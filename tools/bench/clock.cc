#include "tools/bench/clock.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>

#include "tools/bench/text.h"

namespace pozor::tools {

double Now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

namespace {

double SecondsOf(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

double OwnCpuSeconds() { return SecondsOf(CLOCK_PROCESS_CPUTIME_ID); }

double ThreadCpuSeconds() { return SecondsOf(CLOCK_THREAD_CPUTIME_ID); }

// Plain system calls: a worker reads this around every single call that it times.
double WaitSeconds(const std::string& process) {
  const std::string folder = Cat({"/proc/", process, "/task"});
  DIR* tasks = opendir(folder.c_str());
  if (tasks == nullptr) return 0;
  double sum = 0;
  while (const dirent* entry = readdir(tasks)) {
    if (entry->d_name[0] == '.') continue;
    const std::string path = Cat({folder, "/", entry->d_name, "/schedstat"});
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) continue;
    char text[96] = {};
    if (read(file, text, sizeof text - 1) > 0) {
      char* end = nullptr;
      std::strtod(text, &end);  // time on a CPU
      sum += std::strtod(end, nullptr);
    }
    close(file);
  }
  closedir(tasks);
  return 1e-9 * sum;
}

}  // namespace pozor::tools
