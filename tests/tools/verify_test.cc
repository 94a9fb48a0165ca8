// pozor verify: what is right passes, what is wrong is found, what is out of reach is listed.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "models/json.h"
#include "tests/support/pozor_command.h"
#include "tools/io/npy.h"
#include "tools/rank.h"
#include "tools/verify_table.h"

namespace pozor::tools {
namespace {

using testing::Lines;
using testing::Pozor;
using testing::ProcessResult;
using testing::ReadFileOrEmpty;
using testing::TemporaryFolder;
using testing::TestData;

TEST_CASE("golden folders of base models and sentence models pass") {
  for (const char* name :
       {"bert", "bert-decoder", "bert-gelu-new", "bert-relu", "bert-silu-nopooler", "st-cls",
        "st-concat-all", "st-layernorm", "st-lower", "st-max", "st-mean-norm", "st-no-modules",
        "st-prompts", "st-sqrt", "st-truncate-dim"}) {
    CAPTURE(std::string(name));
    const ProcessResult result = Pozor({"verify", TestData(name), "--golden", TestData(name)});
    CAPTURE(result.output);
    CHECK(result.exit_code == 0);
    CHECK(Lines(result.output).back().ends_with(" ok, 0 different, 0 not computable"));
  }
}

TEST_CASE("a table that a machine can read") {
  const ProcessResult result =
      Pozor({"verify", TestData("bert"), "--golden", TestData("bert"), "--json"});
  const JsonDocument table = ParseJson(result.output, "output").value();
  CHECK(table->Find("ok")->as_int() == 48);
  size_t hidden = 0;
  for (const JsonValue& tensor : table->Find("tensors")->items()) {
    CHECK(tensor.Find("outcome")->as_string() == "ok");
    hidden += tensor.Find("name")->as_string().ends_with(".hidden") ? 1 : 0;
  }
  CHECK(hidden > 0);
}

// A safetensors file of f32 tensors.
struct Tensor {
  std::string name;
  std::string shape;  // "[1, 2]"
  std::vector<float> values;
};

std::string Safetensors(const std::vector<Tensor>& tensors) {
  std::string header, body;
  for (const Tensor& tensor : tensors) {
    const size_t begin = body.size();
    body.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * 4);
    header += (header.empty() ? "{\"" : ",\"") + tensor.name +
              "\":{\"dtype\":\"F32\",\"shape\":" + tensor.shape + ",\"data_offsets\":[" +
              std::to_string(begin) + "," + std::to_string(body.size()) + "]}";
  }
  header += "}";
  while (header.size() % 8 != 0) header += ' ';
  const uint64_t length = header.size();
  return std::string(reinterpret_cast<const char*>(&length), 8) + header + body;
}

TEST_CASE("differences in a tensor and in token ids are found: exit code 1") {
  const TemporaryFolder folder;
  std::string json = ReadFileOrEmpty(TestData("st-mean-norm/golden.json"));
  std::string tensors = ReadFileOrEmpty(TestData("st-mean-norm/golden.safetensors"));
  folder.Write("golden.json", json);
  float value;
  std::memcpy(&value, tensors.data() + tensors.size() - 4, 4);
  value += 1e-3f;
  std::memcpy(tensors.data() + tensors.size() - 4, &value, 4);
  folder.Write("golden.safetensors", tensors);
  const ProcessResult tensor =
      Pozor({"verify", TestData("st-mean-norm"), "--golden", folder.path()});
  CHECK(tensor.exit_code == 1);
  CHECK(tensor.output.find("0.001") != std::string::npos);
  CHECK(tensor.output.find("DIFFERENT") != std::string::npos);

  const size_t at = json.find("\"token_ids\"");
  const size_t id = json.find('2', at);
  REQUIRE(id != std::string::npos);
  json[id] = '3';
  folder.Write("golden.json", json);
  folder.Write("golden.safetensors", ReadFileOrEmpty(TestData("st-mean-norm/golden.safetensors")));
  const ProcessResult ids = Pozor({"verify", TestData("st-mean-norm"), "--golden", folder.path()});
  CHECK(ids.exit_code == 1);
  CHECK(ids.output.find("first at text 0") != std::string::npos);
}

TEST_CASE("tensors that this version cannot compute are listed: exit code 3") {
  const TemporaryFolder folder;
  folder.Write("golden.json", "{\"texts\": [], \"tolerance\": {\"abs\": 1e-5}}");
  folder.Write("golden.safetensors", Safetensors({{"logits", "[1, 2]", {0, 1}}}));
  const ProcessResult result = Pozor({"verify", TestData("bert"), "--golden", folder.path()});
  CHECK(result.exit_code == 3);
  CHECK(result.output.find("logits") != std::string::npos);
  CHECK(Lines(result.output).back() == "0 ok, 0 different, 1 not computable");
}

TEST_CASE("a model that is not supported: its tensors are listed, exit code 3; a broken one: 1") {
  const ProcessResult unsupported =
      Pozor({"verify", TestData("malformed/folders/config-unknown-model-type"), "--golden",
             TestData("st-mean-norm")});
  CAPTURE(unsupported.errors);
  CHECK(unsupported.exit_code == 3);
  CHECK(unsupported.output.find("note: ") != std::string::npos);
  CHECK(Pozor({"verify", TestData("cases/P20/one_missing"), "--golden", TestData("st-mean-norm")})
            .exit_code == 1);
}

TEST_CASE("a model whose tokenizer cannot be read is checked on the recorded ids") {
  const TemporaryFolder folder;
  for (const char* name : {"config.json", "model.safetensors"}) {
    folder.Write(name, ReadFileOrEmpty(TestData("bert/") + name));
  }
  const ProcessResult result = Pozor({"verify", folder.path(), "--golden", TestData("bert")});
  CAPTURE(result.output);
  CHECK(result.exit_code == 3);
  CHECK(result.output.find("token ids were used") != std::string::npos);
  CHECK(Lines(result.output).back() == "46 ok, 0 different, 2 not computable");
}

TEST_CASE("vectors of a file against recorded ones") {
  const TemporaryFolder folder;
  const std::string texts = folder.Write("t.txt", "guitar\npiano\n\na guitar\n");
  const std::string model = TestData("st-mean-norm");
  REQUIRE(Pozor({"encode", model, texts, "-o", folder.File("v.npy")}).exit_code == 0);
  std::vector<std::string> arguments = {"verify",  model, "--reference", folder.File("v.npy"),
                                        "--texts", texts};
  const ProcessResult same = Pozor(arguments);
  CHECK(same.exit_code == 0);
  CHECK(same.output.find("cosine to the reference: smallest 1") != std::string::npos);

  arguments.insert(arguments.end(), {"--scores", folder.Write("s.txt", "5\n1.5\n")});
  const ProcessResult scored = Pozor(arguments);
  CHECK(scored.exit_code == 0);
  CHECK(scored.output.find("spearman x100") != std::string::npos);

  std::string bytes = ReadFileOrEmpty(folder.File("v.npy"));
  bytes[bytes.size() - 1] = static_cast<char>(bytes[bytes.size() - 1] ^ 0x80);  // the sign
  folder.Write("v.npy", bytes);
  CHECK(Pozor(arguments).exit_code == 1);

  folder.Write("t.txt", "guitar\n");
  const ProcessResult rows = Pozor(arguments);
  CHECK(rows.exit_code == 1);
  CHECK(rows.errors.find("has 4 rows") != std::string::npos);
}

TEST_CASE("the option that is missing, or one too many, is named") {
  struct Case {
    std::vector<std::string> options;
    const char* error;
  };
  const Case cases[] = {
      {{"--reference", "v.npy"}, "v.npy: its texts are missing; give --texts"},
      {{"--texts", "t.txt"}, "t.txt: the vectors to compare with are missing; give --reference"},
      {{"--golden", "g", "--texts", "t.txt"}, "two kinds of results"},
      {{"--golden", "g", "--reference", "v.npy"}, "two kinds of results"},
      {{"--golden", "g", "--reference", "v.npy", "--texts", "t.txt"}, "two kinds of results"},
  };
  for (const Case& c : cases) {
    std::vector<std::string> arguments = {"verify", TestData("st-mean-norm")};
    arguments.insert(arguments.end(), c.options.begin(), c.options.end());
    const ProcessResult result = Pozor(arguments);
    CAPTURE(result.errors);
    CHECK(result.exit_code == 2);
    CHECK(result.output.empty());
    CHECK(result.errors.find(c.error) != std::string::npos);
    CHECK(testing::EndsInOneError(result));
  }
}

TEST_CASE("scores and vectors that give no order end at once, and say so") {
  const TemporaryFolder folder;
  const std::string texts = folder.Write("t.txt", "guitar\npiano\n\na guitar\n");
  const std::string model = TestData("st-mean-norm"), vectors = folder.File("v.npy");
  REQUIRE(Pozor({"encode", model, texts, "-o", vectors}).exit_code == 0);
  const auto verify = [&](const std::string& scores) {
    return Pozor({"verify", model, "--reference", vectors, "--texts", texts, "--scores",
                  folder.Write("s.txt", scores)});
  };
  for (const char* scores : {"nan\n1\n", "1\n-nan\n", "1e999\n1\n", "1\n1x\n"}) {
    CAPTURE(std::string(scores));
    const ProcessResult result = verify(scores);
    CHECK(result.exit_code == 1);
    CHECK(result.errors.find("is no number") != std::string::npos);
  }
  const ProcessResult equal = verify("2\n2\n");
  CHECK(equal.exit_code == 3);
  CHECK(equal.output.find("are the same, which is no order") != std::string::npos);

  std::string bytes = ReadFileOrEmpty(vectors);
  const size_t row = 36 * sizeof(float);
  bytes.replace(bytes.size() - row, row, row, '\0');  // a vector of zeros has no direction
  folder.Write("v.npy", bytes);
  const ProcessResult zeros = verify("5\n1.5\n");
  CHECK(zeros.exit_code == 1);
  CHECK(zeros.output.find("smallest 0") != std::string::npos);
  CHECK(zeros.output.find("spearman x100") != std::string::npos);
}

TEST_CASE("rank correlation of anything at all") {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const std::vector<double> up = {1, 2, 3, 4};
  CHECK(SpearmanCorrelation(up, {-5, 0, 0.5, kInfinity}) == doctest::Approx(1));
  CHECK(SpearmanCorrelation(up, {9, 8, 7, -kInfinity}) == doctest::Approx(-1));
  for (const std::vector<double>& other : std::vector<std::vector<double>>{
           {kNan, 1, 2, 3}, {1, kNan, 2, 3}, {kNan, kNan, kNan, kNan}, {7, 7, 7, 7}}) {
    CHECK(std::isnan(SpearmanCorrelation(up, other)));
    CHECK(std::isnan(SpearmanCorrelation(other, up)));
  }
  CHECK(std::isnan(SpearmanCorrelation({}, {})));
  CHECK(std::isnan(SpearmanCorrelation({1}, {1})));
}

TEST_CASE("what is within tolerance") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float inf = std::numeric_limits<float>::infinity();
  struct Case {
    const char* name;
    std::vector<float> got, expected;
    Outcome outcome;
  };
  const Case cases[] = {
      {"equal", {1, 2}, {1, 2}, Outcome::kOk},
      {"within the absolute part", {0.05f}, {0}, Outcome::kOk},
      {"within the relative part", {110}, {100}, Outcome::kOk},
      {"beyond", {111.5f}, {100}, Outcome::kDifferent},
      {"not a number", {nan}, {0}, Outcome::kDifferent},
      {"expected is not a number", {0}, {nan}, Outcome::kDifferent},
      {"infinite", {inf}, {1}, Outcome::kDifferent},
      {"another size", {1}, {1, 2}, Outcome::kDifferent},
      {"nothing", {}, {}, Outcome::kOk},
  };
  for (const Case& c : cases) {
    CAPTURE(std::string(c.name));
    VerifyTable table;
    table.Compare("x", {c.expected.size()}, c.got, c.expected, {0.1, 0.1});
    CHECK(table.rows()[0].outcome == c.outcome);
    CHECK(table.ExitCode() == (c.outcome == Outcome::kOk ? 0 : 1));
  }
}

}  // namespace
}  // namespace pozor::tools
