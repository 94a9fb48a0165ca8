// Clocks of the benchmark: wall, CPU, and time spent waiting for a CPU.
#ifndef POZOR_TOOLS_BENCH_CLOCK_H_
#define POZOR_TOOLS_BENCH_CLOCK_H_

#include <string>

namespace pozor::tools {

// Seconds of a clock that never jumps.
double Now();

// CPU seconds of this process, all threads. What threads other than the caller have used since they
// last slept, or since the last tick of some milliseconds, is not in it yet.
double OwnCpuSeconds();

// CPU seconds of the calling thread, exact.
double ThreadCpuSeconds();

// Seconds that the threads of a process ("self", or its id) have spent ready to run, waiting for a
// CPU that something else held: field 2 of /proc/PID/task/TID/schedstat, kept to the nanosecond.
// 0 where the kernel does not tell. It does not know about a hypervisor's other guests.
double WaitSeconds(const std::string& process);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_BENCH_CLOCK_H_
