// Bounds on work that do not depend on what else the machine does.
#ifndef POZOR_TESTS_SUPPORT_CPU_TIME_H_
#define POZOR_TESTS_SUPPORT_CPU_TIME_H_

#include <ctime>

namespace pozor::test {

// Processor seconds of the whole process since this was made.
class CpuStopwatch {
 public:
  double Seconds() const { return Now() - start_; }

 private:
  static double Now() {
    timespec now = {};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
  }

  double start_ = Now();
};

// What is over in milliseconds stays below this on any machine, sanitizers and emulators as well;
// what grows with the square of a hostile file does not.
inline constexpr double kFewCpuSeconds = 20;

}  // namespace pozor::test

#endif  // POZOR_TESTS_SUPPORT_CPU_TIME_H_
