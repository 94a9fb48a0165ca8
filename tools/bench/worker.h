// An engine in a process of its own, told what to do by lines of tab-separated fields; every answer
// is one JSON object on a line. Peers' workers speak the same protocol (bench/peers/README.md):
//
//   texts PATH STRIDE         reads every STRIDE-th line: {"texts", "tokens", ...}
//   round BATCH               encodes them all: {"seconds", "cpu_seconds", "waited_seconds"}
//   latency N TEXT [PAUSE]    encodes one text N times, each after PAUSE milliseconds (0):
//                             {"seconds": [N], ...}
//   save PATH BATCH           encodes, writes raw float32 rows: {"saved"}
//   rss                       {"peak_rss_mib"}
//   quit
//
// Pozor's own worker knows these as well:
//
//   info                      the model and what runs it
//   make KIND SIZE TEXTS SEED PATH
//                             writes a workload; answers as texts
//   batch N                   tokens of a micro-batch from now on
#ifndef POZOR_TOOLS_BENCH_WORKER_H_
#define POZOR_TOOLS_BENCH_WORKER_H_

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pozor/pozor.hpp"

namespace pozor::tools {

struct WorkerOptions {
  std::string model;
  LoadOptions load;
  EncodeOptions encode;
};

class Worker {
 public:
  // Loads the model and makes a first vector.
  static Result<std::unique_ptr<Worker>> Start(const WorkerOptions& options);

  // The line that says so: {"ready": true, ...}.
  std::string Ready() const;

  // The answer to a command; an error is answered by {"error": "..."}. Sets *quit on "quit".
  std::string Handle(std::string_view line, bool* quit);

 private:
  Worker(WorkerOptions options, Model model);

  Result<std::string> Dispatch(std::span<const std::string_view> fields);
  Result<std::string> ReadTexts(std::string_view path, size_t stride);
  Result<std::string> Round();
  Result<std::string> Latency(size_t calls, std::string_view text, std::chrono::milliseconds pause);
  Result<std::string> Save(std::string_view path);
  Result<std::string> Make(std::span<const std::string_view> fields);
  Result<std::string> Describe(const std::vector<std::string>& texts) const;
  std::string Info() const;

  WorkerOptions options_;
  Model model_;
  double load_seconds_ = 0;
  double first_vector_seconds_ = 0;
  std::vector<std::string> texts_;
  std::vector<std::string_view> views_;
  std::vector<float> vectors_;  // [texts, dimensions]
};

// Answers standard input on standard output until "quit" or the end. Exit code.
int RunWorker(const WorkerOptions& options);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_BENCH_WORKER_H_
