#include "tools/bench/json_writer.h"
#include "tools/bench/result.h"

namespace pozor::tools {
namespace {

void WriteSystem(const SystemRecord& system, JsonWriter& json) {
  json.Key("system").BeginObject();
  std::string section;
  for (const SystemFact& fact : system.facts) {
    if (fact.section != section) {
      if (!section.empty()) json.EndObject();
      json.Key(fact.section).BeginObject();
      section = fact.section;
    }
    if (fact.visible()) json.Field(fact.key, fact.value);
  }
  if (!section.empty()) json.EndObject();
  json.Key("not_visible").BeginObject();
  for (const SystemFact& fact : system.facts) {
    if (!fact.visible()) json.Field(fact.section + "." + fact.key, fact.why_not);
  }
  json.EndObject().EndObject();
}

void WriteModel(const ModelRecord& model, JsonWriter& json) {
  json.Key("model").BeginObject();
  json.Field("name", model.name).Field("architecture", model.architecture);
  json.Field("hash", model.hash).Field("layers", model.layers).Field("hidden", model.hidden);
  json.Field("heads", model.heads).Field("intermediate", model.intermediate);
  json.Field("parameters", model.parameters).Field("max_length", model.max_length);
  json.Field("flops_per_token", model.flops_per_token);
  json.Field("flops_per_token_and_key", model.flops_per_square);
  json.EndObject();
}

void WriteRoofs(const BenchResult& result, JsonWriter& json) {
  json.Key("roof").BeginObject().Key("compute").BeginArray();
  for (const ComputeRoof& roof : result.compute_roofs) {
    json.BeginObject().Field("name", roof.name).Field("threads", roof.threads);
    json.Field("gflops", roof.gflops).EndObject();
  }
  json.EndArray().Key("bandwidth").BeginArray();
  for (const BandwidthRoof& roof : result.bandwidth_roofs) {
    json.BeginObject().Field("level", roof.level).Field("bytes_per_thread", roof.bytes);
    json.Field("threads", roof.threads).Field("gb_per_second", roof.gb_per_second).EndObject();
  }
  json.EndArray().Key("kernels").BeginArray();
  for (const KernelRecord& kernel : result.kernels) {
    json.BeginObject().Field("name", kernel.name).Field("m", kernel.m).Field("n", kernel.n);
    json.Field("k", kernel.k).Field("gflops", kernel.gflops).Field("bytes", kernel.bytes);
    json.EndObject();
  }
  json.EndArray().EndObject();
}

void WriteWorkloads(const std::vector<Workload>& workloads, JsonWriter& json) {
  json.Key("workloads").BeginArray();
  for (const Workload& workload : workloads) {
    json.BeginObject().Field("name", workload.name).Field("kind", workload.kind);
    json.Field("hash", workload.hash).Field("texts", workload.texts);
    json.Field("tokens", workload.tokens).Field("squares", workload.squares);
    json.Field("longest", workload.longest).Field("flops", workload.flops).EndObject();
  }
  json.EndArray();
}

void WriteStarts(const std::vector<StartRecord>& starts, JsonWriter& json) {
  json.Key("starts").BeginArray();
  for (const StartRecord& start : starts) {
    json.BeginObject().Field("engine", start.engine).Field("precision", start.precision);
    json.Field("tier", start.tier).Field("threads", start.threads).Field("version", start.version);
    json.Key("kernels").Array(start.kernels);
    json.Key("ready_seconds").Array(start.ready_seconds);
    json.Key("load_seconds").Array(start.load_seconds);
    json.Key("first_vector_seconds").Array(start.first_vector_seconds);
    json.Key("warm_up_seconds").Array(start.warm_up_seconds);
    if (start.mean_cosine != 0) {
      json.Field("mean_cosine", start.mean_cosine).Field("min_cosine", start.min_cosine);
    }
    json.EndObject();
  }
  json.EndArray();
}

void WriteSummary(const Row& row, JsonWriter& json) {
  const RowSummary& summary = row.summary;
  json.Key("summary").BeginObject();
  json.Field("quiet_lower_quartile_seconds", summary.seconds);
  json.Field("texts_per_second", summary.texts_per_second);
  json.Field("tokens_per_second", summary.tokens_per_second);
  json.Field("p50_seconds", summary.p50).Field("p90_seconds", summary.p90);
  json.Field("p99_seconds", summary.p99).Field("p99_9_seconds", summary.p999);
  json.Field("cpu_seconds_per_1000_texts", summary.cpu_seconds_per_1000_texts);
  if (row.flops > 0) json.Field("gflops", summary.gflops);
  if (summary.roof_share > 0) json.Field("roof_share", summary.roof_share);
  json.Field("peak_memory_bytes", row.peak_memory_bytes);
  json.Field("waited_share", summary.waited_share);
  json.Field("stolen_share", summary.stolen_share);
  json.EndObject();
}

void WriteSamples(const RowSamples& samples, JsonWriter& json) {
  json.Key("samples").BeginObject();
  json.Key("process").Array(samples.process);
  json.Key("round").Array(samples.round);
  json.Key("at").Array(samples.at);
  json.Key("seconds").Array(samples.seconds);
  json.Key("cpu_seconds").Array(samples.cpu_seconds);
  json.Key("roof_gflops").Array(samples.roof, 6);
  json.Key("waited_seconds").Array(samples.waited, 6);
  json.Key("stolen_seconds").Array(samples.stolen, 4);
  json.EndObject();
}

void WriteRow(const Row& row, JsonWriter& json) {
  const RowKey& key = row.key;
  json.BeginObject();
  json.Key("key").BeginObject();
  json.Field("engine", key.engine).Field("model", key.model).Field("workload", key.workload);
  json.Field("precision", key.precision).Field("tier", key.tier).Field("threads", key.threads);
  json.Field("batch", key.batch).Field("max_length", key.max_length).EndObject();
  json.Field("sample", row.latency ? "call" : "round");
  json.Field("active_tier", row.active_tier).Field("roof", row.roof_name);
  json.Field("model_hash", row.model_hash).Field("workload_hash", row.workload_hash);
  json.Field("texts", row.texts).Field("tokens", row.tokens).Field("flops", row.flops);
  WriteSummary(row, json);
  WriteSamples(row.samples, json);
  json.EndObject();
}

}  // namespace

std::string ToJson(const BenchResult& result) {
  JsonWriter json(1);
  json.BeginObject().Field("schema", "pozor-bench").Field("schema_version", kBenchSchemaVersion);
  json.Field("created", result.created).Field("command", result.command);
  WriteSystem(result.system, json);
  WriteModel(result.model, json);
  WriteRoofs(result, json);
  WriteWorkloads(result.workloads, json);
  WriteStarts(result.starts, json);
  json.Key("rows").BeginArray();
  for (const Row& row : result.rows) WriteRow(row, json);
  json.EndArray();
  json.Key("warnings").BeginArray();
  for (const std::string& warning : result.warnings) json.Value(warning);
  json.EndArray().EndObject();
  return json.text() + "\n";
}

}  // namespace pozor::tools
