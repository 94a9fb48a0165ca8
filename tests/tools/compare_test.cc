// Reading results, matching rows, verdicts, --fail-if, and the page.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "models/json.h"
#include "tests/support/pozor_command.h"
#include "tools/compare/compare_rows.h"
#include "tools/compare/fail_if.h"
#include "tools/compare/html.h"
#include "tools/compare/html_charts.h"
#include "tools/compare/html_parts.h"
#include "tools/compare/load.h"
#include "tools/compare/report.h"
#include "tools/compare/svg.h"

namespace pozor::tools {
namespace {

struct RowRecipe {
  std::string workload = "fixed-128";
  size_t threads = 1;
  std::string precision = "f32";
  double seconds = 0.1;
  bool latency = false;
  std::string workload_hash = "w";
  std::string model_hash = "m";
  double roof = 100;
};

Row MakeRow(const RowRecipe& recipe, uint64_t seed) {
  SplitMix64 random(seed);
  Row row;
  row.key = {"pozor", "tiny", recipe.workload, recipe.precision, "auto", recipe.threads, 0, 0};
  row.latency = recipe.latency;
  row.active_tier = "avx2";
  row.roof_name = "avx2-f32";
  row.model_hash = recipe.model_hash;
  row.workload_hash = recipe.workload_hash;
  row.texts = recipe.latency ? 1 : 8;
  row.tokens = recipe.latency ? 8 : 1024;
  row.flops = 1e9;
  row.peak_memory_bytes = 1e8;
  const size_t calls = recipe.latency ? 20 : 1;
  for (double process = 0; process < 3; ++process) {
    for (double round = 0; round < 12; ++round) {
      for (size_t call = 0; call < calls; ++call) {
        const double noise = 1 + 0.005 * random.Uniform() + (random.Below(4) == 0 ? 0.2 : 0);
        row.samples.process.push_back(process);
        row.samples.round.push_back(round);
        row.samples.at.push_back(round);
        row.samples.seconds.push_back(recipe.seconds * noise);
        row.samples.cpu_seconds.push_back(recipe.seconds);
        row.samples.roof.push_back(recipe.roof);
        row.samples.waited.push_back(0);
        row.samples.stolen.push_back(0);
      }
    }
  }
  return row;
}

// A result with these rows, written as JSON and read again: every test goes through the file.
LoadedResult MakeResult(const std::string& name, const std::vector<RowRecipe>& recipes,
                        const std::string& cpu = "Test CPU", uint64_t seed = 1) {
  BenchResult result;
  result.created = "2026-11-30T00:00:00Z";
  result.system.facts = {{"cpu", "name", cpu, ""},
                         {"cpu", "governor", "", "not visible (virtual machine)"},
                         {"build", "commit", name, ""}};
  result.model.name = "tiny";
  result.model.hash = "m";
  result.compute_roofs = {{"avx2-f32", 1, 100}, {"avx2-f32", 2, 200}};
  result.bandwidth_roofs = {{"L1", 24576, 1, 200}, {"DRAM", 1 << 28, 1, 20}};
  result.kernels = {{"avx2-f32f32f32-6x16x1", 128, 384, 384, 90, 1e6}};
  for (const RowRecipe& recipe : recipes) result.rows.push_back(MakeRow(recipe, seed++));
  for (Row& row : result.rows) Summarise(result.compute_roofs, 2, &row);
  Result<LoadedResult> loaded = ParseResult(ToJson(result), name + ".json");
  REQUIRE(loaded.ok());
  return *loaded;
}

TEST_CASE("a result survives its file") {
  const LoadedResult loaded = MakeResult("a", {{}, {.workload = "query-8", .latency = true}});
  REQUIRE(loaded.result.rows.size() == 2);
  const Row& row = loaded.result.rows[0];
  CHECK(loaded.label == "a");
  CHECK(loaded.is_pozor);
  CHECK(row.key == RowKey{"pozor", "tiny", "fixed-128", "f32", "auto", 1, 0, 0});
  CHECK(row.samples.size() == 36);
  CHECK(row.summary.tokens_per_second == doctest::Approx(1024 / row.summary.seconds));
  CHECK(row.summary.gflops == doctest::Approx(1 / row.summary.seconds));
  CHECK(row.summary.roof_share == doctest::Approx(row.summary.gflops / 100));
  CHECK(loaded.result.rows[1].latency);
  CHECK(loaded.result.system.Get("cpu", "name") == "Test CPU");
  REQUIRE(loaded.result.system.facts.size() == 3);
  CHECK(loaded.result.system.facts[2].why_not == "not visible (virtual machine)");
}

TEST_CASE("verdicts") {
  struct Case {
    const char* name;
    RowRecipe other;
    Verdict verdict;
    const char* why;
  };
  const std::vector<Case> cases = {
      {"the same", {}, Verdict::kNoDifference, ""},
      {"5 % slower", {.seconds = 0.105}, Verdict::kSlower, ""},
      {"5 % faster", {.seconds = 0.095}, Verdict::kFaster, ""},
      {"1 % is below the resolution", {.seconds = 0.101}, Verdict::kNoDifference, ""},
      {"slower with the clock", {.seconds = 0.11, .roof = 100 / 1.1}, Verdict::kNoDifference, ""},
      {"other texts", {.workload_hash = "x"}, Verdict::kNotComparable, "texts"},
      {"other weights", {.model_hash = "x"}, Verdict::kNotComparable, "weights"},
      {"other threads", {.threads = 2}, Verdict::kNotComparable, "threads 1 against 2"},
      {"other precision",
       {.precision = "int8"},
       Verdict::kNotComparable,
       "precision f32 against int8"},
      {"no such row", {.workload = "mix"}, Verdict::kNotComparable, "no such row"}};
  const LoadedResult base = MakeResult("a", {{}});
  for (const Case& c : cases) {
    CAPTURE(c.name);
    const LoadedResult other = MakeResult("b", {c.other}, "Test CPU", 77);
    const std::vector<RowComparison> rows = CompareResults(base, other, {});
    REQUIRE(!rows.empty());
    CHECK(rows[0].verdict == c.verdict);
    CHECK(rows[0].why.find(c.why) != std::string::npos);
  }
}

TEST_CASE("all rows together have a verdict of their own") {
  const std::vector<const char*> workloads = {"fixed-8", "fixed-16", "fixed-32", "mix"};
  std::vector<RowRecipe> base, slower, mixed;
  for (size_t i = 0; i < workloads.size(); ++i) {
    base.push_back({.workload = workloads[i]});
    slower.push_back({.workload = workloads[i], .seconds = 0.105});
    mixed.push_back({.workload = workloads[i], .seconds = i % 2 == 0 ? 0.11 : 0.0909});
  }
  mixed.push_back({.workload = "fixed-64"});  // only on one side: counts for nothing
  const LoadedResult a = MakeResult("a", base);
  const auto judge = [&](const std::vector<RowRecipe>& recipes) {
    return CompareResults(a, MakeResult("b", recipes, "Test CPU", 77), {});
  };
  CHECK(JudgeTogether(judge(base)).verdict == Verdict::kNoDifference);
  CHECK(JudgeTogether(judge(slower)).verdict == Verdict::kSlower);
  CHECK(JudgeTogether(judge(slower)).speed.value == doctest::Approx(1 / 1.05).epsilon(0.005));
  CHECK(JudgeTogether(judge(mixed)).verdict == Verdict::kNoDifference);
  CHECK(JudgeTogether({}).verdict == Verdict::kNotComparable);
  CHECK(DescribeTogether(judge(slower)).find("4 slower, 0 no difference") != std::string::npos);
  CHECK(DescribeTogether(judge(slower)).ends_with("), slower"));
}

TEST_CASE("rounds are divided by the roof on one machine only") {
  const LoadedResult base = MakeResult("a", {{}});
  const LoadedResult elsewhere = MakeResult("b", {{.seconds = 0.05, .roof = 200}}, "Other CPU");
  const RowComparison row = CompareResults(base, elsewhere, {})[0];
  CHECK_FALSE(row.normalised);
  CHECK(row.verdict == Verdict::kFaster);
  CHECK(row.speed.value == doctest::Approx(2).epsilon(0.02));
}

TEST_CASE("calls of one visit are one value") {
  const LoadedResult loaded = MakeResult("a", {{.workload = "query-8", .latency = true}});
  const Samples visits = VisitSeconds(loaded.result.rows[0], Timing::kQuiet);
  REQUIRE(visits.size() == 3);
  for (const std::vector<double>& process : visits) CHECK(process.size() == 12);
}

TEST_CASE("processes may have any number") {
  Row row = MakeResult("a", {{}}).result.rows[0];
  for (double& process : row.samples.process) process = -1 - process;
  CHECK(VisitSeconds(row, Timing::kWall).size() == 3);
}

TEST_CASE("what differs is told, what is only momentary is not") {
  LoadedResult a = MakeResult("a", {{}}), b = MakeResult("b", {{}});
  a.result.system.facts.push_back({"os", "load average", "1", ""});
  b.result.system.facts.push_back({"os", "load average", "2", ""});
  const std::vector<Difference> differences = DiffSystems(a.result, b.result);
  REQUIRE(differences.size() == 1);
  CHECK(differences[0].key == "commit");
  CHECK(differences[0].base == "a");
  CHECK(differences[0].other == "b");
}

TEST_CASE("--fail-if") {
  RowComparison slower, faster, same, lost;
  slower.verdict = Verdict::kSlower;
  slower.speed.value = 1 / 1.06;
  faster.verdict = Verdict::kFaster;
  faster.speed.value = 1.04;
  same.verdict = Verdict::kNoDifference;
  struct Case {
    const char* text;
    bool slower, faster, same, lost;
  };
  for (const Case& c :
       {Case{"slower", true, false, false, false}, Case{"slower>5%", true, false, false, false},
        Case{"slower>7%", false, false, false, false},
        Case{"faster>3.5%", false, true, false, false},
        Case{"slower>5%, not-comparable", true, false, false, true}}) {
    CAPTURE(c.text);
    const auto conditions = ParseFailIf(c.text);
    REQUIRE(conditions.ok());
    CHECK(Fails(slower, *conditions) == c.slower);
    CHECK(Fails(faster, *conditions) == c.faster);
    CHECK(Fails(same, *conditions) == c.same);
    CHECK(Fails(lost, *conditions) == c.lost);
  }
  for (const char* wrong :
       {"", "slow", "slower>5", "slower>%", "slower>-1%", "not-comparable>5%"}) {
    CAPTURE(wrong);
    CHECK_FALSE(ParseFailIf(wrong).ok());
  }
}

TEST_CASE("engines of one run") {
  LoadedResult loaded = MakeResult("ab", {{}, {.seconds = 0.097}});
  loaded.result.rows[0].key.engine = "before";
  loaded.result.rows[1].key.engine = "after";
  loaded.result.rows[1].key.batch = 32;
  // One mood of the machine for both, far larger than their difference.
  for (size_t i = 0; i < 36; ++i) {
    const double mood = 1 + 0.02 * static_cast<double>(i % 7);
    loaded.result.rows[0].samples.seconds[i] = 0.1 * mood;
    loaded.result.rows[1].samples.seconds[i] = 0.097 * mood;
  }
  const auto parts = SplitEngines(loaded, "before");
  REQUIRE(parts.ok());
  REQUIRE(parts->size() == 2);
  CHECK((*parts)[0].label == "before");
  CompareOptions options;
  options.paired = true;
  const RowComparison row = CompareResults((*parts)[0], (*parts)[1], options)[0];
  CHECK(row.verdict == Verdict::kFaster);
  CHECK(row.speed.interval.high - row.speed.interval.low < 0.002);
  CHECK_FALSE(row.normalised);
  CHECK((*SplitEngines(loaded, "after"))[0].label == "after");
  CHECK_FALSE(SplitEngines(loaded, "nobody").ok());

  // Of two batches the faster one stands for its engine.
  loaded.result.rows.push_back(loaded.result.rows[1]);
  loaded.result.rows[2].key.batch = 8;
  loaded.result.rows[2].summary.seconds *= 0.5;
  const auto best = SplitEngines(loaded, "before");
  REQUIRE((*best)[1].result.rows.size() == 1);
  CHECK((*best)[1].result.rows[0].summary.seconds == loaded.result.rows[2].summary.seconds);
}

TEST_CASE("what files warn of stands once beside their comparison") {
  const testing::TemporaryFolder folder;
  const auto count = [](const std::string& text, const std::string& part) {
    size_t times = 0;
    for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
      ++times;
    }
    return times;
  };
  std::vector<std::string> files;
  for (const std::string name : {"a", "b", "c"}) {
    BenchResult result = MakeResult(name, {{}, {.workload = "mix"}}).result;
    result.rows[1].key.engine = "another";
    result.warnings = {"noise of " + name};
    files.push_back(folder.Write(name + ".json", ToJson(result)));
  }
  const testing::ProcessResult all =
      testing::Pozor({"compare", files[0], files[1], files[2], "-o", folder.File("page.html")});
  CHECK(all.exit_code == 0);
  for (const std::string name : {"a", "b", "c"}) {
    CHECK(count(all.output, "**Warning**: " + name + ": noise of " + name) == 1);
  }
  CHECK(all.errors == "pozor: " + folder.File("page.html") + ": the page is written\n");
  const testing::ProcessResult engines = testing::Pozor({"compare", files[0]});
  CHECK(count(engines.output, "noise of a") == 1);
  const testing::ProcessResult json = testing::Pozor({"compare", files[0], files[1], "--json"});
  CHECK(ParseJson(json.output, "compare").ok());
}

TEST_CASE("one engine of one file: its own table") {
  const LoadedResult loaded = MakeResult("alone", {{}, {.workload = "mix"}});
  const std::string text = ToMarkdown(loaded);
  for (const char* part : {"fixed-128", "mix", "tokens/s", "tiny on Test CPU"}) {
    CHECK(text.find(part) != std::string::npos);
  }
  const testing::TemporaryFolder folder;
  const std::string file = folder.Write("alone.json", ToJson(loaded.result));
  const testing::ProcessResult table = testing::Pozor({"compare", file});
  CHECK(table.exit_code == 0);
  CHECK(table.output.find("fixed-128") != std::string::npos);
  const testing::ProcessResult json = testing::Pozor({"compare", file, "--json"});
  const auto document = ParseJson(json.output, "compare");
  REQUIRE(document.ok());
  CHECK((*document)->items()[0].Find("rows")->size() == 2);
  const testing::ProcessResult refused = testing::Pozor({"compare", file, "--fail-if", "slower"});
  CHECK(refused.exit_code == 2);
  CHECK(refused.errors.find("give a second file") != std::string::npos);
  const std::string google = folder.Write("google.json", R"({"context": {}, "benchmarks": [
      {"name": "Gemm/128", "run_name": "Gemm/128", "run_type": "iteration", "threads": 1,
       "real_time": 2.0, "cpu_time": 2.0, "time_unit": "us"}]})");
  CHECK(testing::Pozor({"compare", google}).output.find("Gemm/128") != std::string::npos);
}

TEST_CASE("Google Benchmark's JSON") {
  const char* json = R"({"context": {"host_name": "h", "num_cpus": 2, "mhz_per_cpu": 2300,
      "cpu_scaling_enabled": false, "caches": [{"type": "Data", "level": 1, "size": 32768}]},
    "benchmarks": [
      {"name": "Gemm/128", "run_name": "Gemm/128", "run_type": "iteration", "threads": 1,
       "real_time": 2.0, "cpu_time": 2.0, "time_unit": "us"},
      {"name": "Gemm/128", "run_name": "Gemm/128", "run_type": "iteration", "threads": 1,
       "real_time": 2.2, "cpu_time": 2.0, "time_unit": "us"},
      {"name": "Gemm/128_mean", "run_name": "Gemm/128", "run_type": "aggregate",
       "aggregate_name": "mean", "real_time": 9, "cpu_time": 9, "time_unit": "us"},
      {"name": "Broken", "run_name": "Broken", "run_type": "iteration", "error_occurred": true,
       "error_message": "no", "real_time": 0, "cpu_time": 0, "time_unit": "ns"}]})";
  const auto loaded = ParseResult(json, "g.json");
  REQUIRE(loaded.ok());
  CHECK_FALSE(loaded->is_pozor);
  REQUIRE(loaded->result.rows.size() == 1);
  CHECK(loaded->result.rows[0].key.workload == "Gemm/128");
  CHECK(loaded->result.rows[0].samples.seconds == std::vector<double>{2.0e-6, 2.2e-6});
  const RowComparison row = CompareResults(*loaded, *loaded, {})[0];
  CHECK(row.verdict == Verdict::kNoDifference);
}

TEST_CASE("files that are no results are refused") {
  struct Case {
    const char* name;
    const char* json;
  };
  for (const Case& c :
       {Case{"not JSON", "x"}, Case{"another file", "{\"a\": 1}"},
        Case{"a newer schema", R"({"schema": "pozor-bench", "schema_version": 99})"},
        Case{"no rows", R"({"schema": "pozor-bench", "schema_version": 1, "rows": []})"},
        Case{"a row without key",
             R"({"schema": "pozor-bench", "schema_version": 1, "rows": [{}]})"},
        Case{"a sample of no round", R"({"schema": "pozor-bench", "schema_version": 1, "rows": [
             {"key": {"engine": "pozor"}, "samples": {"seconds": [1], "cpu_seconds": [1],
              "process": [0], "round": [null], "at": [0], "roof_gflops": [0],
              "waited_seconds": [0], "stolen_seconds": [0]}}]})"},
        Case{"columns that differ", R"({"schema": "pozor-bench", "schema_version": 1, "rows": [
             {"key": {"engine": "pozor"}, "samples": {"seconds": [1, 2], "round": [0]}}]})"}}) {
    CAPTURE(c.name);
    CHECK_FALSE(ParseResult(c.json, "x.json").ok());
  }
}

TEST_CASE("the page is whole and needs nothing else") {
  std::vector<RowRecipe> recipes;
  for (const size_t threads : {1, 2}) {
    for (const char* workload : {"fixed-16", "fixed-128", "mix"}) {
      recipes.push_back({.workload = workload,
                         .threads = threads,
                         .seconds = 0.1 / static_cast<double>(threads)});
    }
    recipes.push_back(
        {.workload = "query-8", .threads = threads, .seconds = 1e-3, .latency = true});
  }
  const std::vector<LoadedResult> results = {MakeResult("a", recipes),
                                             MakeResult("b<i>", recipes, "Test CPU", 50)};
  const std::vector<Comparison> comparisons = {{&results[0], &results[1],
                                                DiffSystems(results[0].result, results[1].result),
                                                CompareResults(results[0], results[1], {})}};
  const std::string html = ToHtml(results, comparisons);
  for (const char* part :
       {"What differs", "Verdicts", "Leader board", "Thread scaling", "Latency of one text",
        "Roofline", "Length and batch", "Start", "prefers-color-scheme: dark", "</html>"}) {
    CAPTURE(part);
    CHECK(html.find(part) != std::string::npos);
  }
  for (const char* part : {"http:", "https:", "src=", "<script", "@import", "url(", "<i>", "nan"}) {
    CAPTURE(part);
    CHECK(html.find(part) == std::string::npos);
  }
  // Every chart has its numbers below it.
  size_t charts = 0, tables = 0;
  for (size_t at = 0; (at = html.find("<svg", at)) != std::string::npos; ++at) ++charts;
  for (size_t at = 0; (at = html.find("The numbers", at)) != std::string::npos; ++at) ++tables;
  CHECK(charts > 8);
  CHECK(charts == tables);
}

TEST_CASE("numbers of files in runs") {
  CHECK(FileNumber(0) == "#1");
  CHECK(FileNumbers({0}) == "#1");
  CHECK(FileNumbers({0, 1}) == "#1, #2");
  CHECK(FileNumbers({0, 1, 2, 4, 6, 7}) == "#1–#3, #5, #7, #8");
}

// The page of `count` files: two machines, of which the second has rows of its own.
std::string PageOf(size_t count) {
  std::vector<LoadedResult> results;
  for (size_t i = 0; i < count; ++i) {
    const bool first = i < count / 2;
    RowRecipe recipe;
    recipe.workload = first ? "fixed-16" : "fixed-128";
    results.push_back(MakeResult("file-" + std::to_string(i), {recipe, {.workload = "mix"}},
                                 first ? "Old CPU" : "New CPU", i));
  }
  std::vector<Comparison> comparisons;
  for (size_t i = 1; i < count; ++i) {
    comparisons.push_back({&results[0], &results[i],
                           DiffSystems(results[0].result, results[i].result),
                           CompareResults(results[0], results[i], {})});
  }
  return ToHtml(results, comparisons);
}

TEST_CASE("the page of a few files has a column for each, that of many the files of each value") {
  const auto has = [](const std::string& page, std::string_view part) {
    return page.find(part) != std::string::npos;
  };
  const std::string few = PageOf(4), many = PageOf(10);
  CHECK(has(few, "<th>file-3</th></tr></thead>"));
  CHECK(has(few, "<td>Old CPU</td><td>Old CPU</td><td>New CPU</td><td>New CPU</td>"));
  CHECK_FALSE(has(few, "<td>#4</td>"));
  CHECK(has(few, "<h3>file-3 against file-0</h3>"));

  CHECK_FALSE(has(many, "<th>file-3</th>"));
  CHECK(has(many, "<td>#3</td><td>file-2</td>"));
  CHECK(has(many, "<td>cpu: name</td><td>#1–#5</td><td>Old CPU</td>"));
  CHECK(has(many, "<td></td><td>#6–#10</td><td>New CPU</td>"));
  CHECK(has(many, "<h3>Against #1, file-0</h3>"));
  CHECK(has(many, "<summary>#10: file-9 against file-0</summary>"));
  CHECK(has(many, "2 rows not comparable</summary>"));

  // Colours for each in the one, names behind bars in the other.
  CHECK(has(few, "</i>file-3</span>"));
  CHECK_FALSE(has(few, "Colours stand for"));
  CHECK(has(many, "Colours stand for 10 series"));
  CHECK(has(many, " · #10</text>"));
}

// Of a result whose rows and roofs `spoil` has changed.
std::string SpoiltPage(const std::function<void(BenchResult*)>& spoil) {
  std::vector<RowRecipe> recipes = {{.workload = "fixed-16"}, {.workload = "fixed-128"}};
  recipes.push_back({.workload = "fixed-16", .threads = 2});
  recipes.push_back({.workload = "query-8", .seconds = 1e-3, .latency = true});
  std::vector<LoadedResult> results = {MakeResult("a", recipes), MakeResult("b", recipes)};
  spoil(&results[1].result);
  for (Row& row : results[1].result.rows) Summarise(results[1].result.compute_roofs, 2, &row);
  const std::vector<Comparison> comparisons = {{&results[0], &results[1],
                                                DiffSystems(results[0].result, results[1].result),
                                                CompareResults(results[0], results[1], {})}};
  return ToHtml(results, comparisons);
}

TEST_CASE("whatever the numbers are, the page comes to an end and its charts have places for it") {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, -1.0, 1e-320, 1e300, 1.7e308, infinity, std::nan("")}) {
    CAPTURE(value);
    std::vector<std::string> pages;
    for (const auto column : {&RowSamples::seconds, &RowSamples::cpu_seconds, &RowSamples::roof,
                              &RowSamples::waited, &RowSamples::stolen, &RowSamples::at}) {
      pages.push_back(SpoiltPage([&](BenchResult* result) {
        for (Row& row : result->rows) (row.samples.*column).assign(row.samples.size(), value);
      }));
      pages.push_back(SpoiltPage([&](BenchResult* result) {
        for (Row& row : result->rows) (row.samples.*column)[1] = value;
      }));
    }
    pages.push_back(SpoiltPage([&](BenchResult* result) { result->kernels[0].gflops = value; }));
    pages.push_back(SpoiltPage([&](BenchResult* result) { result->kernels[0].bytes = value; }));
    pages.push_back(SpoiltPage([&](BenchResult* result) {
      for (ComputeRoof& roof : result->compute_roofs) roof.gflops = value;
    }));
    pages.push_back(SpoiltPage([&](BenchResult* result) {
      for (BandwidthRoof& roof : result->bandwidth_roofs) roof.gb_per_second = value;
    }));
    for (const std::string& html : pages) {
      CHECK(html.ends_with("</html>\n"));
      for (const char* part : {"=\"nan", "=\"-nan", "=\"inf", "=\"-inf"}) {
        CAPTURE(part);
        CHECK(html.find(part) == std::string::npos);
      }
    }
  }
}

TEST_CASE("heat maps: length against batch, one for each number of threads") {
  std::vector<RowRecipe> recipes;
  for (const size_t threads : {2, 1}) {
    for (const char* workload : {"fixed-16", "fixed-128"}) {
      for (const double batch : {256, 4096}) {
        recipes.push_back({.workload = workload,
                           .threads = threads,
                           .seconds = (0.1 + batch / 1e5) / static_cast<double>(threads)});
      }
    }
  }
  LoadedResult loaded = MakeResult("a", recipes);
  for (size_t i = 0; i < loaded.result.rows.size(); ++i) {
    loaded.result.rows[i].key.batch = i % 2 == 0 ? 256 : 4096;
    loaded.result.rows[i].summary.tokens_per_second = 1000.0 + 100.0 * static_cast<double>(i);
  }
  const auto parts = SplitEngines(loaded, "").value();
  REQUIRE(parts[0].result.rows.size() == 4);  // the best batches
  const std::string html = HeatMaps(FindSeries(parts));
  CHECK(html.find("tokens of a micro-batch 4096") != std::string::npos);
  const size_t one = html.find("f32, 1 thread<"), two = html.find("f32, 2 threads<");
  REQUIRE(two != std::string::npos);
  REQUIRE(one < two);
  for (size_t i = 0; i < loaded.result.rows.size(); ++i) {
    const std::string rate = ">" + std::to_string(1000 + 100 * i) + "<";
    CAPTURE(rate);
    CHECK((html.find(rate) > two) == (i < 4));
    CHECK(html.find(rate) != std::string::npos);
  }

  for (Row& row : loaded.result.rows) row.key.batch = 0;
  loaded.every_batch.clear();
  const std::vector<LoadedResult> alone = {loaded};
  CHECK(HeatMaps(FindSeries(alone)).find(">threads<") != std::string::npos);
}

TEST_CASE("round ticks") {
  CHECK(RoundTicks(0, 10, 5) == std::vector<double>{0, 2, 4, 6, 8, 10});
  CHECK(RoundTicks(0, 4900, 5) == std::vector<double>{0, 1000, 2000, 3000, 4000});
  CHECK(RoundTicks(1, 1, 5) == std::vector<double>{1});
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(RoundTicks(0, infinity, 5) == std::vector<double>{0});
  CHECK(RoundTicks(0x1p60, 0x1p60 + 1024, 5).size() <= 11);
  CHECK(RoundTicks(1e17, 1e17 + 16, 5).size() <= 11);
  CHECK(RoundTicks(0, 5e-324, 5).size() <= 11);
  CHECK(RoundTicks(-1.7e308, 1.7e308, 5).size() == 1);
}

}  // namespace
}  // namespace pozor::tools
