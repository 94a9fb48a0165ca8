// The token ids of the BERT goldens; architectures_test.cc has their hidden states.
#include "tests/models/golden.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

namespace pozor {
namespace {

using test::DataPath;
using test::Golden;

TEST_CASE("tokens of the BERT goldens") {
  for (const char* name :
       {"bert", "bert-gelu-new", "bert-relu", "bert-silu-nopooler", "bert-decoder"}) {
    CAPTURE(name);
    const Golden golden(DataPath(name));
    const Model model = test::LoadOrFail(DataPath(name));
    EncodeOptions options;
    options.max_length = static_cast<size_t>(golden.json().Find("max_length")->as_int());
    for (const JsonValue& item : golden.json().Find("texts")->items()) {
      const std::string text(item.Find("text")->as_string());
      CAPTURE(text);
      const auto tokens = model.Tokenize(text, options);
      REQUIRE(tokens.ok());
      CHECK(tokens->ids == test::ToInts(*item.Find("ids")));
      CHECK(tokens->type_ids == test::ToInts(*item.Find("type_ids")));
      CHECK(tokens->truncated == item.Find("truncated")->as_bool());
    }
  }
}

}  // namespace
}  // namespace pozor
