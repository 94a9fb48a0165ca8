// Verbs, options and what a mistake in them is answered with.
#include <doctest/doctest.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <string>
#include <vector>

#include "models/json.h"
#include "tests/support/pozor_command.h"
#include "tools/cli/options.h"
#include "tools/cli/progress.h"
#include "tools/cli/suggest.h"

namespace pozor::tools {
namespace {

using testing::EndsInOneError;
using testing::Pozor;
using testing::ProcessOptions;
using testing::ProcessResult;
using testing::TemporaryFolder;
using testing::TestData;

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("pozor alone lists the verbs, and each verb explains itself with an example") {
  const ProcessResult alone = Pozor({});
  CHECK(alone.exit_code == 0);
  for (const char* verb :
       {"encode", "tokenize", "info", "verify", "quantize", "bench", "compare"}) {
    CAPTURE(std::string(verb));
    CHECK(Contains(alone.output, std::string("\n  ") + verb));
    const ProcessResult help = Pozor({verb, "--help"});
    CHECK(help.exit_code == 0);
    CHECK(Contains(help.output, std::string("usage: pozor ") + verb));
    CHECK(Contains(help.output, "Example:"));
    for (const char* mark : {"{false}", ":{", ":POSITIVE", ":UINT", "REQUIRED"}) {
      CHECK_FALSE(Contains(help.output, mark));
    }
    CHECK(help.errors.empty());
  }
  CHECK(Pozor({"--version"}).output == "pozor " + std::string(Version()) + "\n");
}

TEST_CASE("wrong use is exit code 2 and one line that says what is right") {
  const std::string model = TestData("st-mean-norm");
  struct Case {
    std::vector<std::string> arguments;
    const char* error;
  };
  const Case cases[] = {
      {{"encod"}, "encod: not a verb of pozor; did you mean 'encode'?"},
      {{"frobnicate"}, "frobnicate: not a verb of pozor; 'pozor --help' lists"},
      {{"encode", model, "--treads", "2"}, "--treads: unknown option; did you mean '--threads'?"},
      {{"encode", model, "--threads", "0"}, "--threads: '0' is no count of at least 1"},
      {{"encode", model, "--threads", "-1"}, "--threads"},
      {{"encode", model, "--threads"}, "--threads: 1 required"},
      {{"encode", model, "--format", "xml"}, "--format: 'xml' is none of npy|jsonl|f32"},
      {{"encode", model, "--max-memory", "10X"}, "--max-memory: '10X' is no size"},
      {{"encode", model, "--cpu", "mmx"}, "--cpu: 'mmx' is no tier; the tiers are sse4 avx2"},
      {{"encode", model, "-o", ""}, "--output: its value is empty; name a file"},
      {{"encode", "--model", ""}, "--model: its value is empty"},
      {{"quantize", model, "-o", "out", "--calibration", ""}, "--calibration: its value is empty"},
      {{"quantize", model, "-o", ""}, "--output: its value is empty"},
      {{"verify", model, "--golden="}, "--golden"},
      {{"encode", model, "--precision", "f64"},
       "--precision: 'f64' is none of f32|bf16|int8|bf16x3"},
      {{"quantize", model, "-o", "prepared", "--precision", "bf16x3"},
       "--precision: bf16x3 is as large as f32 and is made when a model is loaded"},
      {{"encode", model, "-o", "v.dat"}, "v.dat: the ending names no format"},
      {{"encode", model, "--prompt", "nothing"}, "no such prompt"},
      {{"encode", model, "--max-length", "9999"}, "position table"},
      {{"encode", model, "--truncate-dim", "999"}, "numbers"},
      {{"encode", model, "--output-type", "int8"}, "give --ranges FILE"},
      {{"encode", model, "--prompt", "a", "--prompt-text", "b"}, "give one of the two"},
      {{"encode"}, "encode: no model given"},
      {{"info", model, "another"}, "another: one word too many"},
      {{"verify", model}, "give --golden DIR, or --reference"},
      {{"tokenize", model, "file", "--text", "x"}, "give one of the two"},
      {{"compare", "a.json", "--resolution", "nan"}, "'nan' is no share"},
      {{"compare", "a.json", "--resolution", "-1"}, "'-1' is no share"},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.error));
    const ProcessResult result = Pozor(c.arguments);
    CAPTURE(result.errors);
    CHECK(result.exit_code == 2);
    CHECK(result.output.empty());
    CHECK(Contains(result.errors, c.error));
    CHECK(EndsInOneError(result));
  }
}

TEST_CASE("POZOR_KERNEL: a bad name is refused with the good ones") {
  ProcessOptions options;
  options.environment = {"POZOR_KERNEL=avx512-f32f32f32-99x99x1"};
  const ProcessResult bad = Pozor({"info"}, options);
  CHECK(bad.exit_code == 2);
  CHECK(Contains(bad.errors, "99x99"));
  CHECK(Contains(bad.errors, "use one of "));
  CHECK(EndsInOneError(bad));
}

TEST_CASE("POZOR_CPU: a bad name is refused, a good one is used, --cpu goes before it") {
  ProcessOptions options;
  options.environment = {"POZOR_CPU=avx3"};
  const ProcessResult bad = Pozor({"info"}, options);
  CHECK(bad.exit_code == 2);
  CHECK(Contains(bad.errors, "avx3"));
  CHECK(Contains(bad.errors, "sse4 avx2"));
  CHECK(EndsInOneError(bad));

  const auto tier_of = [](const ProcessResult& result) {
    return std::string(ParseJson(result.output, "info").value()->Find("tier")->as_string());
  };
  const JsonDocument plain = ParseJson(Pozor({"info", "--json"}).output, "info").value();
  for (const JsonValue& tier : plain->Find("tiers")->items()) {
    const std::string name(tier.as_string());
    CAPTURE(std::string(name));
    options.environment = {"POZOR_CPU=" + name};
    CHECK(tier_of(Pozor({"info", "--json"}, options)) == name);
    CHECK(tier_of(Pozor({"info", "--json", "--cpu", name})) == name);
  }
  const std::string lowest(plain->Find("tiers")->items()[0].as_string());
  options.environment = {"POZOR_CPU=" + std::string(plain->Find("tier")->as_string())};
  CHECK(tier_of(Pozor({"info", TestData("st-mean-norm"), "--json", "--cpu", lowest}, options)) ==
        lowest);
}

TEST_CASE("info: a terminal obeys nothing that a file says") {
  const TemporaryFolder folder;
  const std::string model = folder.File("a\x1b[31m\nb");
  std::filesystem::copy(TestData("bert"), model);
  const ProcessResult result = Pozor({"info", model});
  CHECK(result.exit_code == 0);
  CHECK(result.output.find('\x1b') == std::string::npos);
  CHECK(result.output.find("a\\x1B[31m\\nb") != std::string::npos);
}

TEST_CASE("info: threads follow OMP_NUM_THREADS, and a bad value is named once") {
  const auto threads = [](const ProcessResult& result) {
    return ParseJson(result.output, "info").value()->Find("threads")->as_int();
  };
  const int64_t all = threads(Pozor({"info", "--json"}));
  struct Case {
    const char* value;
    int64_t threads;
    bool warns;
  };
  const Case cases[] = {{"1", 1, false},    {"64", all, false}, {"0", all, true},
                        {"abc", all, true}, {"1,4", 1, false},  {"", all, false}};
  for (const Case& c : cases) {
    CAPTURE(std::string(c.value));
    ProcessOptions options;
    options.environment = {std::string("OMP_NUM_THREADS=") + c.value};
    const ProcessResult result = Pozor({"info", "--json"}, options);
    CHECK(threads(result) == c.threads);
    CHECK(testing::Lines(result.errors).size() == (c.warns ? 1 : 0));
    CHECK(Contains(result.errors, "OMP_NUM_THREADS") == c.warns);
  }
}

TEST_CASE("info: a model as it is understood, or one line that says why not") {
  const ProcessResult result = Pozor({"info", "--model", TestData("st-prompts"), "--json"});
  REQUIRE(result.exit_code == 0);
  const JsonDocument info = ParseJson(result.output, "info").value();
  const JsonValue& model = *info->Find("model");
  CHECK(model.Find("architecture")->as_string() == "bert");
  CHECK(model.Find("pooling")->as_string() == "mean");
  CHECK(model.Find("default_prompt")->as_string() == "query");
  CHECK(model.Find("prompts")->Find("query")->as_string() == "query: ");
  CHECK(model.Find("dimensions")->as_int() == 36);
  CHECK(Pozor({"info", TestData("st-prompts")}).output.find("\"query\": \"query: \"  (default)") !=
        std::string::npos);

  struct Case {
    const char* folder;
    const char* error;
  };
  const Case cases[] = {
      {"cases/P19/model", "Git LFS"},
      {"cases/P19/html_page", "not safetensors but text"},
      {"cases/P19/huge_header", "4611686018427387904"},
      {"cases/P20/one_missing", "encoder.layer.1.output.dense.bias"},
      {"malformed/folders/config-unknown-model-type", "model_type"},
      {"malformed/folders/no-weights", "model.safetensors"},
      {"no-such-folder", "not found"},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.folder));
    const ProcessResult refused = Pozor({"info", TestData(c.folder)});
    CAPTURE(refused.errors);
    CHECK(refused.exit_code == 1);
    CHECK(EndsInOneError(refused));
    CHECK(Contains(refused.errors, c.error));
  }
}

TEST_CASE("sizes") {
  struct Case {
    const char* text;
    size_t bytes;  // 0: no size
  };
  const Case cases[] = {{"1", 1},
                        {"160M", size_t{160} << 20},
                        {"160MiB", size_t{160} << 20},
                        {"160MB", 160'000'000},
                        {"1.5k", 1536},
                        {"2G", size_t{2} << 30},
                        {"", 0},
                        {"M", 0},
                        {"-1M", 0},
                        {"0", 0},
                        {"1e3", 0},
                        {"1MM", 0},
                        {"99999999999T", 0},
                        {"nan", 0}};
  for (const Case& c : cases) {
    CAPTURE(std::string(c.text));
    size_t bytes = 0;
    CHECK(ParseSize(c.text, &bytes) == (c.bytes != 0));
    CHECK(bytes == c.bytes);
  }
}

TEST_CASE("suggestions") {
  const std::vector<std::string> words = {"--threads", "--text-field", "--format"};
  CHECK(Closest("--thread", words) == "--threads");
  CHECK(Closest("--fromat", words) == "--format");
  CHECK(Closest("--colour-of-things", words).empty());
  CHECK(EditDistance("abcd", "acbd") == 1);
  CHECK(EditDistance("", "abc") == 3);
}

TEST_CASE("the progress line") {
  Progress progress;
  progress.texts = 12345;
  progress.tokens = 2000000;
  progress.seconds = 20;
  CHECK(ProgressLine(progress, 0.25) ==
        "[#####...............]  25 %  12 345 texts  100 000 tokens/s  ETA 1:00");
  CHECK(ProgressLine(progress, std::nullopt) == "12 345 texts  100 000 tokens/s");
  CHECK(Clock(3725) == "1:02:05");
  CHECK(Grouped(1000) == "1 000");
  CHECK(Grouped(999) == "999");
}

TEST_CASE("Ctrl-C ends a benchmark like every other verb, and its old result stays") {
  const TemporaryFolder folder;
  folder.Write("b.json", "old");
  ProcessOptions options;
  options.signal = SIGINT;
  const auto start = std::chrono::steady_clock::now();
  options.signal_when = [start](size_t) {
    return std::chrono::steady_clock::now() - start > std::chrono::milliseconds(500);
  };
  const ProcessResult result = Pozor({"bench", TestData("st-mean-norm"), "--suite", "full",
                                      "--quiet", "-o", folder.File("b.json")},
                                     options);
  CAPTURE(result.errors);
  CHECK(!result.timed_out);
  CHECK(result.exit_code == 130);
  CHECK(EndsInOneError(result));
  CHECK(folder.List() == std::vector<std::string>{"b.json"});
}

}  // namespace
}  // namespace pozor::tools
