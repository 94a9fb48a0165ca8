// The driver's end of a worker: a child process behind two pipes, or a Worker in this process.
#ifndef POZOR_TOOLS_BENCH_CHANNEL_H_
#define POZOR_TOOLS_BENCH_CHANNEL_H_

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/json.h"
#include "pozor/status.h"
#include "tools/bench/worker.h"

namespace pozor::tools {

class Channel {
 public:
  virtual ~Channel() = default;

  // The answer to a command line, an error if the worker says {"error": ...} or has ended.
  Result<JsonDocument> Ask(const std::string& line);

  // CPU seconds of the worker's process so far.
  virtual double CpuSeconds() const = 0;
  // Seconds that its threads have spent ready to run, waiting for a CPU; 0 where the kernel does
  // not tell. What other programs cost a round, to the microsecond.
  virtual double WaitSeconds() const = 0;
  // Peak resident set since the last ResetPeak (where the kernel allows that).
  virtual double PeakBytes() const = 0;
  virtual void ResetPeak() const = 0;

  // From the start of the process to its first line.
  double ready_seconds() const { return ready_seconds_; }
  // That line.
  const JsonDocument& ready() const { return *ready_; }

 protected:
  virtual Result<std::string> Exchange(const std::string& line) = 0;
  Status SetReady(const std::string& line, double seconds);

 private:
  double ready_seconds_ = 0;
  std::unique_ptr<JsonDocument> ready_;
};

struct ProcessOptions {
  std::string name;  // for messages
  std::vector<std::string> arguments;
  std::map<std::string, std::string> environment;  // over the parent's
  std::vector<int> cpus;                           // to run on; empty: as the parent
  std::string error_log;                           // for standard error; empty: the parent's
};
Result<std::unique_ptr<Channel>> StartProcess(const ProcessOptions& options);

Result<std::unique_ptr<Channel>> StartInProcess(const WorkerOptions& options);

// Words of a command line, quoted as a shell reads them ('...', "...", \x); no expansion.
std::vector<std::string> ShellWords(std::string_view line);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_BENCH_CHANNEL_H_
