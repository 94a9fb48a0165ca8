#include "tools/compare.h"

#include <cstdio>
#include <fstream>

#include "tools/bench/json_writer.h"
#include "tools/bench/text.h"
#include "tools/compare/fail_if.h"
#include "tools/compare/html.h"
#include "tools/compare/report.h"

namespace pozor::tools {
namespace {

void WriteEstimate(const char* key, const Estimate& estimate, JsonWriter& json) {
  json.Key(key).BeginObject().Field("value", estimate.value);
  json.Field("low", estimate.interval.low).Field("high", estimate.interval.high).EndObject();
}

void WriteComparison(const Comparison& comparison, JsonWriter& json) {
  json.BeginObject().Field("base", comparison.base->path).Field("other", comparison.other->path);
  json.Key("differences").BeginArray();
  for (const Difference& difference : comparison.differences) {
    json.BeginObject().Field("what", Cat({difference.section, ".", difference.key}));
    json.Field("base", difference.base).Field("other", difference.other).EndObject();
  }
  json.EndArray().Key("rows").BeginArray();
  for (const RowComparison& row : comparison.rows) {
    const RowKey& key = row.base != nullptr ? row.base->key : row.other->key;
    json.BeginObject().Field("row", DescribeKey(key)).Field("verdict", VerdictName(row.verdict));
    if (!row.why.empty()) {
      json.Field("why", row.why).EndObject();
      continue;
    }
    json.Field("normalised", row.normalised);
    WriteEstimate("speed", row.speed, json);
    WriteEstimate("plain_speed", row.plain_speed, json);
    json.EndObject();
  }
  const VerdictCounts counts = CountVerdicts(comparison.rows);
  json.EndArray().Key("counts").BeginObject().Field("faster", counts.faster);
  json.Field("slower", counts.slower).Field("no_difference", counts.same);
  json.Field("not_comparable", counts.not_comparable);
  const Overall overall = JudgeTogether(comparison.rows);
  json.EndObject().Key("all_rows").BeginObject().Field("verdict", VerdictName(overall.verdict));
  if (overall.verdict != Verdict::kNotComparable) WriteEstimate("speed", overall.speed, json);
  json.EndObject().EndObject();
}

// One engine of one file: its rows, with nothing beside them.
void PrintAlone(const LoadedResult& loaded, bool as_json) {
  if (!as_json) {
    std::printf("%s\n", ToMarkdown(loaded).c_str());
    return;
  }
  JsonWriter json(1);
  json.BeginArray().BeginObject().Field("base", loaded.path).Key("rows").BeginArray();
  for (const Row& row : loaded.result.rows) {
    json.BeginObject().Field("row", DescribeKey(row.key));
    json.Field("seconds", row.summary.seconds);
    json.Field("tokens_per_second", row.summary.tokens_per_second).EndObject();
  }
  std::printf("%s\n", json.EndArray().EndObject().EndArray().text().c_str());
}

}  // namespace

Status RunCompare(const CompareRequest& request, bool* failed) {
  std::vector<FailCondition> conditions;
  if (!request.fail_if.empty()) {
    POZOR_TRY(conditions, ParseFailIf(request.fail_if));
  }
  POZOR_TRY(std::vector<LoadedResult> results, LoadResults(request.files));
  if (results.empty()) return InvalidArgument("compare: no result files; give one or more");
  const std::string warnings = WarningsToMarkdown(results);  // of the files, not of each engine
  CompareOptions options = request.options;
  if (results.size() == 1) {
    const LoadedResult whole = results[0];
    POZOR_TRY(results, SplitEngines(whole, request.base));
    options.paired = true;
    if (results.size() == 1 && !conditions.empty()) {
      return InvalidArgument(whole.path + ": has one engine, and --fail-if compares; give a " +
                             "second file");
    }
    if (results.size() == 1) PrintAlone(whole, request.json);
  } else if (!request.base.empty()) {
    return InvalidArgument("--base: names an engine of one file; give one file");
  }
  std::vector<Comparison> comparisons;
  for (size_t i = 1; i < results.size(); ++i) {
    comparisons.push_back({&results[0], &results[i],
                           DiffSystems(results[0].result, results[i].result),
                           CompareResults(results[0], results[i], options)});
  }
  *failed = false;
  JsonWriter json(1);
  json.BeginArray();
  for (const Comparison& comparison : comparisons) {
    if (request.json)
      WriteComparison(comparison, json);
    else
      std::printf("%s\n", ToMarkdown(comparison).c_str());
    for (const RowComparison& row : comparison.rows) {
      if (!Fails(row, conditions)) continue;
      *failed = true;
      const RowKey& key = row.base != nullptr ? row.base->key : row.other->key;
      std::fprintf(stderr, "pozor: %s: %.*s; --fail-if %s\n", DescribeKey(key).c_str(),
                   static_cast<int>(VerdictName(row.verdict).size()),
                   VerdictName(row.verdict).data(), request.fail_if.c_str());
    }
  }
  if (request.json && !comparisons.empty()) std::printf("%s\n", json.EndArray().text().c_str());
  if (!request.json && !comparisons.empty()) std::printf("%s", warnings.c_str());
  if (request.html.empty()) return {};
  std::ofstream file(request.html, std::ios::binary);
  file << ToHtml(results, comparisons);
  file.close();
  if (!file) return IoError(request.html + ": cannot be written; check the folder");
  std::fprintf(stderr, "pozor: %s: the page is written\n", request.html.c_str());
  return {};
}

}  // namespace pozor::tools
