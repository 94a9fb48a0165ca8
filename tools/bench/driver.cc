#include "tools/bench/driver.h"

#include <algorithm>
#include <memory>
#include <thread>

#include "kernels/cpu.h"
#include "tools/bench/clock.h"
#include "tools/bench/run.h"

namespace pozor::tools {
namespace {

// Processes alive at once: each holds its own packed weights.
constexpr size_t kMostAlive = 12;

}  // namespace

Result<std::unique_ptr<Channel>> Run::Start(size_t index) {
  const EnginePlan& engine = engines_[index];
  if (options_.in_process && engine.is_pozor) {
    if (options_.tiers.size() > 1) {
      return InvalidArgument(Cat({"a process has one CPU tier, not ", options_.tiers[0], " and ",
                                  options_.tiers[1], "; leave out --in-process"}));
    }
    CpuTier tier;
    if (ParseCpuTier(options_.tiers[0], &tier)) SetCpuTierCap(tier);
    WorkerOptions worker;
    worker.model = options_.model;
    worker.load.precision = engine.asked == "int8"     ? Precision::kInt8
                            : engine.asked == "bf16"   ? Precision::kBF16
                            : engine.asked == "bf16x3" ? Precision::kBF16x3
                            : engine.asked == "f32"    ? Precision::kF32
                                                       : Precision::kAuto;
    worker.load.task = options_.task;
    worker.encode.threads = engine.threads;
    worker.encode.max_length = options_.max_length;
    return StartInProcess(worker);
  }
  ProcessOptions process;
  process.name = Cat({engine.name, " ", engine.precision, " ", engine.tier});
  process.arguments = EngineCommand(engine, options_);
  if (!engine.is_pozor) {
    for (const char* name :
         {"OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"}) {
      process.environment[name] = std::to_string(engine.threads);
    }
    process.environment["TOKENIZERS_PARALLELISM"] = engine.threads > 1 ? "true" : "false";
    process.error_log = folder_.path() + "/" + engine.name + ".err";
  }
  if (options_.pin) {
    for (size_t cpu = 0; cpu < engine.threads; ++cpu) process.cpus.push_back(static_cast<int>(cpu));
  }
  return StartProcess(process);
}

// An engine that cannot start, or that ends in the middle, leaves the run; the others go on.
void Run::Drop(size_t engine, const Status& why) {
  if (!dropped_.insert(engine).second) return;
  const EnginePlan& plan = engines_[engine];
  result_.warnings.push_back(
      Cat({"left out: ", plan.name, ", ", plan.precision, ", ", plan.tier, ", ",
           std::to_string(plan.threads), " threads: ", why.message()}));
  if (first_error_.ok()) first_error_ = why;
}

Result<std::unique_ptr<Channel>> Run::StartRecorded(size_t engine, bool first_process) {
  StartRecord& record = result_.starts[engine];
  POZOR_TRY(std::unique_ptr<Channel> channel, Start(engine));
  record.ready_seconds.push_back(channel->ready_seconds());
  const JsonValue& ready = channel->ready().root();
  record.load_seconds.push_back(NumberOf(ready, "load_seconds"));
  record.first_vector_seconds.push_back(NumberOf(ready, "first_vector_seconds"));
  if (!first_process) return channel;
  record.version = TextOf(ready, "version");
  if (!engines_[engine].is_pozor) return channel;
  POZOR_TRY(const JsonDocument info, channel->Ask("info"));
  record.tier = TextOf(*info, "tier");
  if (engines_[engine].asked == "bf16x3" && TextOf(*info, "precision") == "f32") {
    result_.warnings.push_back(Cat({"bf16x3 is f32 on tier ", record.tier, ": no AMX"}));
  }
  record.version = TextOf(*info, "version");
  const JsonValue* kernels = info->Find("kernels");
  for (size_t i = 0; kernels != nullptr && i < kernels->items().size(); ++i) {
    record.kernels.emplace_back(kernels->items()[i].as_string());
  }
  return channel;
}

Status Run::RunGroup(size_t process, size_t first, size_t last) {
  std::vector<std::unique_ptr<Channel>> alive(last - first);
  for (size_t e = first; e < last; ++e) {
    if (dropped_.count(e) != 0) continue;
    Result<std::unique_ptr<Channel>> channel = StartRecorded(e, process == 0);
    if (channel.ok())
      alive[e - first] = std::move(*channel);
    else
      Drop(e, channel.status());
  }
  if (process == 0) MakeRows(first, last);
  std::vector<RowPlan*> mine;
  for (RowPlan& plan : rows_) {
    if (plan.engine >= first && plan.engine < last) mine.push_back(&plan);
  }
  const auto visit_all = [&](auto&& visit) {
    for (RowPlan* plan : mine) {
      std::unique_ptr<Channel>& channel = alive[plan->engine - first];
      if (channel == nullptr) continue;
      const Status done = visit(*plan, *channel);
      if (done.ok()) continue;
      channel.reset();
      Drop(plan->engine, done);
    }
  };
  visit_all([&](RowPlan& plan, Channel& channel) { return WarmUp(plan, channel, process); });
  for (size_t round = 0; round < options_.rounds; ++round) {
    Note(Cat({"process ", std::to_string(process + 1), "/", std::to_string(options_.processes),
              ", round ", std::to_string(round + 1), "/", std::to_string(options_.rounds)}));
    visit_all(
        [&](RowPlan& plan, Channel& channel) { return Visit(plan, channel, process, round); });
    std::reverse(mine.begin(), mine.end());  // no row always follows the same one
  }
  return process == 0 ? CompareVectors(alive, first) : Status();
}

Status Run::RunProcess(size_t process) {
  for (size_t first = 0; first < engines_.size(); first += kMostAlive) {
    const size_t last = std::min(engines_.size(), first + kMostAlive);
    POZOR_RETURN_IF_ERROR(RunGroup(process, first, last));
  }
  return {};
}

void Run::Warn() {
  double stolen = 0;
  for (const Row& row : result_.rows) stolen = std::max(stolen, row.summary.stolen_share);
  if (stolen > 0.05) {
    result_.warnings.push_back(Cat({"other programs took up to ", Fixed(100 * stolen, 0),
                                    " % of the machine during a row: figures may be low"}));
  }
  const std::string governor = result_.system.Get("cpu", "governor");
  if (!governor.empty() && governor != "performance") {
    result_.warnings.push_back(Cat({"CPU frequency governor is ", governor}));
  }
  if (result_.system.Get("build", "type") != "Release") {
    result_.warnings.emplace_back("this is not a Release build of Pozor");
  }
}

Result<BenchResult> Run::Go() {
  POZOR_RETURN_IF_ERROR(Prepare());
  MeasureRoofs();
  start_ = Now();
  for (size_t process = 0; process < options_.processes; ++process) {
    POZOR_RETURN_IF_ERROR(RunProcess(process));
  }
  const size_t cpus = std::max(1u, std::thread::hardware_concurrency());
  for (RowPlan& plan : rows_) {
    if (plan.row.samples.size() == 0) continue;
    Summarise(result_.compute_roofs, cpus, &plan.row);
    result_.rows.push_back(std::move(plan.row));
  }
  if (result_.rows.empty()) return first_error_;
  Warn();
  return std::move(result_);
}

Result<BenchResult> RunBench(const BenchOptions& options) { return Run(options).Go(); }

}  // namespace pozor::tools
