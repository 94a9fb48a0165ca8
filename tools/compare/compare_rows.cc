#include "tools/compare/compare_rows.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tools/bench/text.h"

namespace pozor::tools {
namespace {

const Row* FindRow(const BenchResult& result, const RowKey& key) {
  for (const Row& row : result.rows) {
    if (row.key == key) return &row;
  }
  return nullptr;
}

// The one thing in which a row of `result` differs from the key, if there is such a row.
std::string NearestDifference(const BenchResult& result, const RowKey& key) {
  for (const Row& row : result.rows) {
    RowKey near = row.key;
    std::string why;
    const auto differs = [&why](std::string_view what, const std::string& a, const std::string& b) {
      if (a != b)
        why = Cat({what, " ", a.empty() ? "none" : a, " against ", b.empty() ? "none" : b});
    };
    size_t count = 0;
    const auto check = [&](std::string_view what, const std::string& a, const std::string& b) {
      if (a == b) return;
      ++count;
      differs(what, a, b);
    };
    check("workload", key.workload, near.workload);
    if (count > 0) continue;
    check("engine", key.engine, near.engine);
    check("model", key.model, near.model);
    check("precision", key.precision, near.precision);
    check("tier", key.tier, near.tier);
    check("threads", std::to_string(key.threads), std::to_string(near.threads));
    check("batch", std::to_string(key.batch), std::to_string(near.batch));
    check("maximum length", std::to_string(key.max_length), std::to_string(near.max_length));
    if (count == 1) return why;
  }
  return "the other file has no such row";
}

std::string WhyNotComparable(const Row& base, const Row& other) {
  if (base.model_hash != other.model_hash) return "other weights (their hashes differ)";
  if (base.workload_hash != other.workload_hash) return "other texts (their hashes differ)";
  if (base.latency != other.latency) return "calls against rounds";
  if (base.samples.size() == 0 || other.samples.size() == 0) return "no samples";
  return "";
}

bool HasRoof(const Row& row) {
  return !row.samples.roof.empty() && std::all_of(row.samples.roof.begin(), row.samples.roof.end(),
                                                  [](double roof) { return roof > 0; });
}

// 1 / ratio of times, with its interval turned round.
Estimate SpeedOf(const Estimate& time) {
  return {1 / time.value, {1 / time.interval.high, 1 / time.interval.low}};
}

Verdict Judge(const Estimate& speed, double resolution) {
  if (!(std::isfinite(speed.value) && std::isfinite(speed.interval.low))) {
    return Verdict::kNotComparable;
  }
  if (speed.interval.low > 1 && speed.value > 1 + resolution) return Verdict::kFaster;
  if (speed.interval.high < 1 && speed.value < 1 / (1 + resolution)) return Verdict::kSlower;
  return Verdict::kNoDifference;
}

bool IsVolatile(const SystemFact& fact) {
  return fact.key == "load average" || (fact.section == "os" && fact.key == "host");
}

}  // namespace

std::string_view VerdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kFaster:
      return "faster";
    case Verdict::kSlower:
      return "slower";
    case Verdict::kNoDifference:
      return "no difference";
    case Verdict::kNotComparable:
      return "not comparable";
  }
  return "";
}

std::string DescribeKey(const RowKey& key) {
  std::vector<std::string> parts = {key.workload};
  if (!key.engine.empty() && key.engine != "pozor") parts.push_back(key.engine);
  if (!key.precision.empty()) parts.push_back(key.precision);
  if (!key.tier.empty() && key.tier != "auto") parts.push_back(key.tier);
  parts.push_back(std::to_string(key.threads) + (key.threads == 1 ? " thread" : " threads"));
  if (key.batch != 0) parts.push_back("batch " + std::to_string(key.batch));
  return Join(parts, ", ");
}

Samples VisitSeconds(const Row& row, Timing timing) {
  const RowSamples& samples = row.samples;
  const std::vector<double> seconds =
      timing == Timing::kWall ? samples.seconds : QuietSeconds(samples, row.key.threads);
  std::map<std::pair<double, double>, std::vector<double>> visits;
  for (size_t i = 0; i < samples.size(); ++i) {
    const double factor = timing == Timing::kQuietTimesRoof ? samples.roof[i] : 1;
    visits[{samples.process[i], samples.round[i]}].push_back(seconds[i] * factor);
  }
  Samples values;
  double process = 0;
  for (const auto& [place, calls] : visits) {
    if (values.empty() || place.first != process) values.emplace_back();
    process = place.first;
    values.back().push_back(Quantile(calls, 0.25));
  }
  return values;
}

bool IsSameMachine(const BenchResult& base, const BenchResult& other) {
  for (const char* key : {"name", "vendor", "family", "model", "stepping", "flags"}) {
    if (base.system.Get("cpu", key) != other.system.Get("cpu", key)) return false;
  }
  return !base.system.Get("cpu", "name").empty() || !base.system.Get("cpu", "model").empty();
}

std::vector<RowComparison> CompareResults(const LoadedResult& base, const LoadedResult& other,
                                          const CompareOptions& options) {
  std::vector<RowComparison> rows;
  size_t matches = 0;
  for (const Row& row : base.result.rows) {
    RowComparison compared;
    compared.base = &row;
    compared.other = FindRow(other.result, row.key);
    compared.why = compared.other == nullptr ? NearestDifference(other.result, row.key)
                                             : WhyNotComparable(row, *compared.other);
    matches += compared.why.empty() ? 1 : 0;
    rows.push_back(std::move(compared));
  }
  for (const Row& row : other.result.rows) {
    if (FindRow(base.result, row.key) != nullptr) continue;
    RowComparison compared;
    compared.other = &row;
    compared.why = NearestDifference(base.result, row.key);
    rows.push_back(std::move(compared));
  }
  // Rounds of one run stand beside each other: their roof is the same.
  const bool same_machine = !options.paired && IsSameMachine(base.result, other.result);
  BootstrapOptions bootstrap;
  bootstrap.draws = options.draws;
  bootstrap.seed = options.seed;
  bootstrap.paired = options.paired;
  bootstrap.level = 1 - (1 - options.level) / static_cast<double>(std::max<size_t>(1, matches));
  for (RowComparison& row : rows) {
    if (!row.why.empty()) continue;
    row.normalised = same_machine && HasRoof(*row.base) && HasRoof(*row.other);
    const auto time = [&](Timing timing) {
      return DrawRatios(VisitSeconds(*row.base, timing), VisitSeconds(*row.other, timing),
                        bootstrap);
    };
    row.plain_speed = SpeedOf(EstimateOf(time(Timing::kWall), bootstrap.level));
    row.time = time(row.normalised ? Timing::kQuietTimesRoof : Timing::kQuiet);
    row.speed = SpeedOf(EstimateOf(row.time, bootstrap.level));
    const double waited = std::max(row.base->summary.waited_share, row.other->summary.waited_share);
    row.resolution = options.resolution * (options.paired ? 1 : 1 + 3 * waited);
    row.verdict = Judge(row.speed, row.resolution);
    if (row.verdict == Verdict::kNotComparable) row.why = "no usable samples";
  }
  return rows;
}

Overall JudgeTogether(const std::vector<RowComparison>& rows, double level) {
  Overall overall;
  std::vector<const Bootstrap*> times;
  for (const RowComparison& row : rows) {
    if (row.verdict == Verdict::kNotComparable) continue;
    times.push_back(&row.time);
    overall.resolution = std::max(overall.resolution, row.resolution);
  }
  if (times.empty()) return overall;
  overall.speed = SpeedOf(GeometricMean(times, level));
  overall.verdict = Judge(overall.speed, overall.resolution);
  return overall;
}

std::vector<Difference> DiffSystems(const BenchResult& base, const BenchResult& other) {
  std::vector<Difference> differences;
  const auto shown = [](const SystemFact* fact) {
    if (fact == nullptr) return std::string("–");
    return fact->visible() ? fact->value : fact->why_not;
  };
  const auto find = [](const BenchResult& result, const SystemFact& like) -> const SystemFact* {
    for (const SystemFact& fact : result.system.facts) {
      if (fact.section == like.section && fact.key == like.key) return &fact;
    }
    return nullptr;
  };
  const auto add = [&](const SystemFact& fact, const SystemFact* a, const SystemFact* b) {
    if (IsVolatile(fact) || shown(a) == shown(b)) return;
    differences.push_back({fact.section, fact.key, shown(a), shown(b)});
  };
  for (const SystemFact& fact : base.system.facts) add(fact, &fact, find(other, fact));
  for (const SystemFact& fact : other.system.facts) {
    if (find(base, fact) == nullptr) add(fact, nullptr, &fact);
  }
  const auto compare = [&](const char* section, const char* key, const std::string& a,
                           const std::string& b) {
    if (a != b) differences.push_back({section, key, a, b});
  };
  compare("model", "name", base.model.name, other.model.name);
  compare("model", "weights", base.model.hash, other.model.hash);
  const auto kernels = [](const BenchResult& result) {
    return result.starts.empty() ? std::string() : Join(result.starts[0].kernels, "; ");
  };
  compare("kernels", "chosen", kernels(base), kernels(other));
  return differences;
}

}  // namespace pozor::tools
