// Reports of users of other engines, as tests: each stands for a kind of fault.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "models/formats/file.h"
#include "pozor/pozor.hpp"
#include "tests/models/golden.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

namespace pozor {
namespace {

namespace fs = std::filesystem;
using test::DataPath;

constexpr double kTolerance = 2e-5;

// Rows of {"text", "vector"} against the model: all in one call, then one by one with equal bits.
void CheckRows(const Model& model, const JsonValue& rows) {
  std::vector<std::string> texts;
  for (const JsonValue& row : rows.items()) texts.emplace_back(row.Find("text")->as_string());
  REQUIRE_FALSE(texts.empty());
  const Vectors all = model.Encode(std::span<const std::string>(texts)).value();
  for (size_t i = 0; i < texts.size(); ++i) {
    CAPTURE(texts[i]);
    const std::vector<float> expected = test::ToFloats(*rows.items()[i].Find("vector"));
    CHECK(test::MaxAbsDifference(all[i], expected) <= kTolerance);
    CHECK(test::SameBits(model.Encode({texts[i]}).value()[0], all[i]));
  }
}

TEST_CASE("a Dense layer with tanh after the pooling") {
  const JsonDocument expected = ReadJsonFile(DataPath("cases/P13/expected.json")).value();
  const Model model = test::LoadOrFail(DataPath("cases/P13/model"));
  CHECK(model.Info().dimensions == 16);
  CheckRows(model, *expected->Find("rows"));
}

TEST_CASE("positions of RoBERTa count from the padding id, whatever it is") {
  const JsonDocument expected = ReadJsonFile(DataPath("cases/P11/expected.json")).value();
  const Model model = test::LoadOrFail(DataPath("cases/P11/model"));
  CheckRows(model, *expected->Find("rows"));

  // 40 rows of the position table from pad_token_id + 1 = 4 on, also if nothing else says so.
  const fs::path copy = fs::temp_directory_path() / ("pozor-P11-" + std::to_string(::getpid()));
  fs::copy(DataPath("cases/P11/model"), copy, fs::copy_options::recursive);
  fs::remove(copy / "sentence_bert_config.json");
  const Model unlimited = test::LoadOrFail(copy.string());
  CHECK(unlimited.Info().max_length == 36);
  CheckRows(unlimited, *expected->Find("rows"));
  fs::remove_all(copy);
}

TEST_CASE("folders in the layout of sentence-transformers 5.4 and later") {
  const JsonDocument expected = ReadJsonFile(DataPath("cases/P16/expected.json")).value();
  for (const std::string name : {"new_cls", "new_mean", "new_cls+mean", "new_weightedmean"}) {
    CAPTURE(name);
    const Model model = test::LoadOrFail(DataPath("cases/P16/" + name));
    CHECK(model.Info().max_length == 64);
    CHECK(model.Info().dimensions == (name == "new_cls+mean" ? 64u : 32u));
    CheckRows(model, *expected->Find(name));
  }
}

TEST_CASE("fixed left padding in tokenizer.json changes nothing") {
  for (const std::string name : {"cls", "last"}) {
    CAPTURE(name);
    const std::string folder = DataPath("cases/P18/" + name);
    const JsonDocument expected = ReadJsonFile(folder + "/expected.json").value();
    const JsonValue& rows = expected->is_array() ? expected.root() : *expected->Find("rows");
    CheckRows(test::LoadOrFail(folder), rows);
  }
}

TEST_CASE("old tensor names and passengers") {
  const JsonDocument expected = ReadJsonFile(DataPath("cases/P20/expected.json")).value();
  const Model plain = test::LoadOrFail(DataPath("cases/P20/plain"));
  const Model old_names = test::LoadOrFail(DataPath("cases/P20/old_names"));
  CheckRows(plain, *expected->Find("rows"));
  CheckRows(old_names, *expected->Find("rows"));
  for (const JsonValue& row : expected->Find("rows")->items()) {
    const std::string_view text = row.Find("text")->as_string();
    CHECK(test::SameBits(plain.Encode({text}).value()[0], old_names.Encode({text}).value()[0]));
  }
  CHECK(old_names.Info().ignored_tensors.size() > plain.Info().ignored_tensors.size());
  CHECK(old_names.Info().parameters == plain.Info().parameters);
  const auto missing = Model::Load(DataPath("cases/P20/one_missing"));
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.status().message().find("encoder.layer.1.output.dense.bias") != std::string::npos);
}

// 300 texts of 1 to 180 words in no order, every tenth a repeat of an earlier one.
std::vector<std::string> ManyTexts() {
  const char* words[] = {"ferry",   "lamp",    "salt",   "copper", "attic",  "velvet",
                         "harbour", "thistle", "engine", "marble", "parcel", "winter"};
  test::Random random(27);
  std::vector<std::string> texts;
  for (size_t i = 0; i < 300; ++i) {
    if (i % 10 == 9) {
      texts.push_back(texts[random.Index(texts.size())]);
      continue;
    }
    const size_t longest = size_t{1} << random.Index(8);
    std::string text;
    for (size_t n = 1 + random.Index(longest); n > 0; --n) {
      text += words[random.Index(std::size(words))] + std::string(" ");
    }
    texts.push_back(text + std::to_string(i));
  }
  return texts;
}

TEST_CASE("results come in the order of the input") {
  const Model model = test::LoadOrFail(DataPath("cases/P20/plain"));
  const std::vector<std::string> texts = ManyTexts();
  std::vector<Vectors> alone;
  for (const std::string& text : texts) alone.push_back(model.Encode({text}).value());
  for (size_t threads : {1, 2}) {
    for (size_t batch_tokens : {1, 7, 64, 100000}) {
      CAPTURE(threads);
      CAPTURE(batch_tokens);
      EncodeOptions options;
      options.threads = threads;
      options.batch_tokens = batch_tokens;
      const Vectors all = model.Encode(std::span<const std::string>(texts), options).value();
      size_t wrong = 0;
      for (size_t i = 0; i < texts.size(); ++i) wrong += !test::SameBits(all[i], alone[i][0]);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("texts with nothing in them keep their rows and have one vector") {
  const Model model = test::LoadOrFail(DataPath("st-mean-norm"));
  const JsonDocument expected = ReadJsonFile(DataPath("cases/P28/expected.json")).value();
  std::vector<std::string> texts = {"A man is playing a guitar."};
  for (const JsonValue& text : expected->Find("inputs")->items()) {
    texts.emplace_back(text.as_string());
  }
  texts.push_back("guitar");
  const Vectors all = model.Encode(std::span<const std::string>(texts)).value();
  const Vectors blank = model.Encode({""}).value();
  for (size_t i = 1; i + 1 < texts.size(); ++i) {
    CHECK(test::SameBits(all[i], blank[0]));
    CHECK(model.Tokenize(texts[i]).value().ids.size() == 2);
  }
  for (size_t i = 0; i < texts.size(); ++i) {
    CHECK(std::abs(Cosine(all[i], all[i]) - 1.0f) < 1e-6f);
  }
  CHECK_FALSE(test::SameBits(all[0], blank[0]));
  CHECK(test::SameBits(all[texts.size() - 1], model.Encode({"guitar"}).value()[0]));
}

}  // namespace
}  // namespace pozor
