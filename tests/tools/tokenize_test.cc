// pozor tokenize: ids, tokens and offsets as JSON lines, from the tokenizer alone.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "models/json.h"
#include "models/locate.h"
#include "tests/support/pozor_command.h"

namespace pozor::tools {
namespace {

using testing::Lines;
using testing::Pozor;
using testing::PozorReading;
using testing::ProcessResult;
using testing::TestData;

std::string Ids(const JsonValue& object, const char* key = "ids") {
  std::string ids;
  for (const JsonValue& id : object.Find(key)->items()) ids += std::to_string(id.as_int()) + " ";
  return ids;
}

std::string Spans(const JsonValue& object, const char* key) {
  std::string spans;
  for (const JsonValue& span : object.Find(key)->items()) {
    spans += std::to_string(span.items()[0].as_int()) + "-" +
             std::to_string(span.items()[1].as_int()) + " ";
  }
  return spans;
}

TEST_CASE("tokenizer.json decides; the contradicting key is named once") {
  const ProcessResult result =
      PozorReading({"tokenize", "--model", TestData("cases/P10"), "--input", "-", "--json"},
                   "the small green boat\n");
  CHECK(result.exit_code == 0);
  const JsonDocument got = ParseJson(result.output, "output").value();
  CHECK(Ids(*got) == "2 73 84 85 86 ");
  CHECK(Spans(*got, "offsets") == "0-0 0-3 4-9 10-15 16-20 ");
  CHECK(Lines(result.errors).size() == 1);
  CHECK(result.errors.find("add_eos_token") != std::string::npos);
}

TEST_CASE("offsets in code points and bytes, pairs, truncation") {
  const std::string model = TestData("bert");
  const auto tokenize = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments = {"tokenize", model, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const ProcessResult result = Pozor(arguments);
    CHECK(result.exit_code == 0);
    return ParseJson(result.output, "output").value();
  };
  const JsonDocument accents = tokenize({"--text", "\xC3\xA9, a"});
  const size_t tokens = accents->Find("ids")->size();
  for (const char* key : {"tokens", "offsets", "byte_offsets", "type_ids"}) {
    CHECK(accents->Find(key)->size() == tokens);
  }
  CHECK(Spans(*accents, "offsets") == "0-0 0-1 1-2 3-4 0-0 ");
  CHECK(Spans(*accents, "byte_offsets") == "0-0 0-2 2-3 4-5 0-0 ");
  CHECK(!accents->Find("truncated")->as_bool());

  const JsonDocument pair = tokenize({"--text", "a", "--pair", "b"});
  CHECK(Ids(*pair, "type_ids") == "0 0 0 1 1 ");
  const JsonDocument cut = tokenize({"--text", "a b c d e f", "--max-length", "4"});
  CHECK(cut->Find("ids")->size() == 4);
  CHECK(cut->Find("truncated")->as_bool());
}

TEST_CASE("a line a text; without --json ids, a tab, tokens") {
  const ProcessResult result = PozorReading({"tokenize", TestData("bert")}, "a\n\na [SEP]\n");
  const std::vector<std::string> lines = Lines(result.output);
  REQUIRE(lines.size() == 3);
  CHECK(lines[1] == "2 3\t[CLS] [SEP]");
  CHECK(lines[2].ends_with("[CLS] a [SEP] [SEP]"));
  const ProcessResult plain =
      Pozor({"tokenize", TestData("bert"), "--text", "[SEP]", "--plain-specials"});
  CHECK(plain.output.find("[SEP] [SEP]") == std::string::npos);
}

// Sparse encoders, late interaction: not run, but their texts become tokens as any other's.
TEST_CASE("a model whose modules cannot be run shows its tokens") {
  const testing::TemporaryFolder folder;
  for (const char* name :
       {"config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"}) {
    std::filesystem::copy_file(TestData("bert") + "/" + name, folder.File(name));
  }
  folder.Write(
      "modules.json",
      R"([{"path":"","type":"sentence_transformers.sparse_encoder.modules.MLMTransformer"}])");
  const ProcessResult result = PozorReading({"tokenize", folder.path()}, "a\n");
  CHECK(result.exit_code == 0);
  CHECK(result.output == PozorReading({"tokenize", TestData("bert")}, "a\n").output);
  CHECK(result.errors.find("MLMTransformer is not supported") != std::string::npos);
}

TEST_CASE("users' cases on the tokenizer of the real all-MiniLM-L6-v2") {
  const Result<std::string> model = LocateModel("all-MiniLM-L6-v2");
  if (!model.ok()) {
    MESSAGE("skipped: " << model.status().message());
    return;
  }
  const auto check = [&](const JsonValue& rows, bool plain_specials) {
    for (const JsonValue& row : rows.items()) {
      const std::string text(row.Find("text")->as_string());
      CAPTURE(text);
      std::vector<std::string> arguments = {"tokenize", *model, "--json", "--text=" + text};
      if (plain_specials) arguments.emplace_back("--plain-specials");
      const JsonDocument got = ParseJson(Pozor(arguments).output, "output").value();
      CHECK(Ids(*got) == Ids(row));
    }
  };
  const JsonDocument p05 = ReadJsonFile(TestData("cases/P05/expected.json")).value();
  check(p05->is_array() ? *p05 : *p05->Find("rows"), false);
  const JsonDocument p06 = ReadJsonFile(TestData("cases/P06/expected.json")).value();
  check(*p06->Find("default"), false);
  check(*p06->Find("specials_as_plain_text"), true);
}

}  // namespace
}  // namespace pozor::tools
