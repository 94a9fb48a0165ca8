// Workloads, plans, counted work, the worker's protocol, and a whole small run.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "kernels/cpu.h"
#include "kernels/gemm.h"
#include "kernels/peak.h"
#include "models/json.h"
#include "tests/support/amx_emulator.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/pozor_command.h"
#include "tests/support/process.h"
#include "tools/bench/channel.h"
#include "tools/bench/clock.h"
#include "tools/bench/driver.h"
#include "tools/bench/json_writer.h"
#include "tools/bench/markdown.h"
#include "tools/bench/model_record.h"
#include "tools/bench/plan.h"
#include "tools/bench/roof.h"
#include "tools/bench/worker.h"
#include "tools/bench/workload.h"

namespace pozor::tools {
namespace {

const std::string kModel = POZOR_TEST_DATA "/bert";

// Words and two specials, as a tokenizer with a word for everything would count.
Result<size_t> CountWords(std::string_view text) {
  size_t words = 0;
  for (size_t i = 0; i < text.size(); ++i)
    words += text[i] != ' ' && (i == 0 || text[i - 1] == ' ');
  return words + 2;
}

// The same, where every word of more than five letters is three tokens.
Result<size_t> CountPieces(std::string_view text) {
  size_t pieces = 2, letters = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i < text.size() && text[i] != ' ') {
      ++letters;
      continue;
    }
    if (letters > 0) pieces += letters > 5 ? 3 : 1;
    letters = 0;
  }
  return pieces;
}

TEST_CASE("texts have the length that was asked for") {
  for (const size_t tokens : {3, 8, 16, 100, 512}) {
    for (uint64_t seed = 0; seed < 5; ++seed) {
      CAPTURE(tokens);
      CHECK(*CountWords(*MakeText(tokens, seed, CountWords)) == tokens);
      CHECK(*CountPieces(*MakeText(tokens, seed, CountPieces)) == tokens);
    }
  }
  CHECK(*MakeText(16, 1, CountWords) == *MakeText(16, 1, CountWords));
  CHECK(*MakeText(16, 1, CountWords) != *MakeText(16, 2, CountWords));
}

TEST_CASE("the mix is seeded, long-tailed and bounded") {
  const std::vector<size_t> lengths = MixLengths(4000, 256, 3);
  CHECK(lengths == MixLengths(4000, 256, 3));
  CHECK(lengths != MixLengths(4000, 256, 4));
  std::vector<double> sorted(lengths.begin(), lengths.end());
  CHECK(Median(sorted) == doctest::Approx(24).epsilon(0.1));
  CHECK(Mean(sorted) > 30);
  CHECK(*std::min_element(lengths.begin(), lengths.end()) >= 5);
  CHECK(*std::max_element(lengths.begin(), lengths.end()) <= 256);
}

TEST_CASE("hashes tell texts apart, line ends included") {
  CHECK(HashTexts({}) == "cbf29ce484222325");  // FNV-1a's basis
  CHECK(HashTexts({"ab", "c"}) != HashTexts({"a", "bc"}));
  CHECK(HashTexts({"a"}).size() == 16);
}

TEST_CASE("names of workloads") {
  CHECK(ParseWorkload("fixed-128")->length == 128);
  CHECK(ParseWorkload("query-8")->kind == "query");
  CHECK(ParseWorkload("query-8")->pause_ms == 0);
  CHECK(ParseWorkload("query-8@20")->length == 8);
  CHECK(ParseWorkload("query-8@20")->pause_ms == 20);
  CHECK(ParseWorkload("mix")->kind == "mix");
  CHECK(ParseWorkload("file:a/b.txt@4")->stride == 4);
  CHECK(ParseWorkload("file:a/b.txt@4")->path == "a/b.txt");
  for (const char* wrong : {"", "fixed", "fixed-", "fixed-0", "fixed-x", "other-8", "file:a@b",
                            "query-8@", "query-8@x", "query-8@2@3", "fixed-8@20", "query-8@5000"}) {
    CAPTURE(wrong);
    CHECK_FALSE(ParseWorkload(wrong).ok());
  }
  // The same work on every machine: some billions of operations a thread, never too few texts.
  const WorkloadName fixed = *ParseWorkload("fixed-512");
  CHECK(CountTexts(fixed, 1, 21e6) == 2);
  CHECK(CountTexts(fixed, 8, 21e6) == 16);
  CHECK(CountTexts(*ParseWorkload("fixed-8"), 1, 21e6) == 96);
  CHECK(CountTexts(*ParseWorkload("query-8"), 8, 21e6) == 1);
}

TEST_CASE("a plan has every combination") {
  BenchOptions options;
  options.threads = {1, 2};
  options.tiers = {"avx2", "avx512"};
  options.precisions = {"f32", "int8"};
  options.batch_tokens = {128, 256};
  options.peers.push_back({"peer", "f32", {8, 32}, "run {model} -t {threads} -m {max_length}"});
  options.model = "m";
  options.max_length = 64;
  options.task = "separation";
  options.program = "pozor";
  const BenchOptions resolved = Resolve(options);
  const std::vector<EnginePlan> engines = PlanEngines(resolved);
  CHECK(engines.size() == 2 * (2 * 2 + 1));
  CHECK(engines[0].batches == std::vector<size_t>{128, 256});
  CHECK(EngineCommand(engines[0], resolved) ==
        std::vector<std::string>{"pozor", "bench-worker", "m", "--threads", "1", "--precision",
                                 "f32", "--task", "separation", "--cpu", "avx2", "--max-length",
                                 "64"});
  CHECK(EngineCommand(engines[4], resolved) ==
        std::vector<std::string>{"run", "m", "-t", "1", "-m", "64"});
  options.only_peers = true;
  CHECK(PlanEngines(Resolve(options)).size() == 2);
}

Result<BenchResult> RunOneRow(const std::string& model, const std::string& precision) {
  BenchOptions options;
  options.model = model;
  if (!precision.empty()) options.precisions = {precision};
  options.threads = {1};
  options.workloads = {"query-8"};
  options.rounds = options.processes = 1;
  options.in_process = true;
  options.bandwidth = false;
  return RunBench(options);
}

TEST_CASE("without child processes the run has the one tier that is asked for") {
  BenchOptions options;
  options.model = kModel;
  options.threads = {1};
  options.workloads = {"query-8"};
  options.rounds = options.processes = 1;
  options.in_process = true;
  options.bandwidth = false;
  const std::vector<CpuTier> tiers = SupportedCpuTiers();
  options.tiers = {std::string(CpuTierName(tiers.front()))};
  const auto result = RunBench(options);
  ClearCpuTierCap();
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  REQUIRE(result->rows.size() == 1);
  CHECK(result->rows[0].active_tier == options.tiers[0]);
  if (tiers.size() == 1) return;
  options.tiers.emplace_back(CpuTierName(tiers.back()));
  const auto mixed = RunBench(options);
  ClearCpuTierCap();
  REQUIRE_FALSE(mixed.ok());
  CHECK(mixed.status().message().find("leave out --in-process") != std::string::npos);
}

TEST_CASE("bf16x3 without AMX runs f32, and every verb says so") {
  const bool amx = CpuRunsTier(CpuTier::kAmx);
  const std::string info = testing::Pozor({"info", kModel, "--precision", "bf16x3"}).output;
  CHECK(info.find(amx ? "precision     bf16x3\n" : "precision     f32\n") != std::string::npos);
  CHECK((info.find("bf16x3 needs AMX; f32 in its place") != std::string::npos) == !amx);
  CHECK((info.find("precision bf16x3: CPU tier") != std::string::npos) == !amx);
  const auto result = RunOneRow(kModel, "bf16x3");
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  const bool said = std::any_of(
      result->warnings.begin(), result->warnings.end(),
      [](const std::string& warning) { return warning.find("bf16x3 is f32") != warning.npos; });
  CHECK(said == !amx);
}

// By what a user asks for, whatever single products of it run in: info, and rows with and without
// a precision, so that they are comparable.
TEST_CASE("a precision has one name in every verb") {
  const testing::TemporaryFolder folder;
  const std::string out = folder.File("prepared");
  const std::vector<std::pair<std::vector<std::string>, std::string>> made = {
      {{}, "f32"},
      {{"--precision", "int8"}, "int8"},
      {{"--precision", "int8", "--products", "down=f32,0.attention=f32"}, "int8"},
      {{"--precision", "mixed"}, "int8"},
      {{"--precision", "bf16"}, "bf16"},
      {{"--precision", "bf16", "--products", "1.qkv=f32"}, "bf16"}};
  for (const auto& [more, precision] : made) {
    CAPTURE(precision);
    const std::string model = more.empty() ? kModel : out;
    std::vector<std::string> words = {"quantize", kModel, "-o", out, "--no-gate", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    const testing::ProcessResult report = testing::Pozor(words);
    REQUIRE(report.exit_code == 0);
    const std::string said = "\"precision\": \"" + precision + "\"";
    if (!more.empty()) CHECK(report.output.find(said) < report.output.find("products"));
    const bool mixed = !more.empty() && more[1] == "mixed", bf16 = precision == "bf16";
    const std::string line = "precision     " + precision + (mixed ? " with bf16 products" : "") +
                             (mixed || bf16 ? ", whose bits depend on the CPU\n" : "\n");
    CHECK(testing::Pozor({"info", model}).output.find(line) != std::string::npos);
    for (const std::string& asked : {std::string(), precision}) {
      const auto result = RunOneRow(model, asked);
      REQUIRE_MESSAGE(result.ok(), result.status().message());
      REQUIRE(result->rows.size() == 1);
      CHECK(result->rows[0].key.precision == precision);
      CHECK(result->starts[0].precision == precision);
    }
  }
  BenchOptions options;
  options.threads = {1};
  const BenchOptions resolved = Resolve(options);
  const std::vector<std::string> words = EngineCommand(PlanEngines(resolved)[0], resolved);
  CHECK(std::find(words.begin(), words.end(), "--precision") == words.end());
}

TEST_CASE("words of a command line") {
  CHECK(ShellWords("a 'b c' \"d e\" f\\ g ''") ==
        std::vector<std::string>{"a", "b c", "d e", "f g", ""});
  CHECK(ShellWords("  ").empty());
}

TEST_CASE("counted work") {
  EncoderSpec spec;
  spec.hidden = 4;
  spec.heads = 2;
  spec.head_dim = 2;
  spec.intermediate = 8;
  spec.layers.resize(3);
  const double products = 3 * 2 * (4 * 4 * 4 + 2 * 4 * 8);  // multiply and add
  CHECK(FlopsPerToken(spec) == products);
  const std::vector<size_t> lengths = {5, 2};
  CHECK(EncoderFlops(spec, lengths) == 7 * products + 3 * 2 * 2 * 4 * (25 + 4));
  spec.layers[0].window = 1;  // itself and one neighbour a side: 13 pairs of 25, all 4 of 4
  CHECK(EncoderFlops(spec, lengths) == 7 * products + 2 * 2 * 4 * (13 + 4 + 2 * (25 + 4)));
}

TEST_CASE("JSON is written as it is read") {
  JsonWriter json(2);
  json.BeginObject().Field("text", "a\"b\\c\n\x01").Field("number", 0.1).Field("count", 3);
  json.Key("none").Value(std::numeric_limits<double>::infinity());
  json.Key("list").BeginArray().Value(true).BeginObject().EndObject().EndArray().EndObject();
  const auto document = ParseJson(json.text(), "test");
  REQUIRE(document.ok());
  CHECK((*document)->Find("text")->as_string() == "a\"b\\c\n\x01");
  CHECK((*document)->Find("number")->as_double() == 0.1);
  CHECK((*document)->Find("none")->is_null());
  CHECK((*document)->Find("list")->size() == 2);
}

TEST_CASE("the worker's protocol") {
  const testing::TemporaryFolder folder;
  const std::string texts = folder.path() + "/texts", vectors = folder.path() + "/vectors";
  std::ofstream(texts) << "one\ntwo two\nthree\nfour four four four\n";
  WorkerOptions options;
  options.model = kModel;
  options.encode.threads = 1;
  const auto started = StartInProcess(options);
  REQUIRE(started.ok());
  Channel& channel = **started;
  CHECK(channel.ready()->Find("ready")->as_bool());

  const auto read = channel.Ask("texts\t" + texts + "\t2");
  REQUIRE(read.ok());
  CHECK(NumberOf(**read, "texts") == 2);
  const double tokens = NumberOf(**read, "tokens");
  CHECK(tokens >= 6);
  const auto round = channel.Ask("round\t32");
  REQUIRE(round.ok());
  CHECK(NumberOf(**round, "seconds") > 0);
  CHECK(NumberOf(**round, "tokens") == tokens);
  const auto latency = channel.Ask("latency\t5\tone two");
  REQUIRE(latency.ok());
  CHECK((*latency)->Find("seconds")->size() == 5);
  const double start = Now();
  const auto apart = channel.Ask("latency\t5\tone two\t10");
  REQUIRE(apart.ok());
  CHECK(Now() - start >= 0.05);
  CHECK((*apart)->Find("seconds")->size() == 5);
  const auto saved = channel.Ask("save\t" + vectors + "\t32");
  REQUIRE(saved.ok());
  CHECK(std::filesystem::file_size(vectors) == 4 * static_cast<size_t>(NumberOf(**saved, "saved")));
  CHECK(NumberOf(**channel.Ask("rss"), "peak_rss_mib") > 1);
  CHECK(TextOf(**channel.Ask("info"), "architecture") == "bert");
  const auto made = channel.Ask("make\tfixed\t12\t3\t1\t" + texts);
  REQUIRE(made.ok());
  CHECK(NumberOf(**made, "texts") == 3);
  CHECK(NumberOf(**made, "longest") <= 12);
  for (const char* wrong : {"", "nonsense", "texts\tx", "latency\tx\ty", "latency\t2\ty\tz",
                            "latency\t2\ty\t1\t1", "texts\t/no/such\t1"}) {
    CAPTURE(wrong);
    CHECK_FALSE(channel.Ask(wrong).ok());
  }
}

TEST_CASE("a worker in a process of its own") {
  ProcessOptions options;
  options.name = "fake";
  options.environment["ANSWER"] = "42";
  options.arguments = {"/bin/sh", "-c",
                       "echo 'a library says hello'; echo '{\"ready\": true}'; "
                       "while read line && [ \"$line\" != quit ]; do echo \"{\\\"seconds\\\": "
                       "$ANSWER}\"; done"};
  const auto channel = StartProcess(options);
  REQUIRE(channel.ok());
  CHECK(NumberOf(**(*channel)->Ask("round\t1"), "seconds") == 42);
  CHECK((*channel)->PeakBytes() > 0);
  CHECK((*channel)->CpuSeconds() >= 0);
  CHECK((*channel)->ready_seconds() > 0);

  options.arguments = {"/bin/sh", "-c", "exit 3"};
  const auto dead = StartProcess(options);
  REQUIRE_FALSE(dead.ok());
  CHECK(dead.status().message().find("fake") == 0);
  options.arguments = {"/bin/sh", "-c", "echo '{\"ready\": false, \"error\": \"no model\"}'"};
  CHECK(StartProcess(options).status().message() == "fake: no model");
}

TEST_CASE("a whole run") {
  BenchOptions options;
  options.model = kModel;
  options.threads = {1};
  options.workloads = {"fixed-8", "query-8"};
  options.rounds = 2;
  options.processes = 2;
  options.in_process = true;
  options.bandwidth = false;
  // A peer that answers everything at once: the driver must not care what is inside.
  options.peers.push_back({"peer",
                           "f32",
                           {4},
                           "/bin/sh -c 'echo \"{\\\"ready\\\": true}\"; while read line; do echo "
                           "\"{\\\"seconds\\\": 0.5, \\\"saved\\\": 0}\"; done'"});
  options.peers.push_back({"dead", "f32", {4}, "/bin/sh -c 'exit 1'"});
  const auto result = RunBench(options);
  REQUIRE(result.ok());
  REQUIRE(result->rows.size() == 4);  // the dead one is left out, and said so
  CHECK(result->warnings[0].find("left out: dead") == 0);
  for (const Row& row : result->rows) {
    CAPTURE(row.key.engine);
    CAPTURE(row.key.workload);
    CHECK(row.samples.size() >= 4);
    CHECK(row.summary.seconds > 0);
    CHECK(row.flops > 0);
    CHECK(row.latency == (row.key.workload == "query-8"));
    CHECK(ByProcess(row.samples, row.samples.seconds).size() == 2);
    for (const double roof : row.samples.roof) CHECK(roof > 0);
  }
  CHECK(result->rows[0].summary.roof_share > 0);
  CHECK(result->starts.size() == 3);
  CHECK(result->starts[0].min_cosine == doctest::Approx(1));
  CHECK_FALSE(result->compute_roofs.empty());
  CHECK(ToMarkdown(*result).find("query-8") != std::string::npos);

  options.workloads = {"fixed-100000"};
  CHECK_FALSE(RunBench(options).ok());
}

// The CPU time of other threads shows once a tick: as here, in one call of four.
TEST_CASE("calls of a query share the CPU time that was seen in one of them") {
  BenchOptions options;
  options.model = kModel;
  options.threads = {2};
  options.workloads = {"query-8"};
  options.rounds = 2;
  options.only_peers = true;
  options.in_process = true;
  options.bandwidth = false;
  options.peers.push_back({"uneven",
                           "f32",
                           {4},
                           "/bin/sh -c 'echo \"{\\\"ready\\\": true}\"; while read line; do echo "
                           "\"{\\\"seconds\\\": [0.1, 0.1, 0.1, 0.1], \\\"saved\\\": 0, "
                           "\\\"cpu_seconds\\\": [0, 0, 0.6, 0]}\"; done'"});
  const auto result = RunBench(options);
  REQUIRE_MESSAGE(result.ok(), result.status().message());
  REQUIRE(result->rows.size() == 1);
  const Row& row = result->rows[0];
  for (const double seconds : row.samples.cpu_seconds) CHECK(seconds == doctest::Approx(0.15));
  CHECK(row.summary.cpu_seconds_per_1000_texts == doctest::Approx(150));
}

TEST_CASE("a roof is of instructions that kernels of the tier use") {
  const std::pair<const char*, PackedLayout> precisions[] = {{"f32", PackedLayout::kF32x16},
                                                             {"int8", PackedLayout::kS8x16x4},
                                                             {"bf16", PackedLayout::kBf16x16x2}};
  const auto check = [&](CpuTier tier) {
    for (const auto& [precision, layout] : precisions) {
      CAPTURE(std::string(precision));
      const PeakLoop* loop = RoofLoop(precision, tier);
      if (loop == nullptr) {
        CHECK(layout == PackedLayout::kS8x16x4);  // without dot products of bytes
        continue;
      }
      CAPTURE(std::string(loop->name));
      const auto kernels = AllGemmKernels();
      CHECK(std::any_of(kernels.begin(), kernels.end(), [&](const GemmKernel& kernel) {
        return kernel.layout == layout && kernel.tier == loop->tier &&
               IsGemmKernelSupported(kernel);
      }));
    }
  };
  test::ForEachTier(check);
  const test::AmxTier amx;
  check(ActiveCpuTier());
}

TEST_CASE("the roof of bf16x3: a third of the tiles' bf16, and f32 where f32 is in its place") {
  const auto check = [](CpuTier tier) {
    const PeakLoop *split = RoofLoop("bf16x3", tier), *bf16 = RoofLoop("bf16", tier);
    REQUIRE(split != nullptr);
    REQUIRE(bf16 != nullptr);
    if (!HasGemmKernel(PackedLayout::kSplitBf16x16x2)) {
      CHECK(split == RoofLoop("f32", tier));
      return;
    }
    CHECK(split->tier == CpuTier::kAmx);
    CHECK((split->run == bf16->run));
    CHECK(3 * split->ops_per_iteration == doctest::Approx(bf16->ops_per_iteration));
  };
  test::ForEachTier(check);
  const test::AmxTier amx;
  check(ActiveCpuTier());
}

}  // namespace
}  // namespace pozor::tools
