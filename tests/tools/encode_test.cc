// pozor encode: rows, order, bits, places, and everything that can go wrong with them.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "models/json.h"
#include "models/locate.h"
#include "tests/support/pozor_command.h"
#include "tools/io/npy.h"

namespace pozor::tools {
namespace {

using testing::EndsInOneError;
using testing::Lines;
using testing::Pozor;
using testing::PozorReading;
using testing::ProcessOptions;
using testing::ProcessResult;
using testing::ReadFileOrEmpty;
using testing::TemporaryFolder;
using testing::TestData;

using Rows = std::vector<std::vector<float>>;

const std::string kModel = TestData("st-mean-norm");

std::vector<float> Numbers(const JsonValue& array) {
  std::vector<float> numbers;
  for (const JsonValue& item : array.items()) {
    numbers.push_back(static_cast<float>(item.as_double()));
  }
  return numbers;
}

Rows EmbeddingsOf(const std::string& json_lines) {
  Rows rows;
  for (const std::string& line : Lines(json_lines)) {
    rows.push_back(Numbers(*ParseJson(line, "output").value()->Find("embedding")));
  }
  return rows;
}

std::string Quoted(const JsonValue& text) {
  std::string line = "\"";
  for (const char c : text.as_string()) {
    char escape[8];
    std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned char>(c));
    const bool plain = static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\';
    line += plain ? std::string(1, c) : std::string(escape);
  }
  return line + "\"\n";
}

double LargestDifference(const Rows& got, const JsonValue& expected) {
  if (got.size() != expected.items().size()) return INFINITY;
  double largest = 0;
  for (size_t row = 0; row < got.size(); ++row) {
    const std::vector<float> want = Numbers(*expected.items()[row].Find("vector"));
    if (want.size() != got[row].size()) return INFINITY;
    for (size_t i = 0; i < want.size(); ++i) {
      largest = std::max(largest, std::fabs(double{got[row][i]} - want[i]));
    }
  }
  return largest;
}

// {"text": ..., "vector": ...} rows of an expected.json through the command.
double DifferenceToCase(const std::string& model, const JsonValue& expected) {
  std::string input;
  for (const JsonValue& row : expected.items()) input += Quoted(*row.Find("text"));
  const ProcessResult result =
      PozorReading({"encode", "--model", model, "--input", "-", "--input-format", "jsonl"}, input);
  CHECK(result.exit_code == 0);
  return LargestDifference(EmbeddingsOf(result.output), expected);
}

JsonDocument Expected(const std::string& path) { return ReadJsonFile(TestData(path)).value(); }

TEST_CASE("vectors of the users' cases") {
  const JsonDocument p16 = Expected("cases/P16/expected.json");
  for (const char* folder : {"new_cls", "new_mean", "new_cls+mean", "new_weightedmean"}) {
    CAPTURE(std::string(folder));
    CHECK(DifferenceToCase(TestData(std::string("cases/P16/") + folder), *p16->Find(folder)) <=
          2e-5);
  }
  for (const char* folder : {"cases/P18/cls", "cases/P18/last"}) {
    CAPTURE(std::string(folder));
    const JsonDocument p18 = Expected(std::string(folder) + "/expected.json");
    CHECK(DifferenceToCase(TestData(folder), *p18->Find("rows")) <= 2e-5);
  }
  const JsonDocument p20 = Expected("cases/P20/expected.json");
  for (const char* folder : {"cases/P20/plain", "cases/P20/old_names"}) {
    CAPTURE(std::string(folder));
    CHECK(DifferenceToCase(TestData(folder), *p20->Find("rows")) <= 2e-5);
  }
}

TEST_CASE("old and new tensor names give the same bytes") {
  const std::string texts = "a man\nsome longer text, with commas\n\n";
  const ProcessResult plain = PozorReading({"encode", TestData("cases/P20/plain")}, texts);
  const ProcessResult old = PozorReading({"encode", TestData("cases/P20/old_names")}, texts);
  CHECK(plain.exit_code == 0);
  CHECK(plain.output == old.output);
}

TEST_CASE("a row of the file is a row of the output") {
  struct Case {
    const char* file;
    size_t rows;
  };
  const Case cases[] = {
      {"crlf.txt", 5},         {"bom.txt", 2},   {"cr_inside.txt", 2}, {"no_final_newline.txt", 2},
      {"only_newline.txt", 1}, {"empty.txt", 0}, {"ls.txt", 2},        {"quoted.csv", 3}};
  const TemporaryFolder folder;
  for (const Case& c : cases) {
    CAPTURE(std::string(c.file));
    const std::string path = TestData(std::string("cli/") + c.file);
    const ProcessResult result =
        Pozor({"encode", "--model", kModel, "--input", path, "--output", folder.File("o.npy")});
    CHECK(result.exit_code == 0);
    const NpyMatrix matrix = ReadNpy(folder.File("o.npy")).value();
    CHECK(matrix.rows == c.rows);
    CHECK(matrix.columns == 36);
  }
  const Rows rows = EmbeddingsOf(Pozor({"encode", kModel, TestData("cli/crlf.txt")}).output);
  const Rows third = EmbeddingsOf(PozorReading({"encode", kModel}, "third line").output);
  REQUIRE(rows.size() == 5);
  REQUIRE(third.size() == 1);
  CHECK(rows[2] == third[0]);
}

TEST_CASE("records without a text: exit code 1, their lines, no output") {
  const TemporaryFolder folder;
  const ProcessResult result =
      Pozor({"encode", kModel, TestData("cli/mixed.jsonl"), "-o", folder.File("o.npy")});
  CHECK(result.exit_code == 1);
  CHECK(result.errors.find("lines 4 (null, not a string), 5 (no such member)") !=
        std::string::npos);
  CHECK(folder.List().empty());
}

// Lengths of 1 .. about 60 words in a fixed, mixed order; every seventh is a repeat.
std::vector<std::string> MixedTexts(size_t count) {
  const char* words[] = {"ferry", "lamp",   "salt",    "copper",
                         "attic", "velvet", "harbour", "thistle"};
  std::vector<std::string> texts;
  uint32_t state = 27;
  const auto next = [&state] { return (state = state * 1664525u + 1013904223u) >> 16; };
  for (size_t i = 0; i < count; ++i) {
    if (i % 7 == 6) {
      texts.push_back(texts[next() % texts.size()]);
      continue;
    }
    std::string text = std::to_string(i);
    for (uint32_t n = next() % 60; n > 0; n -= std::min(n, 1 + next() % 4)) {
      text += std::string(" ") + words[next() % 8];
    }
    texts.push_back(text);
  }
  return texts;
}

std::string Joined(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += text + "\n";
  return joined;
}

TEST_CASE("order and bits depend on neither threads nor batches nor neighbours") {
  const std::vector<std::string> texts = MixedTexts(120);
  const TemporaryFolder folder;
  const std::string file = folder.Write("texts.txt", Joined(texts));
  std::set<std::string> outputs;
  for (const char* threads : {"1", "2"}) {
    for (const char* tokens : {"1", "7", "64", "100000"}) {
      const ProcessResult result =
          Pozor({"encode", kModel, file, "--threads", threads, "--batch-tokens", tokens});
      CHECK(result.exit_code == 0);
      outputs.insert(result.output);
    }
  }
  REQUIRE(outputs.size() == 1);
  const Rows rows = EmbeddingsOf(*outputs.begin());
  REQUIRE(rows.size() == texts.size());
  for (size_t i = 0; i < texts.size(); i += 11) {
    CAPTURE(i);
    CHECK(EmbeddingsOf(PozorReading({"encode", kModel}, texts[i]).output) == Rows{rows[i]});
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto first = std::find(texts.begin(), texts.end(), texts[i]) - texts.begin();
    CHECK(rows[i] == rows[static_cast<size_t>(first)]);
  }
}

TEST_CASE("blank texts keep their rows and are all one vector") {
  const ProcessResult result = PozorReading(
      {"encode", kModel, "--input-format", "jsonl"},
      "\"a\"\n\"\"\n\" \"\n\"\\t\\n\"\n\"\\u200b\"\n\"\\u00ad\"\n\"\\ufeff\"\n\"\\u0000\"\n"
      "\"\\u3000 \\u00a0\"\n\"a\"\n");
  const Rows rows = EmbeddingsOf(result.output);
  REQUIRE(rows.size() == 10);
  CHECK(rows[0] == rows[9]);
  CHECK(rows[0] != rows[1]);
  for (size_t i = 2; i < 9; ++i) CHECK(rows[i] == rows[1]);
  for (const float x : rows[1]) CHECK(std::isfinite(x));
}

TEST_CASE("formats agree with each other, to a file and to a pipe") {
  const TemporaryFolder folder;
  const std::string file = folder.Write("t.txt", Joined(MixedTexts(20)));
  REQUIRE(Pozor({"encode", kModel, file, "-o", folder.File("v.npy")}).exit_code == 0);
  REQUIRE(Pozor({"encode", kModel, file, "-o", folder.File("v.f32")}).exit_code == 0);
  REQUIRE(Pozor({"encode", kModel, file, "-o", folder.File("v.jsonl")}).exit_code == 0);
  const std::string npy = ReadFileOrEmpty(folder.File("v.npy"));
  CHECK(npy.substr(kNpyHeaderBytes) == ReadFileOrEmpty(folder.File("v.f32")));
  CHECK(Pozor({"encode", kModel, file, "--format", "npy"}).output == npy);
  const ProcessResult lines = Pozor({"encode", kModel, file});
  CHECK(lines.output == ReadFileOrEmpty(folder.File("v.jsonl")));
  const Rows rows = EmbeddingsOf(lines.output);
  const NpyMatrix matrix = ReadNpy(folder.File("v.npy")).value();
  std::vector<float> flat;
  for (const auto& row : rows) flat.insert(flat.end(), row.begin(), row.end());
  CHECK(flat == matrix.data);
}

TEST_CASE("several files are one input; --prompt-text goes in front of each text") {
  const TemporaryFolder folder;
  const std::string a = folder.Write("a.txt", "guitar\n"), b = folder.Write("b.jsonl", "\"piano\"");
  const Rows both = EmbeddingsOf(Pozor({"encode", kModel, a, b}).output);
  REQUIRE(both.size() == 2);
  CHECK(both == EmbeddingsOf(PozorReading({"encode", kModel}, "guitar\npiano").output));
  const Rows prompted =
      EmbeddingsOf(PozorReading({"encode", kModel, "--prompt-text", "gui"}, "tar").output);
  CHECK(prompted == Rows{both[0]});
}

TEST_CASE("output types: bytes a row, none dependent on the other rows") {
  const TemporaryFolder folder;
  const std::string ranges = folder.Write("r.json", "{\"min\": -0.3, \"max\": 0.3}");
  const std::string file = folder.Write("t.txt", "guitar\npiano\n\n");
  for (const char* type : {"int8", "binary", "ubinary"}) {
    CAPTURE(std::string(type));
    std::vector<std::string> arguments = {"encode",   kModel, "--output-type", type,
                                          "--ranges", ranges, "--format",      "f32"};
    const std::string alone = PozorReading(arguments, "piano").output;
    arguments.push_back(file);
    const std::string all = Pozor(arguments).output;
    const size_t bytes = std::string(type) == "int8" ? 36 : 5;
    CHECK(all.size() == 3 * bytes);
    CHECK(all.substr(bytes, bytes) == alone);
  }
}

TEST_CASE("summary: on standard error, as JSON where asked for, and not at all if quiet") {
  const ProcessResult json = PozorReading(
      {"encode", kModel, "--json"}, "guitar\n" + std::string(400, 'a') + " b c d e f g h i\n");
  const JsonDocument summary = ParseJson(Lines(json.errors).back(), "summary").value();
  CHECK(summary->Find("texts")->as_int() == 2);
  CHECK(summary->Find("truncated")->as_int() == 0);
  CHECK(summary->Find("dimensions")->as_int() == 36);
  CHECK(summary->Find("peak_memory_bytes")->as_int() > 1'000'000);
  std::string longer = "guitar\n";
  for (int i = 0; i < 50; ++i) longer += "guitar ";
  const ProcessResult cut = PozorReading({"encode", kModel}, longer);
  CHECK(Lines(cut.errors).back().find("2 texts, 18 tokens, 1 truncated") != std::string::npos);
  CHECK(PozorReading({"encode", kModel, "--quiet"}, "guitar").errors.empty());
  const ProcessResult profile = PozorReading({"encode", kModel, "--profile"}, "guitar");
  CHECK(profile.exit_code == 0);
  CHECK(Lines(profile.errors).size() > 5);

  const ProcessResult refused = PozorReading({"encode", kModel, "--overflow", "error"}, longer);
  CHECK(refused.exit_code == 1);
  CHECK(refused.errors.find("text 2") != std::string::npos);
}

TEST_CASE("inputs that are no texts: one line, exit code 1, no file") {
  const TemporaryFolder in, out;
  struct Case {
    const char* name;
    std::string path;
    const char* error;
  };
  const Case cases[] = {
      {"missing", in.File("no.txt"), "no.txt: no such file"},
      {"folder", in.path(), "is a folder"},
      {"binary",
       in.Write("x.bin", std::string("\x7F"
                                     "ELF\x02\x01\x01\0\0\xFE\xFF",
                                     11)),
       "x.bin: line 1, byte 10 (0xFE)"},
      {"latin-1", in.Write("l.txt", "fine\nna\xEFve\n"), "l.txt: line 2, byte 3 (0xEF)"},
      {"UTF-16", in.Write("u.txt", std::string("\xFF\xFEh\0", 4)), "is UTF-16"},
      {"weights", TestData("bert/model.safetensors"), "is not UTF-8"},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.name));
    const ProcessResult result = Pozor({"encode", kModel, c.path, "-o", out.File("v.npy")});
    CAPTURE(result.errors);
    CHECK(result.exit_code == 1);
    CHECK(EndsInOneError(result));
    CHECK(result.errors.find(c.error) != std::string::npos);
    CHECK(out.List().empty());
  }
}

TEST_CASE("a line of 1 MB is one text, and gives the vector of its beginning") {
  std::string line;
  while (line.size() < (1u << 20)) line += "guitar ";
  const ProcessResult result = PozorReading({"encode", kModel}, line + "\nguitar\n");
  CHECK(result.exit_code == 0);
  const Rows rows = EmbeddingsOf(result.output);
  REQUIRE(rows.size() == 2);
  CHECK(rows[0] == EmbeddingsOf(PozorReading({"encode", kModel}, line.substr(0, 700)).output)[0]);
  CHECK(result.errors.find("1 truncated") != std::string::npos);
}

TEST_CASE("broken models: one line, exit code 1") {
  const TemporaryFolder folder;
  for (const char* name : {"config.json", "tokenizer.json", "tokenizer_config.json"}) {
    folder.Write(name, ReadFileOrEmpty(TestData("malformed/good-folder/") + name));
  }
  const std::string weights = ReadFileOrEmpty(TestData("malformed/good-folder/model.safetensors"));
  folder.Write("model.safetensors", weights.substr(0, weights.size() - 100));
  const ProcessResult truncated = PozorReading({"encode", folder.path()}, "a");
  CHECK(truncated.exit_code == 1);
  CHECK(EndsInOneError(truncated));
  CHECK(truncated.errors.find("model.safetensors") != std::string::npos);
  const ProcessResult unknown =
      PozorReading({"encode", TestData("malformed/folders/config-unknown-model-type")}, "a");
  CHECK(unknown.exit_code == 1);
  CHECK(EndsInOneError(unknown));
}

TEST_CASE("a full device and a closed pipe: one line, exit code 1, no signal") {
  const TemporaryFolder folder;
  const std::string file = folder.Write("t.txt", Joined(MixedTexts(300)));
  for (const char* format : {"npy", "jsonl", "f32"}) {
    CAPTURE(std::string(format));
    const ProcessResult named =
        Pozor({"encode", kModel, file, "--format", format, "-o", "/dev/full"});
    CHECK(named.exit_code == 1);
    CHECK(named.errors.find("/dev/full: cannot be written: No space left on device") !=
          std::string::npos);
    ProcessOptions options;
    options.output_file = "/dev/full";
    const ProcessResult standard = Pozor({"encode", kModel, file, "--format", format}, options);
    CHECK(standard.exit_code == 1);
    CHECK(EndsInOneError(standard));

    options = {};
    options.close_output_early = true;
    const ProcessResult closed = Pozor({"encode", kModel, file, "--format", format}, options);
    CHECK(closed.exit_code == 1);
    CHECK(closed.ended_by_signal == 0);
    CHECK(closed.errors.find("standard output: closed by its reader") != std::string::npos);
  }
  ProcessOptions closed;
  closed.close_output_early = true;
  CHECK(Pozor({"info", "--json"}, closed).exit_code == 1);
  CHECK(Pozor({"tokenize", kModel, file, "--json"}, closed).exit_code == 1);
}

TEST_CASE("Ctrl-C and its relatives: exit code 128 + signal, the old file stays, nothing else") {
  for (const int signal : {SIGINT, SIGTERM}) {
    CAPTURE(signal);
    const TemporaryFolder folder;
    folder.Write("v.npy", "old");
    ProcessOptions options;
    options.input = Joined(MixedTexts(50));
    options.keep_input_open = true;
    options.signal = signal;
    options.signal_when = [&](size_t) { return folder.List().size() == 2; };  // it has begun
    const ProcessResult result = Pozor({"encode", kModel, "-o", folder.File("v.npy")}, options);
    CHECK(!result.timed_out);
    CHECK(result.exit_code == 128 + signal);
    CHECK(EndsInOneError(result));
    CHECK(folder.List() == std::vector<std::string>{"v.npy"});
    CHECK(ReadFileOrEmpty(folder.File("v.npy")) == "old");
  }
}

TEST_CASE("Ctrl-C while nobody reads the other end of the pipe") {
  const TemporaryFolder folder;
  const std::string file = folder.Write("t.txt", Joined(MixedTexts(2000)));
  ProcessOptions options;
  options.stall_output = true;
  options.signal = SIGINT;
  constexpr size_t kNearlyFull = 60000;  // of the 64 KiB that a pipe holds
  options.signal_when = [](size_t waiting) { return waiting >= kNearlyFull; };
  const ProcessResult result = Pozor({"encode", kModel, file, "--quiet"}, options);
  CHECK(!result.timed_out);
  CHECK(result.exit_code == 130);
}

TEST_CASE("a memory ceiling too small for the weights is refused with the number needed") {
  const ProcessResult result = PozorReading({"encode", kModel, "--max-memory", "100k"}, "guitar");
  CHECK(result.exit_code == 1);
  CHECK(EndsInOneError(result));
}

TEST_CASE("users' cases on the real all-MiniLM-L6-v2") {
  const Result<std::string> model = LocateModel("all-MiniLM-L6-v2");
  if (!model.ok()) {
    MESSAGE("skipped: " << model.status().message());
    return;
  }
  const JsonDocument p06 = Expected("cases/P06/expected.json");
  CHECK(DifferenceToCase(*model, *p06->Find("vectors")) <= 2e-5);
  const JsonDocument p28 = Expected("cases/P28/expected.json");
  std::string blanks;
  for (const JsonValue& text : p28->Find("inputs")->items()) blanks += Quoted(text);
  const Rows rows =
      EmbeddingsOf(PozorReading({"encode", *model, "--input-format", "jsonl"}, blanks).output);
  const std::vector<float> want = Numbers(*p28->Find("vector"));
  REQUIRE(rows.size() == 8);
  for (const std::vector<float>& row : rows) {
    CHECK(row == rows[0]);
    for (size_t i = 0; i < want.size(); ++i) CHECK(std::fabs(row[i] - want[i]) <= 2e-5f);
  }
}

}  // namespace
}  // namespace pozor::tools
