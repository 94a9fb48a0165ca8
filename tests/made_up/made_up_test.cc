// The third edit: a golden folder, here that of ELECTRA with another type in its configuration.
#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/models/golden.h"
#include "tests/models/trace.h"

namespace pozor {
namespace {

namespace fs = std::filesystem;

TEST_CASE("a made-up architecture takes its file, a line in the list and a golden") {
  const fs::path folder = fs::temp_directory_path() / ("pozor-made-up-" + std::to_string(getpid()));
  fs::copy(test::DataPath("architectures/electra-same"), folder, fs::copy_options::recursive);
  std::ifstream in(folder / "config.json");
  std::stringstream text;
  text << in.rdbuf();
  std::string config = text.str();
  const size_t at = config.find("\"electra\"");
  REQUIRE(at != std::string::npos);
  config.replace(at, 9, "\"made_up\"");
  std::ofstream(folder / "config.json") << config;

  const auto model = LoadModelParts(folder.string(), {}, {.requires_tokenizer = false});
  REQUIRE_MESSAGE(model.ok(), model.status().message());
  CHECK((*model)->info.architecture == "made_up");
  const test::Golden golden(folder.string());
  const JsonValue& entry = golden.json().Find("texts")->items()[0];
  const TokenBatch batch = test::TokensOf(entry);
  const std::string stem = "text." + std::to_string(entry.Find("index")->as_int());
  const test::Trace trace = test::TraceText(**model, batch);
  const size_t hidden = (*model)->encoder->spec().hidden;
  CHECK(test::ExcessOf(golden, stem, trace, batch.ids.size() * hidden) <= 1.0);
  fs::remove_all(folder);
}

}  // namespace
}  // namespace pozor
