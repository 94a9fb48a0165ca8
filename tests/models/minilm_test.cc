// The real all-MiniLM-L6-v2, if this machine has it.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "models/locate.h"
#include "pozor/pozor.hpp"
#include "tests/models/golden.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"

namespace pozor {
namespace {

using test::DataPath;
using test::Golden;

constexpr const char* kName = "all-MiniLM-L6-v2";

bool Installed() {
  const auto folder = LocateModel(kName);
  if (!folder.ok()) MESSAGE("left out: " << folder.status().message());
  return folder.ok();
}

TEST_CASE("vectors and tokens of all-MiniLM-L6-v2") {
  if (!Installed()) return;
  const Model model = test::LoadOrFail(kName);
  const Golden golden(DataPath("minilm"));
  const std::vector<std::string> texts = test::GoldenTexts(golden.json());
  const Vectors vectors = model.Encode(std::span<const std::string>(texts)).value();
  REQUIRE(vectors.dimensions() == 384);
  CHECK(golden.Excess({vectors.data(), texts.size() * 384}, golden.Read("embeddings")) <= 1.0);

  const std::vector<int32_t> ids = golden.ReadInts("token_ids");
  const std::vector<int32_t> starts = golden.ReadInts("token_starts");
  for (size_t i = 0; i < texts.size(); ++i) {
    CAPTURE(texts[i]);
    const auto tokens = model.Tokenize(texts[i]).value();
    CHECK(tokens.ids == std::vector<int32_t>(ids.begin() + starts[i], ids.begin() + starts[i + 1]));
  }
  CHECK(model.Info().max_length == 256);
  CHECK(model.Info().layers == 6);
  CHECK(model.Info().normalizes);
  CHECK(model.Info().pooling == "mean");
}

// Of all vectors of the golden's texts, on every tier with fused multiply-add.
constexpr uint64_t kHash = 0x97FAE7FD0812AD58;

TEST_CASE("the bits of all-MiniLM-L6-v2 on every tier with fused multiply-add") {
  if (!Installed()) return;
  const Model model = test::LoadOrFail(kName);
  const std::vector<std::string> texts = test::GoldenTexts(Golden(DataPath("minilm")).json());
  test::ForEachFusedTier([&](CpuTier) {
    const Vectors vectors = model.Encode(std::span<const std::string>(texts)).value();
    CHECK(test::HashBits({vectors.data(), texts.size() * 384}) == kHash);
  });
}

TEST_CASE("blank texts of all-MiniLM-L6-v2") {
  if (!Installed()) return;
  const Model model = test::LoadOrFail(kName);
  const JsonDocument expected = ReadJsonFile(DataPath("cases/P28/expected.json")).value();
  const std::vector<float> vector = test::ToFloats(*expected->Find("vector"));
  const Vectors blank = model.Encode({""}).value();
  CHECK(test::MaxAbsDifference(blank[0], vector) <= 2e-5);
  for (const JsonValue& text : expected->Find("inputs")->items()) {
    CHECK(test::SameBits(model.Encode({text.as_string()}).value()[0], blank[0]));
  }
}

}  // namespace
}  // namespace pozor
