// sentence-transformers folders: pooling, modules, prompts and limits against the reference.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "pozor/pozor.hpp"
#include "tests/models/encode.h"
#include "tests/models/golden.h"
#include "tests/support/compare.h"

namespace pozor {
namespace {

using test::DataPath;
using test::Encode;
using test::Golden;

constexpr const char* kFolders[] = {
    "st-cls",       "st-max",       "st-sqrt",  "st-concat",     "st-concat-all", "st-mean-norm",
    "st-layernorm", "st-lasttoken", "st-lower", "st-no-modules", "st-prompts",    "st-truncate-dim",
};

TEST_CASE("vectors of sentence-transformers folders") {
  for (const std::string name : kFolders) {
    CAPTURE(name);
    const Golden golden(DataPath(name));
    const Model model = test::LoadOrFail(DataPath(name));
    const std::vector<std::string> texts = test::GoldenTexts(golden.json());
    const std::vector<float> got = Encode(model, texts);
    CHECK(got.size() == texts.size() * model.Info().dimensions);
    CHECK(golden.Excess(got, golden.Read("embeddings")) <= 1.0);

    EncodeOptions options;
    if (golden.Find("embeddings.normalized") != nullptr) {
      options.normalize = true;
      CHECK(golden.Excess(Encode(model, texts, options), golden.Read("embeddings.normalized")) <=
            1.0);
      options.normalize.reset();
    }
    for (const auto& [prompt, text] : model.Info().prompts) {
      CAPTURE(prompt);
      const std::string tensor = "embeddings.prompt." + prompt;
      if (golden.Find(tensor) == nullptr) continue;
      options.prompt_name = prompt;
      options.prompt.reset();
      CHECK(golden.Excess(Encode(model, texts, options), golden.Read(tensor)) <= 1.0);
      options.prompt_name.reset();
      options.prompt = text;
      CHECK(golden.Excess(Encode(model, texts, options), golden.Read(tensor)) <= 1.0);
    }
  }
}

TEST_CASE("tokens that reach the model, and its limit") {
  for (const std::string name : kFolders) {
    CAPTURE(name);
    const Golden golden(DataPath(name));
    const Model model = test::LoadOrFail(DataPath(name));
    EncodeOptions options;
    options.prompt = "";
    const std::vector<std::string> texts = test::GoldenTexts(golden.json());
    const JsonValue& ids = *golden.json().Find("token_ids");
    REQUIRE(ids.items().size() == texts.size());
    for (size_t i = 0; i < texts.size(); ++i) {
      CAPTURE(texts[i]);
      CHECK(model.Tokenize(texts[i], options).value().ids == test::ToInts(ids.items()[i]));
    }
    const JsonValue* limit = golden.json().Find("max_length");
    if (limit->is_int()) {
      CHECK(model.Info().max_length == static_cast<size_t>(limit->as_int()));
    }
  }
}

TEST_CASE("options are checked, with what there is in the message") {
  const Model model = test::LoadOrFail(DataPath("st-prompts"));
  const auto message = [&](const EncodeOptions& options) {
    const auto vectors = model.Encode({"text"}, options);
    REQUIRE_FALSE(vectors.ok());
    CHECK(vectors.status().code() == StatusCode::kInvalidArgument);
    return vectors.status().message();
  };
  EncodeOptions options;
  options.prompt_name = "queery";
  CHECK(message(options).find("document, nothing, passage, query") != std::string::npos);
  options.prompt = "x";
  CHECK(message(options).find("one of them") != std::string::npos);
  options = {};
  options.truncate_dim = 37;
  CHECK(message(options).find("1 to 36") != std::string::npos);
  options.truncate_dim = 0;
  CHECK(message(options).find("1 to 36") != std::string::npos);
  options = {};
  options.max_length = 2;
  CHECK(message(options).find("special tokens") != std::string::npos);
  options.max_length = 41;
  CHECK(message(options).find("40 tokens") != std::string::npos);
  options = {};
  options.overflow = Overflow::kError;
  options.max_length = 4;
  const auto vectors = model.Encode({"ok", "one two three four five six"}, options);
  REQUIRE_FALSE(vectors.ok());
  CHECK(vectors.status().message().starts_with("text "));
  float row[36];
  const std::string_view one[] = {"a"};
  const auto narrow = model.EncodeInto(one, row, 35);
  REQUIRE_FALSE(narrow.ok());
  CHECK(narrow.status().message().find("stride 35") != std::string::npos);
  const auto invalid = model.Encode({"fine", "caf\xE9"});
  REQUIRE_FALSE(invalid.ok());
  CHECK(invalid.status().message().starts_with("text 2"));
}

TEST_CASE("truncation and unit length") {
  const Model model = test::LoadOrFail(DataPath("st-mean-norm"));
  const std::vector<std::string> texts = {"A man is playing a guitar.", "guitar"};
  const std::vector<float> full = Encode(model, texts);
  EncodeOptions options;
  options.truncate_dim = 10;
  CHECK(model.Dimensions(options) == 10);
  const std::vector<float> cut = Encode(model, texts, options);
  REQUIRE(cut.size() == 20);
  CHECK(test::SameBits(std::span(cut).first(10), std::span(full).first(10)));
  CHECK(test::SameBits(std::span(cut).last(10), std::span(full).subspan(36, 10)));
  options.normalize = true;
  const std::vector<float> unit = Encode(model, texts, options);
  CHECK(std::abs(Cosine(std::span(unit).first(10), std::span(cut).first(10)) - 1.0f) < 1e-6f);
  double square = 0;
  for (size_t i = 0; i < 10; ++i) square += static_cast<double>(unit[i]) * unit[i];
  CHECK(std::abs(square - 1) < 1e-6);
  options = {};
  options.normalize = false;
  const std::vector<float> raw = Encode(model, texts, options);
  CHECK(std::abs(Cosine(std::span(raw).first(36), std::span(full).first(36)) - 1.0f) < 1e-6f);
  CHECK_FALSE(test::SameBits(raw, full));
}

TEST_CASE("no texts, and one") {
  const Model model = test::LoadOrFail(DataPath("st-mean-norm"));
  const auto none = model.Encode(std::span<const std::string>());
  REQUIRE(none.ok());
  CHECK(none->rows() == 0);
  CHECK(none->dimensions() == 36);
  CHECK(model.Encode({""}).value().rows() == 1);
}

}  // namespace
}  // namespace pozor
