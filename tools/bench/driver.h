// `pozor bench`: starts the engines, and goes through all rows round by round (A B C A B C ...), so
// that a slow minute of the machine hits every row alike.
#ifndef POZOR_TOOLS_BENCH_DRIVER_H_
#define POZOR_TOOLS_BENCH_DRIVER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "pozor/status.h"
#include "tools/bench/result.h"

namespace pozor::tools {

// A peer, or another build of Pozor: a program that speaks the protocol of worker.h.
struct PeerSpec {
  std::string name;
  std::string precision = "f32";
  // Texts of a batch; a row each, since the best one depends on how the lengths are mixed.
  std::vector<size_t> batches = {32};
  // {model}, {threads} and {max_length} are filled in.
  std::string command;
};

struct BenchOptions {
  std::string model;
  std::vector<size_t> threads;          // empty: 1 and what the machine grants
  std::vector<std::string> tiers;       // empty: "auto"; "all": each that the machine has
  std::vector<std::string> precisions;  // empty: "auto", the model's own
  std::string task;                     // whose adapter is used, of a model that has some
  std::vector<size_t> batch_tokens;     // empty: the default
  std::vector<std::string> workloads;   // "fixed-64", "query-8@20", "file:PATH"; empty: suite
  std::string suite = "standard";       // "quick", "standard", "full"
  size_t max_length = 0;                // tokens; 0: the model's
  size_t rounds = 0;                    // of each process; 0: the suite's
  size_t processes = 0;                 // starts of each engine; 0: the suite's
  uint64_t seed = 1;
  bool pin = false;         // workers of N threads run on the first N CPUs
  bool in_process = false;  // no child processes: one tier and precision only
  bool only_peers = false;  // without Pozor itself
  bool redact = false;
  bool bandwidth = true;  // measure the roofs of reading, too
  std::vector<PeerSpec> peers;
  std::string program;                           // path of this program, to be started as a worker
  std::function<void(const std::string&)> note;  // progress, one line
};

Result<BenchResult> RunBench(const BenchOptions& options);

// The workloads of a suite for a model of this length.
std::vector<std::string> SuiteWorkloads(const std::string& suite, size_t max_length);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_BENCH_DRIVER_H_
