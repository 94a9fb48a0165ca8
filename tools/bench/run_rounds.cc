// The rounds: every row visited in turn, each visit between two probes of the roof.
#include <algorithm>
#include <filesystem>
#include <fstream>

#include "tools/bench/clock.h"
#include "tools/bench/roof.h"
#include "tools/bench/run.h"
#include "tools/bench/workload.h"
#include "tools/cli/signals.h"
#include "tools/stats.h"

namespace pozor::tools {
namespace {

constexpr double kVisitSeconds = 0.06;  // of a query row: calls until about this time
constexpr double kPausedVisitSeconds = 0.6;
constexpr size_t kMostCalls = 60;

Status StoppedBySignal() {
  return LastSignal() == 0 ? Status() : Cancelled("bench: stopped by a signal");
}

}  // namespace

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

std::string LatencyCommand(const Workload& workload, size_t calls) {
  const auto lines = ReadLines(workload.path, 1);
  return Cat({"latency\t", std::to_string(calls), "\t", lines.ok() ? (*lines)[0] : "",
              workload.pause_ms == 0 ? "" : "\t" + std::to_string(workload.pause_ms)});
}

// Rounds until one is not 3 % faster than the best before it, five at most; finds out how many
// calls of a query fit a visit.
Status Run::WarmUp(RowPlan& plan, Channel& channel, size_t process) {
  POZOR_RETURN_IF_ERROR(StoppedBySignal());
  POZOR_RETURN_IF_ERROR(Use(plan, channel));
  channel.ResetPeak();
  const Workload& workload = result_.workloads[plan.workload];
  double best = 0, sum = 0;
  for (int i = 0; i < 5; ++i) {
    const double start = Now();
    const std::string command =
        plan.row.latency ? LatencyCommand(workload, 3) : "round\t" + std::to_string(plan.batch);
    POZOR_TRY(const JsonDocument answer, channel.Ask(command));
    const double seconds = Now() - start;
    sum += seconds;
    if (best != 0 && seconds > 0.97 * best) break;
    best = best == 0 ? seconds : std::min(best, seconds);
  }
  if (plan.row.latency) {
    const double visit = workload.pause_ms == 0 ? kVisitSeconds : kPausedVisitSeconds;
    const double calls = visit / std::max(1e-6, best / 3);
    plan.calls = std::clamp<size_t>(static_cast<size_t>(calls), 3, kMostCalls);
  }
  plan.row.peak_memory_bytes = std::max(plan.row.peak_memory_bytes, channel.PeakBytes());
  std::vector<double>& warm_up = result_.starts[plan.engine].warm_up_seconds;
  warm_up.resize(std::max(warm_up.size(), process + 1));
  warm_up[process] += sum;
  return {};
}

Status Run::Visit(RowPlan& plan, Channel& channel, size_t process, size_t round) {
  POZOR_RETURN_IF_ERROR(StoppedBySignal());
  POZOR_RETURN_IF_ERROR(Use(plan, channel));
  const size_t threads = engines_[plan.engine].threads;
  const double before = probed_threads_ == threads ? probe_ : Probe(threads);
  const std::string command = plan.row.latency
                                  ? LatencyCommand(result_.workloads[plan.workload], plan.calls)
                                  : "round\t" + std::to_string(plan.batch);
  const double busy = MachineBusySeconds(), own = OwnCpuSeconds(), cpu = channel.CpuSeconds();
  const double waited_before = channel.WaitSeconds(), at = Now() - start_;
  POZOR_TRY(const JsonDocument answer, channel.Ask(command));
  const double used = channel.CpuSeconds() - cpu;
  const double waited = std::max(0.0, channel.WaitSeconds() - waited_before);
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
  const double count = static_cast<double>(samples.size());
  // A worker's own measure of each call, else this side's of the whole visit.
  const auto each = [&](std::string_view key, double whole) {
    const JsonValue* known = answer->Find(key);
    std::vector<double> values(samples.size(), whole / count);
    if (known != nullptr && known->is_number()) values.assign(samples.size(), known->as_double());
    for (size_t i = 0; known != nullptr && i < known->items().size() && i < values.size(); ++i) {
      values[i] = known->items()[i].as_double();
    }
    return values;
  };
  std::vector<double> cpus = each("cpu_seconds", used), waits = each("waited_seconds", waited);
  // What other threads of a short call have used is known later (clock.h): it may be counted with
  // the next call.
  if (plan.row.latency) cpus.assign(cpus.size(), Mean(cpus));
  RowSamples& kept = plan.row.samples;
  for (size_t i = 0; i < samples.size(); ++i) {
    kept.process.push_back(static_cast<double>(process));
    kept.round.push_back(static_cast<double>(round));
    kept.at.push_back(at);
    kept.seconds.push_back(samples[i]);
    kept.cpu_seconds.push_back(cpus[i]);
    kept.roof.push_back(roof);
    kept.waited.push_back(waits[i]);
    kept.stolen.push_back(stolen / count);
  }
  return {};
}

// Vectors of the first workload that is no query, against those of the first f32 engine: a fast
// wrong engine must be seen.
Status Run::CompareVectors(std::vector<std::unique_ptr<Channel>>& alive, size_t first) {
  for (size_t i = 0; i < alive.size(); ++i) {
    if (alive[i] == nullptr) continue;
    for (const RowPlan& plan : rows_) {
      if (plan.engine != first + i || plan.row.latency) continue;
      if (plan.row.key.workload != rows_[0].row.key.workload && !rows_[0].row.latency) continue;
      POZOR_RETURN_IF_ERROR(Use(plan, *alive[i]));
      const std::string path = folder_.path() + "/vectors";
      std::error_code error;
      std::filesystem::remove(path, error);  // of another engine
      error.clear();
      POZOR_TRY(const JsonDocument saved,
                alive[i]->Ask(Cat({"save\t", path, "\t", std::to_string(plan.batch)})));
      const size_t count = CountOf(*saved, "saved");
      const uintmax_t bytes = count == 0 ? 0 : std::filesystem::file_size(path, error);
      if (error || bytes != count * sizeof(float)) {
        return Corrupt("the worker's answer: says that " + std::to_string(count) +
                       " numbers are saved, and the file has " +
                       (error ? "not been written" : std::to_string(bytes) + " bytes") +
                       "; see worker.h");
      }
      std::vector<float> vectors(count);
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

}  // namespace pozor::tools
