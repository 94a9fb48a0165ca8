#include "tools/bench/driver.h"

#include <stdlib.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include "tools/bench/channel.h"
#include "tools/bench/plan.h"
#include "tools/bench/roof.h"
#include "tools/bench/text.h"
#include "tools/bench/workload.h"

namespace pozor::tools {
namespace {

// Processes alive at once: each holds its own packed weights.
constexpr size_t kMostAlive = 12;
constexpr double kVisitSeconds = 0.06;  // of a query row: calls until about this time
constexpr size_t kMostCalls = 60;

double Now() {
  using Clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

double OwnCpuSeconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

// A folder for the texts while the run lasts.
class ScratchFolder {
 public:
  ScratchFolder() {
    const std::filesystem::path pattern = std::filesystem::temp_directory_path() / "pozor-XXXXXX";
    std::string name = pattern.string();
    if (mkdtemp(name.data()) != nullptr) path_ = name;
  }
  ~ScratchFolder() {
    std::error_code error;
    if (!path_.empty()) std::filesystem::remove_all(path_, error);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
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
  double start_ = 0;
  size_t probed_threads_ = 0;
  double probe_ = 0;
};

Result<std::unique_ptr<Channel>> Run::Start(size_t index) {
  const EnginePlan& engine = engines_[index];
  if (options_.in_process && engine.is_pozor) {
    WorkerOptions worker;
    worker.model = options_.model;
    worker.load.precision = engine.precision == "int8"   ? Precision::kInt8
                            : engine.precision == "bf16" ? Precision::kBF16
                                                         : Precision::kF32;
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

Result<Workload> Run::MakeWorkload(Channel& worker, const std::string& name, size_t threads) {
  POZOR_TRY(const WorkloadName parsed, ParseWorkload(name));
  Workload workload;
  workload.kind = parsed.kind;
  workload.name = parsed.kind != "file"
                      ? name
                      : Cat({"file:", std::filesystem::path(parsed.path).stem().string(),
                             parsed.stride > 1 ? "@" + std::to_string(parsed.stride) : ""});
  workload.path = Cat({folder_.path(), "/", std::to_string(result_.workloads.size()), ".txt"});
  std::string question;
  if (parsed.kind == "file") {
    POZOR_TRY(const auto lines, ReadLines(parsed.path, parsed.stride));
    POZOR_RETURN_IF_ERROR(WriteLines(workload.path, lines));
    question = Cat({"texts\t", workload.path, "\t1"});
  } else {
    const size_t length = options_.max_length != 0 ? options_.max_length : result_.model.max_length;
    const size_t size = parsed.kind == "mix" ? std::min<size_t>(512, length) : parsed.length;
    if (size > length) {
      return InvalidArgument(Cat({name, ": longer than the ", std::to_string(length),
                                  " tokens that are let through; see --max-length"}));
    }
    const size_t texts = CountTexts(parsed, threads, result_.model.flops_per_token);
    question = Cat({"make\t", parsed.kind, "\t", std::to_string(size), "\t", std::to_string(texts),
                    "\t", std::to_string(options_.seed), "\t", workload.path});
  }
  POZOR_TRY(const JsonDocument answer, worker.Ask(question));
  workload.texts = static_cast<size_t>(NumberOf(*answer, "texts"));
  workload.tokens = static_cast<size_t>(NumberOf(*answer, "tokens"));
  workload.squares = static_cast<size_t>(NumberOf(*answer, "squares"));
  workload.longest = static_cast<size_t>(NumberOf(*answer, "longest"));
  workload.flops = NumberOf(*answer, "flops");
  workload.hash = TextOf(*answer, "hash");
  return workload;
}

Status Run::MakeWorkloads(Channel& worker) {
  const size_t length = options_.max_length != 0 ? options_.max_length : result_.model.max_length;
  if (options_.workloads.empty()) {
    options_.workloads = SuiteWorkloads(options_.suite, length);
  }
  for (const size_t threads : options_.threads) {
    for (const std::string& name : options_.workloads) {
      POZOR_TRY(Workload workload, MakeWorkload(worker, name, threads));
      const size_t place = result_.workloads.size();
      result_.workloads.push_back(std::move(workload));
      for (size_t e = 0; e < engines_.size(); ++e) {
        if (engines_[e].threads != threads) continue;
        for (const size_t batch : engines_[e].batches) {
          RowPlan plan;
          plan.engine = e;
          plan.workload = place;
          plan.batch = batch;
          rows_.push_back(std::move(plan));
        }
      }
    }
  }
  return {};
}

void Run::MakeRows(size_t first, size_t last) {
  for (RowPlan& plan : rows_) {
    if (plan.engine < first || plan.engine >= last) continue;
    const EnginePlan& engine = engines_[plan.engine];
    const Workload& workload = result_.workloads[plan.workload];
    Row& row = plan.row;
    row.key = {engine.name, result_.model.name, workload.name, engine.precision,
               engine.tier, engine.threads,     plan.batch,    options_.max_length};
    row.latency = workload.kind == "query";
    row.active_tier = result_.starts[plan.engine].tier;
    CpuTier tier = SupportedCpuTiers().back();
    ParseCpuTier(row.active_tier, &tier);
    const PeakLoop* loop = RoofLoop(engine.precision, tier);
    if (loop != nullptr) row.roof_name = loop->name;
    row.model_hash = result_.model.hash;
    row.workload_hash = workload.hash;
    row.texts = workload.texts;
    row.tokens = workload.tokens;
    row.flops = workload.flops;
  }
}

void Run::MeasureRoofs() {
  constexpr double kSeconds = 0.04;
  Note("measuring the roof");
  result_.compute_roofs = MeasureComputeRoofs(options_.threads, kSeconds);
  if (options_.bandwidth) {
    result_.bandwidth_roofs = MeasureBandwidthRoofs(options_.threads, kSeconds);
  }
  result_.kernels = MeasureKernels(result_.model.hidden, result_.model.intermediate, 0.02);
}

Status Run::Prepare() {
  if (folder_.path().empty()) {
    return IoError("temporary folder: cannot be made; set TMPDIR to a folder that can be written");
  }
  result_.created = UtcNow();
  result_.system = ReadSystem(options_.redact);
  Note("loading the model and making the texts");
  EnginePlan plain;
  plain.threads = options_.threads[0];
  plain.precision = options_.precisions[0];
  engines_.push_back(plain);
  POZOR_TRY(const std::unique_ptr<Channel> worker, Start(engines_.size() - 1));
  engines_.pop_back();
  POZOR_TRY(const JsonDocument info, worker->Ask("info"));
  result_.model = ReadModelRecord(*info);
  for (const EnginePlan& engine : engines_) {
    StartRecord record;
    record.engine = engine.name;
    record.precision = engine.precision;
    record.tier = engine.tier;
    record.threads = engine.threads;
    result_.starts.push_back(std::move(record));
  }
  return MakeWorkloads(*worker);
}

double Run::Probe(size_t threads) {
  probed_threads_ = threads;
  return probe_ = ProbeRoof(threads);
}

Status Run::Use(const RowPlan& plan, Channel& channel) {
  if (plan.row.latency) return {};
  const EnginePlan& engine = engines_[plan.engine];
  if (engine.is_pozor && engine.batches.size() > 1) {
    POZOR_TRY(const JsonDocument done, channel.Ask("batch\t" + std::to_string(plan.batch)));
  }
  const std::string& path = result_.workloads[plan.workload].path;
  POZOR_TRY(const JsonDocument texts, channel.Ask(Cat({"texts\t", path, "\t1"})));
  return {};
}

std::string QueryOf(const Workload& workload) {
  const auto lines = ReadLines(workload.path, 1);
  return lines.ok() ? (*lines)[0] : "";
}

// Rounds until one is not 3 % faster than the best before it, five at most; finds out how many
// calls of a query fit a visit.
Status Run::WarmUp(RowPlan& plan, Channel& channel, size_t process) {
  POZOR_RETURN_IF_ERROR(Use(plan, channel));
  channel.ResetPeak();
  double best = 0, sum = 0;
  for (int i = 0; i < 5; ++i) {
    const double start = Now();
    const std::string command =
        plan.row.latency ? Cat({"latency\t3\t", QueryOf(result_.workloads[plan.workload])})
                         : "round\t" + std::to_string(plan.batch);
    POZOR_TRY(const JsonDocument answer, channel.Ask(command));
    const double seconds = Now() - start;
    sum += seconds;
    if (best != 0 && seconds > 0.97 * best) break;
    best = best == 0 ? seconds : std::min(best, seconds);
  }
  if (plan.row.latency) {
    const double calls = kVisitSeconds / std::max(1e-6, best / 3);
    plan.calls = std::clamp<size_t>(static_cast<size_t>(calls), 3, kMostCalls);
  }
  plan.row.peak_memory_bytes = std::max(plan.row.peak_memory_bytes, channel.PeakBytes());
  std::vector<double>& warm_up = result_.starts[plan.engine].warm_up_seconds;
  warm_up.resize(std::max(warm_up.size(), process + 1));
  warm_up[process] += sum;
  return {};
}

Status Run::Visit(RowPlan& plan, Channel& channel, size_t process, size_t round) {
  POZOR_RETURN_IF_ERROR(Use(plan, channel));
  const size_t threads = engines_[plan.engine].threads;
  const double before = probed_threads_ == threads ? probe_ : Probe(threads);
  const std::string command = plan.row.latency ? Cat({"latency\t", std::to_string(plan.calls), "\t",
                                                      QueryOf(result_.workloads[plan.workload])})
                                               : "round\t" + std::to_string(plan.batch);
  const double busy = MachineBusySeconds(), own = OwnCpuSeconds(), cpu = channel.CpuSeconds();
  const double at = Now() - start_;
  POZOR_TRY(const JsonDocument answer, channel.Ask(command));
  const double used = channel.CpuSeconds() - cpu;
  const double mine = options_.in_process ? 0 : OwnCpuSeconds() - own;
  const double stolen = MachineBusySeconds() - busy - used - mine;
  const double roof = (before + Probe(threads)) / 2;

  const JsonValue* seconds = answer->Find("seconds");
  if (seconds == nullptr) return Corrupt("the worker's answer: has no \"seconds\"; see worker.h");
  std::vector<double> samples;
  if (seconds->is_array()) {
    for (const JsonValue& value : seconds->items()) samples.push_back(value.as_double());
  } else {
    samples.push_back(seconds->as_double());
  }
  const JsonValue* each = answer->Find("cpu_seconds");
  const double count = static_cast<double>(samples.size());
  RowSamples& kept = plan.row.samples;
  for (size_t i = 0; i < samples.size(); ++i) {
    const bool known = each != nullptr && each->is_array() && each->size() == samples.size();
    kept.process.push_back(static_cast<double>(process));
    kept.round.push_back(static_cast<double>(round));
    kept.at.push_back(at);
    kept.seconds.push_back(samples[i]);
    kept.cpu_seconds.push_back(known ? each->items()[i].as_double() : used / count);
    kept.roof.push_back(roof);
    kept.stolen.push_back(stolen / count);
  }
  return {};
}

// Vectors of the first workload that is no query, against those of the first f32 engine: a fast
// wrong engine must be seen.
Status Run::CompareVectors(std::vector<std::unique_ptr<Channel>>& alive, size_t first) {
  for (size_t i = 0; i < alive.size(); ++i) {
    for (const RowPlan& plan : rows_) {
      if (plan.engine != first + i || plan.row.latency) continue;
      if (plan.row.key.workload != rows_[0].row.key.workload && !rows_[0].row.latency) continue;
      POZOR_RETURN_IF_ERROR(Use(plan, *alive[i]));
      const std::string path = folder_.path() + "/vectors";
      POZOR_TRY(const JsonDocument saved,
                alive[i]->Ask(Cat({"save\t", path, "\t", std::to_string(plan.batch)})));
      std::vector<float> vectors(static_cast<size_t>(NumberOf(*saved, "saved")));
      std::ifstream(path, std::ios::binary)
          .read(reinterpret_cast<char*>(vectors.data()),
                static_cast<std::streamsize>(vectors.size() * sizeof(float)));
      if (reference_.empty() && engines_[first + i].precision == "f32") reference_ = vectors;
      // Thread counts have workloads of their own: compare what both have.
      const size_t texts = result_.workloads[plan.workload].texts;
      const size_t width = texts == 0 ? 0 : vectors.size() / texts;
      double sum = 0, least = 2;
      size_t rows = 0;
      for (; width > 0 && (rows + 1) * width <= std::min(vectors.size(), reference_.size());
           ++rows) {
        const double cosine = Cosine({vectors.data() + rows * width, width},
                                     {reference_.data() + rows * width, width});
        sum += cosine;
        least = std::min(least, cosine);
      }
      if (rows > 0) {
        result_.starts[first + i].mean_cosine = sum / static_cast<double>(rows);
        result_.starts[first + i].min_cosine = least;
      }
      break;
    }
  }
  return {};
}

Status Run::RunGroup(size_t process, size_t first, size_t last) {
  std::vector<std::unique_ptr<Channel>> alive;
  for (size_t e = first; e < last; ++e) {
    StartRecord& record = result_.starts[e];
    POZOR_TRY(std::unique_ptr<Channel> channel, Start(e));
    record.ready_seconds.push_back(channel->ready_seconds());
    const JsonValue& ready = channel->ready().root();
    record.load_seconds.push_back(NumberOf(ready, "load_seconds"));
    record.first_vector_seconds.push_back(NumberOf(ready, "first_vector_seconds"));
    if (process == 0) {
      record.version = TextOf(ready, "version");
      if (engines_[e].is_pozor) {
        POZOR_TRY(const JsonDocument info, channel->Ask("info"));
        record.tier = TextOf(*info, "tier");
        record.version = TextOf(*info, "version");
        const JsonValue* kernels = info->Find("kernels");
        for (size_t i = 0; kernels != nullptr && i < kernels->items().size(); ++i) {
          record.kernels.emplace_back(kernels->items()[i].as_string());
        }
      }
    }
    alive.push_back(std::move(channel));
  }
  if (process == 0) MakeRows(first, last);
  std::vector<RowPlan*> mine;
  for (RowPlan& plan : rows_) {
    if (plan.engine >= first && plan.engine < last) mine.push_back(&plan);
  }
  for (RowPlan* plan : mine) {
    POZOR_RETURN_IF_ERROR(WarmUp(*plan, *alive[plan->engine - first], process));
  }
  for (size_t round = 0; round < options_.rounds; ++round) {
    Note(Cat({"process ", std::to_string(process + 1), "/", std::to_string(options_.processes),
              ", round ", std::to_string(round + 1), "/", std::to_string(options_.rounds)}));
    for (RowPlan* plan : mine) {
      POZOR_RETURN_IF_ERROR(Visit(*plan, *alive[plan->engine - first], process, round));
    }
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
    Summarise(result_.compute_roofs, cpus, &plan.row);
    result_.rows.push_back(std::move(plan.row));
  }
  Warn();
  return std::move(result_);
}

}  // namespace

Result<BenchResult> RunBench(const BenchOptions& options) { return Run(options).Go(); }

}  // namespace pozor::tools
