#include "tools/compare/load.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "models/json.h"
#include "tools/bench/plan.h"
#include "tools/bench/text.h"
#include "tools/compare/google_benchmark.h"

namespace pozor::tools {
namespace {

std::vector<double> Numbers(const JsonValue& object, std::string_view key) {
  std::vector<double> numbers;
  const JsonValue* array = object.Find(key);
  if (array == nullptr) return numbers;
  for (const JsonValue& value : array->items()) {
    numbers.push_back(value.is_number() ? value.as_double() : std::nan(""));
  }
  return numbers;
}

std::span<const JsonValue> Items(const JsonValue& object, std::string_view key) {
  const JsonValue* array = object.Find(key);
  return array == nullptr ? std::span<const JsonValue>() : array->items();
}

SystemRecord ReadSystemRecord(const JsonValue& root) {
  SystemRecord record;
  const JsonValue* system = root.Find("system");
  if (system == nullptr) return record;
  for (const JsonMember& section : system->members()) {
    for (const JsonMember& fact : section.value.members()) {
      const std::string text(fact.value.as_string());
      if (section.key != "not_visible") {
        record.facts.push_back({std::string(section.key), std::string(fact.key), text, ""});
        continue;
      }
      const size_t dot = fact.key.find('.');
      if (dot == std::string_view::npos) continue;
      record.facts.push_back(
          {std::string(fact.key.substr(0, dot)), std::string(fact.key.substr(dot + 1)), "", text});
    }
  }
  return record;
}

void ReadRoofs(const JsonValue& root, BenchResult* result) {
  const JsonValue* roof = root.Find("roof");
  if (roof == nullptr) return;
  for (const JsonValue& item : Items(*roof, "compute")) {
    result->compute_roofs.push_back(
        {TextOf(item, "name"), CountOf(item, "threads"), NumberOf(item, "gflops")});
  }
  for (const JsonValue& item : Items(*roof, "bandwidth")) {
    result->bandwidth_roofs.push_back({TextOf(item, "level"), CountOf(item, "bytes_per_thread"),
                                       CountOf(item, "threads"), NumberOf(item, "gb_per_second")});
  }
  for (const JsonValue& item : Items(*roof, "kernels")) {
    result->kernels.push_back({TextOf(item, "name"), CountOf(item, "m"), CountOf(item, "n"),
                               CountOf(item, "k"), NumberOf(item, "gflops"),
                               NumberOf(item, "bytes")});
  }
}

void ReadStarts(const JsonValue& root, BenchResult* result) {
  for (const JsonValue& item : Items(root, "starts")) {
    StartRecord start;
    start.engine = TextOf(item, "engine");
    start.precision = TextOf(item, "precision");
    start.tier = TextOf(item, "tier");
    start.threads = CountOf(item, "threads");
    start.version = TextOf(item, "version");
    for (const JsonValue& kernel : Items(item, "kernels")) {
      start.kernels.emplace_back(kernel.as_string());
    }
    start.ready_seconds = Numbers(item, "ready_seconds");
    start.load_seconds = Numbers(item, "load_seconds");
    start.first_vector_seconds = Numbers(item, "first_vector_seconds");
    start.warm_up_seconds = Numbers(item, "warm_up_seconds");
    start.mean_cosine = NumberOf(item, "mean_cosine");
    start.min_cosine = NumberOf(item, "min_cosine");
    result->starts.push_back(std::move(start));
  }
}

RowSamples ReadSamples(const JsonValue& item) {
  RowSamples samples;
  const JsonValue* columns = item.Find("samples");
  if (columns == nullptr) return samples;
  samples.process = Numbers(*columns, "process");
  samples.round = Numbers(*columns, "round");
  samples.at = Numbers(*columns, "at");
  samples.seconds = Numbers(*columns, "seconds");
  samples.cpu_seconds = Numbers(*columns, "cpu_seconds");
  samples.roof = Numbers(*columns, "roof_gflops");
  samples.waited = Numbers(*columns, "waited_seconds");
  samples.stolen = Numbers(*columns, "stolen_seconds");
  return samples;
}

Result<Row> ReadRow(const JsonValue& item, const std::string& path) {
  Row row;
  const JsonValue* key = item.Find("key");
  if (key == nullptr) return Corrupt(path + ": a row has no \"key\"; measure again");
  row.key = {TextOf(*key, "engine"),    TextOf(*key, "model"),      TextOf(*key, "workload"),
             TextOf(*key, "precision"), TextOf(*key, "tier"),       CountOf(*key, "threads"),
             CountOf(*key, "batch"),    CountOf(*key, "max_length")};
  row.latency = TextOf(item, "sample") == "call";
  row.active_tier = TextOf(item, "active_tier");
  row.roof_name = TextOf(item, "roof");
  row.model_hash = TextOf(item, "model_hash");
  row.workload_hash = TextOf(item, "workload_hash");
  row.texts = CountOf(item, "texts");
  row.tokens = CountOf(item, "tokens");
  row.flops = NumberOf(item, "flops");
  const JsonValue* summary = item.Find("summary");
  if (summary != nullptr) row.peak_memory_bytes = NumberOf(*summary, "peak_memory_bytes");
  row.samples = ReadSamples(item);
  const size_t count = row.samples.size();
  for (const auto* column :
       {&row.samples.process, &row.samples.round, &row.samples.at, &row.samples.cpu_seconds,
        &row.samples.roof, &row.samples.waited, &row.samples.stolen}) {
    if (column->size() != count) {
      return Corrupt(path + ": the columns of a row's samples differ in length; measure again");
    }
  }
  for (const auto* column : {&row.samples.process, &row.samples.round}) {
    if (std::all_of(column->begin(), column->end(), [](double at) { return std::isfinite(at); })) {
      continue;
    }
    return Corrupt(path + ": a sample's process or round is no number; measure again");
  }
  return row;
}

Result<BenchResult> ReadBench(const JsonValue& root, const std::string& path) {
  BenchResult result;
  const double version = NumberOf(root, "schema_version");
  if (version != kBenchSchemaVersion) {
    return Unsupported(Cat({path, ": schema version ", Short(version), ", this program reads ",
                            std::to_string(kBenchSchemaVersion), "; use the matching pozor"}));
  }
  result.created = TextOf(root, "created");
  result.command = TextOf(root, "command");
  result.system = ReadSystemRecord(root);
  if (const JsonValue* model = root.Find("model")) result.model = ReadModelRecord(*model);
  ReadRoofs(root, &result);
  ReadStarts(root, &result);
  for (const JsonValue& item : Items(root, "workloads")) {
    Workload workload;
    workload.name = TextOf(item, "name");
    workload.kind = TextOf(item, "kind");
    workload.hash = TextOf(item, "hash");
    workload.texts = CountOf(item, "texts");
    workload.tokens = CountOf(item, "tokens");
    workload.squares = CountOf(item, "squares");
    workload.longest = CountOf(item, "longest");
    workload.flops = NumberOf(item, "flops");
    result.workloads.push_back(std::move(workload));
  }
  for (const JsonValue& item : Items(root, "rows")) {
    POZOR_TRY(Row row, ReadRow(item, path));
    Summarise(result.compute_roofs, 1, &row);
    result.rows.push_back(std::move(row));
  }
  for (const JsonValue& item : Items(root, "warnings")) {
    result.warnings.emplace_back(item.as_string());
  }
  return result;
}

Result<LoadedResult> FromDocument(const JsonValue& root, const std::string& path) {
  LoadedResult loaded;
  loaded.path = path;
  loaded.label = std::filesystem::path(path).stem().string();
  if (TextOf(root, "schema") == "pozor-bench") {
    POZOR_TRY(loaded.result, ReadBench(root, path));
  } else if (root.Find("benchmarks") != nullptr) {
    loaded.is_pozor = false;
    loaded.result = ReadGoogleBenchmark(root);
  } else {
    return Unsupported(path +
                       ": neither a result of 'pozor bench' nor Google Benchmark's JSON; give one "
                       "of these");
  }
  if (loaded.result.rows.empty()) return InvalidArgument(path + ": has no rows; measure again");
  return loaded;
}

// "a/x.json" and "b/x.json" become "a/x" and "b/x"; what still is equal gets a number.
void MakeLabelsDiffer(std::vector<LoadedResult>* results) {
  std::map<std::string, size_t> uses;
  for (const LoadedResult& loaded : *results) ++uses[loaded.label];
  for (LoadedResult& loaded : *results) {
    if (uses[loaded.label] < 2) continue;
    const std::filesystem::path path = std::filesystem::absolute(loaded.path);
    loaded.label = Cat({path.parent_path().filename().string(), "/", path.stem().string()});
  }
  std::map<std::string, size_t> seen;
  for (LoadedResult& loaded : *results) {
    const size_t count = ++seen[loaded.label];
    if (count > 1) loaded.label += " (" + std::to_string(count) + ")";
  }
}

std::vector<std::string> EnginesOf(const BenchResult& result) {
  std::vector<std::string> engines;
  for (const Row& row : result.rows) {
    if (std::find(engines.begin(), engines.end(), row.key.engine) == engines.end()) {
      engines.push_back(row.key.engine);
    }
  }
  return engines;
}

// Of rows that differ only in their batch the fastest stays, without it: an engine at its best.
void KeepBestBatch(std::vector<Row>* rows) {
  std::vector<Row> best;
  for (Row& row : *rows) {
    row.key.batch = 0;
    const auto known =
        std::find_if(best.begin(), best.end(), [&](const Row& one) { return one.key == row.key; });
    if (known == best.end())
      best.push_back(std::move(row));
    else if (row.summary.seconds < known->summary.seconds)
      *known = std::move(row);
  }
  *rows = std::move(best);
}

LoadedResult OnlyEngine(const LoadedResult& loaded, const std::string& engine) {
  LoadedResult part = loaded;
  part.label = engine;
  std::erase_if(part.result.rows, [&](const Row& row) { return row.key.engine != engine; });
  std::erase_if(part.result.starts, [&](const StartRecord& s) { return s.engine != engine; });
  for (Row& row : part.result.rows) row.key.engine.clear();
  part.every_batch = part.result.rows;
  KeepBestBatch(&part.result.rows);
  return part;
}

}  // namespace

Result<std::vector<LoadedResult>> SplitEngines(const LoadedResult& loaded,
                                               const std::string& base) {
  std::vector<std::string> engines = EnginesOf(loaded.result);
  const auto first = std::find(engines.begin(), engines.end(), base);
  if (!base.empty() && first == engines.end()) {
    return NotFound(Cat({base, ": no engine of ", loaded.path, "; it has ", Join(engines, ", ")}));
  }
  if (!base.empty()) std::rotate(engines.begin(), first, first + 1);
  std::vector<LoadedResult> parts;
  parts.reserve(engines.size());
  for (const std::string& engine : engines) parts.push_back(OnlyEngine(loaded, engine));
  return parts;
}

Result<LoadedResult> ParseResult(std::string_view json, const std::string& path) {
  POZOR_TRY(const JsonDocument document, ParseJson(json, path));
  return FromDocument(*document, path);
}

Result<LoadedResult> LoadResult(const std::string& path) {
  POZOR_TRY(const JsonDocument document, ReadJsonFile(path));
  return FromDocument(*document, path);
}

Result<std::vector<LoadedResult>> LoadResults(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::vector<std::string> inside;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (entry.path().extension() == ".json") inside.push_back(entry.path().string());
    }
    std::sort(inside.begin(), inside.end());
    files.insert(files.end(), inside.begin(), inside.end());
  }
  std::vector<LoadedResult> results;
  for (const std::string& file : files) {
    POZOR_TRY(LoadedResult loaded, LoadResult(file));
    results.push_back(std::move(loaded));
  }
  MakeLabelsDiffer(&results);
  return results;
}

}  // namespace pozor::tools
