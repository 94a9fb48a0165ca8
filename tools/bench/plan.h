// What a benchmark run goes through: engines, workloads and rows.
#ifndef POZOR_TOOLS_BENCH_PLAN_H_
#define POZOR_TOOLS_BENCH_PLAN_H_

#include <cstddef>
#include <string>
#include <vector>

#include "models/json.h"
#include "tools/bench/driver.h"
#include "tools/bench/result.h"

namespace pozor::tools {

// An engine as one process: what is fixed from its start to its end.
struct EnginePlan {
  bool is_pozor = true;
  std::string name = "pozor";
  std::string asked = "auto";      // --precision of Pozor; auto: the model's own
  std::string precision = "auto";  // what it runs in
  std::string tier = "auto";
  size_t threads = 1;
  std::vector<size_t> batches;  // tokens of a micro-batch, or texts of a peer's batch
  std::string command;          // of a peer
};

// Options with every empty list filled in.
BenchOptions Resolve(BenchOptions options);

// Tiers x precisions x threads of Pozor, then each peer for each number of threads.
std::vector<EnginePlan> PlanEngines(const BenchOptions& options);

// "fixed-128" -> {"fixed", 128}; "query-8@20" -> {"query", 8}, 20 ms apart; "file:PATH" ->
// {"file"}.
struct WorkloadName {
  std::string kind;
  size_t length = 0;
  std::string path;
  size_t stride = 1;    // "file:PATH@4": every fourth line
  size_t pause_ms = 0;  // "query-8@20": before every call
};
Result<WorkloadName> ParseWorkload(const std::string& name);

// Texts of a workload for `threads` threads: about 16 GFLOP of products a thread, enough for
// several micro-batches on each, the same on every machine.
size_t CountTexts(const WorkloadName& name, size_t threads, double flops_per_token);

// Command line of an engine's process.
std::vector<std::string> EngineCommand(const EnginePlan& engine, const BenchOptions& options);

// The model as a worker's answer to "info" describes it.
ModelRecord ReadModelRecord(const JsonValue& info);

std::string TextOf(const JsonValue& object, std::string_view key);
double NumberOf(const JsonValue& object, std::string_view key);
// Likewise; 0 for what is no count: negative, not a number, or more than 2^53.
size_t CountOf(const JsonValue& object, std::string_view key);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_BENCH_PLAN_H_
