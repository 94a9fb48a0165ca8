// One benchmark run: its engines, texts and rows, and what was measured so far.
#ifndef POZOR_TOOLS_BENCH_RUN_H_
#define POZOR_TOOLS_BENCH_RUN_H_

#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tools/bench/channel.h"
#include "tools/bench/driver.h"
#include "tools/bench/plan.h"
#include "tools/bench/result.h"
#include "tools/bench/text.h"

namespace pozor::tools {

// A folder for the texts while the run lasts.
class ScratchFolder {
 public:
  ScratchFolder();
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  // Empty: it could not be made.
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

// A row, and how it is driven.
struct RowPlan {
  size_t engine = 0;    // in Run::engines_
  size_t workload = 0;  // in BenchResult::workloads
  size_t batch = 0;
  size_t calls = 1;  // of a visit to a query row
  Row row;
};

class Run {
 public:
  explicit Run(const BenchOptions& options)
      : options_(Resolve(options)), engines_(PlanEngines(options_)) {}

  Result<BenchResult> Go();

 private:
  Status Prepare();
  Status MakeWorkloads(Channel& worker);
  Result<Workload> MakeWorkload(Channel& worker, const std::string& name, size_t threads);
  void MakeRows(size_t first, size_t last);
  void MeasureRoofs();

  Result<std::unique_ptr<Channel>> Start(size_t engine);
  Result<std::unique_ptr<Channel>> StartRecorded(size_t engine, bool first_process);
  void Drop(size_t engine, const Status& why);
  Status RunProcess(size_t process);
  Status RunGroup(size_t process, size_t first, size_t last);
  Status WarmUp(RowPlan& plan, Channel& channel, size_t process);
  Status Visit(RowPlan& plan, Channel& channel, size_t process, size_t round);
  Status Use(const RowPlan& plan, Channel& channel);
  Status CompareVectors(std::vector<std::unique_ptr<Channel>>& alive, size_t first);
  double Probe(size_t threads);
  void Note(const std::string& text) const {
    if (options_.note) options_.note(text);
  }
  void Warn();

  BenchOptions options_;
  std::vector<EnginePlan> engines_;
  std::vector<RowPlan> rows_;
  ScratchFolder folder_;
  BenchResult result_;
  std::vector<float> reference_;
  std::set<size_t> dropped_;
  Status first_error_;
  double start_ = 0;
  size_t probed_threads_ = 0;
  double probe_ = 0;
};

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_BENCH_RUN_H_
