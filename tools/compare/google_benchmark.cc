#include "tools/compare/google_benchmark.h"

#include <string>

#include "tools/bench/plan.h"
#include "tools/bench/text.h"

namespace pozor::tools {
namespace {

double SecondsOf(const JsonValue& item, std::string_view key) {
  const std::string unit = TextOf(item, "time_unit");
  const double factor = unit == "s" ? 1 : unit == "ms" ? 1e-3 : unit == "us" ? 1e-6 : 1e-9;
  return factor * NumberOf(item, key);
}

std::string ValueText(const JsonValue& value) {
  if (value.is_string()) return std::string(value.as_string());
  if (value.is_bool()) return value.as_bool() ? "true" : "false";
  if (value.is_number()) return Short(value.as_double());
  return "";
}

SystemRecord ReadContext(const JsonValue& root) {
  SystemRecord record;
  const JsonValue* context = root.Find("context");
  if (context == nullptr) return record;
  for (const JsonMember& member : context->members()) {
    const std::string text = ValueText(member.value);
    if (!text.empty() && member.key != "date" && member.key != "load_avg") {
      record.facts.push_back({"context", std::string(member.key), text, ""});
    }
  }
  for (const JsonValue& cache : context->Find("caches") == nullptr
                                    ? std::span<const JsonValue>()
                                    : context->Find("caches")->items()) {
    record.facts.push_back({"caches",
                            Cat({TextOf(cache, "type"), " L", Short(NumberOf(cache, "level"))}),
                            Short(NumberOf(cache, "size")), ""});
  }
  return record;
}

Row* RowOf(BenchResult* result, const std::string& name) {
  for (Row& row : result->rows) {
    if (row.key.workload == name) return &row;
  }
  Row row;
  row.key.engine = "Google Benchmark";
  row.key.workload = name;
  row.texts = 1;
  result->rows.push_back(std::move(row));
  return &result->rows.back();
}

}  // namespace

BenchResult ReadGoogleBenchmark(const JsonValue& root) {
  BenchResult result;
  result.system = ReadContext(root);
  if (const JsonValue* context = root.Find("context")) result.created = TextOf(*context, "date");
  for (const JsonValue& item : root.Find("benchmarks")->items()) {
    const JsonValue* failed = item.Find("error_occurred");
    if (TextOf(item, "run_type") == "aggregate" || (failed != nullptr && failed->as_bool())) {
      continue;
    }
    const std::string name = TextOf(item, "run_name");
    Row* row = RowOf(&result, name.empty() ? TextOf(item, "name") : name);
    if (CountOf(item, "threads") > 0) row->key.threads = CountOf(item, "threads");
    RowSamples& samples = row->samples;
    samples.process.push_back(0);
    samples.round.push_back(static_cast<double>(samples.size()));
    samples.at.push_back(0);
    samples.seconds.push_back(SecondsOf(item, "real_time"));
    samples.cpu_seconds.push_back(SecondsOf(item, "cpu_time"));
    samples.roof.push_back(0);
    samples.waited.push_back(0);
    samples.stolen.push_back(0);
  }
  for (Row& row : result.rows) Summarise({}, 1, &row);
  return result;
}

}  // namespace pozor::tools
