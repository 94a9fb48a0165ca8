#include "engine/weights.h"

#include <doctest/doctest.h>

#include <array>
#include <memory>
#include <string>

#include "tests/engine/tiny_model.h"

namespace pozor {
namespace {

using test::MemorySource;

std::shared_ptr<MemorySource> Source(const std::vector<std::string>& names) {
  auto source = std::make_shared<MemorySource>();
  for (const std::string& name : names) source->Add(name, {2, 3}, std::vector<float>(6));
  return source;
}

constexpr std::array<size_t, 2> kShape = {2, 3};

TEST_CASE("what was taken is accounted for") {
  WeightReader reader(Source({"b", "a", "c"}));
  CHECK(reader.Unused() == std::vector<std::string>{"a", "b", "c"});
  CHECK(reader.Take("a", kShape).value()->name == "a");
  CHECK(reader.Take("a", kShape).ok());  // a fused tensor is taken part by part
  CHECK(reader.Find("b") != nullptr);    // looking does not take
  CHECK(reader.Has("b"));
  CHECK(!reader.Has("d"));
  CHECK(reader.Find("d") == nullptr);
  CHECK(reader.Unused() == std::vector<std::string>{"b", "c"});
}

TEST_CASE("missing tensors and wrong shapes are named") {
  WeightReader reader(Source({"a"}));
  const auto missing = reader.Take("layer.0.weight", kShape);
  CHECK(missing.status().code() == StatusCode::kNotFound);
  CHECK(missing.status().message().find("tiny model: tensor 'layer.0.weight'") == 0);

  const std::array<size_t, 2> swapped = {3, 2};
  const auto wrong = reader.Take("a", swapped);
  CHECK(wrong.status().code() == StatusCode::kCorrupt);
  CHECK(wrong.status().message().find("[2, 3]") != std::string::npos);
  CHECK(wrong.status().message().find("[3, 2]") != std::string::npos);
  const std::array<size_t, 1> flat = {6};
  CHECK(!reader.Take("a", flat).ok());
  CHECK(reader.Unused().size() == 1);
}

TEST_CASE("a prefix is stripped where there is one") {
  WeightReader reader(Source({"bert.a", "bert.b", "cls.c"}));
  reader.StripPrefix("bert.");
  CHECK(reader.Has("a"));
  CHECK(reader.Has("b"));
  CHECK(reader.Has("cls.c"));
  CHECK(!reader.Has("bert.a"));
  reader.StripPrefix("");
  CHECK(reader.Has("a"));
}

TEST_CASE("stripping a prefix loses no tensor") {
  WeightReader reader(Source({"a", "x.a", "x."}));
  reader.StripPrefix("x.");
  CHECK(reader.Find("a")->name == "a");
  CHECK(reader.Find("x.a")->name == "x.a");
  CHECK(reader.Has("x."));
}

TEST_CASE("renaming old spellings") {
  WeightReader reader(Source({"norm.gamma", "other"}));
  const auto rename = [](std::string_view name) {
    return name == "norm.gamma" ? std::string("norm.weight") : std::string(name);
  };
  REQUIRE(reader.Rename(rename).ok());
  CHECK(reader.Take("norm.weight", kShape).value()->name == "norm.gamma");
  CHECK(!reader.Has("norm.gamma"));
}

TEST_CASE("two tensors of one name after renaming are refused") {
  WeightReader reader(Source({"norm.gamma", "norm.weight"}));
  const Status status = reader.Rename([](std::string_view) { return std::string("norm.weight"); });
  CHECK(status.code() == StatusCode::kCorrupt);
  CHECK(status.message().find("norm.gamma") != std::string::npos);
}

}  // namespace
}  // namespace pozor
