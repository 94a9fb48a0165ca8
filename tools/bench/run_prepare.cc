// Before the rounds: the model, the texts, the rows and the roofs.
#include <stdlib.h>

#include <algorithm>
#include <ctime>

#include "tools/bench/roof.h"
#include "tools/bench/run.h"
#include "tools/bench/workload.h"

namespace pozor::tools {
namespace {

std::string UtcNow() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

ScratchFolder::ScratchFolder() {
  const std::filesystem::path pattern = std::filesystem::temp_directory_path() / "pozor-XXXXXX";
  std::string name = pattern.string();
  if (mkdtemp(name.data()) != nullptr) path_ = name;
}

ScratchFolder::~ScratchFolder() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

Result<Workload> Run::MakeWorkload(Channel& worker, const std::string& name, size_t threads) {
  POZOR_TRY(const WorkloadName parsed, ParseWorkload(name));
  Workload workload;
  workload.kind = parsed.kind;
  workload.pause_ms = parsed.pause_ms;
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
  workload.texts = CountOf(*answer, "texts");
  workload.tokens = CountOf(*answer, "tokens");
  workload.squares = CountOf(*answer, "squares");
  workload.longest = CountOf(*answer, "longest");
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
          // A single text is a batch of its own.
          if (result_.workloads[place].kind == "query" && batch != engines_[e].batches[0]) continue;
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
  const std::vector<std::string>& asked = options_.precisions;
  const bool any_auto = std::find(asked.begin(), asked.end(), "auto") != asked.end();
  plain.asked = plain.precision = any_auto ? "auto" : asked[0];
  engines_.push_back(plain);
  POZOR_TRY(const std::unique_ptr<Channel> worker, Start(engines_.size() - 1));
  engines_.pop_back();
  POZOR_TRY(const JsonDocument info, worker->Ask("info"));
  result_.model = ReadModelRecord(*info);
  for (EnginePlan& engine : engines_) {
    if (engine.precision == "auto") engine.precision = TextOf(*info, "precision");
    StartRecord record;
    record.engine = engine.name;
    record.precision = engine.precision;
    record.tier = engine.tier;
    record.threads = engine.threads;
    result_.starts.push_back(std::move(record));
  }
  return MakeWorkloads(*worker);
}

}  // namespace pozor::tools
