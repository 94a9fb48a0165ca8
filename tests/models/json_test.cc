#include "models/json.h"

#include <doctest/doctest.h>

#include <string>

namespace pozor {
namespace {

TEST_CASE("every type of value") {
  const auto document = ParseJson(
      R"({"null":null,"yes":true,"no":false,"int":-12,"big":9223372036854775807,
          "double":2.5e-3,"text":"a\u00e9\n\ud83d\ude00\u0000b","list":[1,[2],{}],"none":{}})",
      "test");
  REQUIRE(document.ok());
  const JsonValue& root = document->root();
  CHECK(root.Find("null")->is_null());
  CHECK(root.Find("yes")->as_bool());
  CHECK(root.Find("no")->is_bool());
  CHECK_FALSE(root.Find("no")->as_bool());
  CHECK(root.Find("int")->as_int() == -12);
  CHECK(root.Find("int")->as_double() == -12.0);
  CHECK(root.Find("big")->as_int() == INT64_MAX);
  CHECK(root.Find("double")->as_double() == 2.5e-3);
  CHECK(root.Find("text")->as_string() == std::string_view("a\xC3\xA9\n\xF0\x9F\x98\x80\0b", 10));
  CHECK(root.Find("list")->items().size() == 3);
  CHECK(root.Find("list")->items()[1].items()[0].as_int() == 2);
  CHECK(root.Find("none")->members().empty());
  CHECK(root.Find("absent") == nullptr);
  CHECK(root.Find("text")->as_int() == 0);
  CHECK(root.Find("int")->as_string().empty());
}

TEST_CASE("integers beyond 64 bits become doubles") {
  const auto document = ParseJson(
      R"({"a":1000000000000000019884624838656,"b":"99999999999999999999999","c":-123456789012345678901,"d":18446744073709551615})",
      "test");
  REQUIRE(document.ok());
  CHECK((*document)->Find("a")->as_double() == 1000000000000000019884624838656.0);
  CHECK((*document)->Find("b")->as_string() == "99999999999999999999999");
  CHECK((*document)->Find("c")->as_double() == -123456789012345678901.0);
  CHECK_FALSE((*document)->Find("d")->is_int());
}

TEST_CASE("members keep the order of the file, and repeated keys are seen") {
  const auto document = ParseJson(R"({"z":1,"a":2,"m":3,"a":4})", "test");
  REQUIRE(document.ok());
  std::string order;
  for (const JsonMember& member : (*document)->members()) order += member.key;
  CHECK(order == "zama");
  CHECK((*document)->Find("a")->as_int() == 4);
  REQUIRE((*document)->DuplicateKey().has_value());
  CHECK(*(*document)->DuplicateKey() == "a");
  CHECK_FALSE(ParseJson(R"({"a":{"b":1},"b":1})", "t").value()->DuplicateKey().has_value());
}

TEST_CASE("what is not JSON is refused with the file's name") {
  const std::string deep_list = std::string(200, '[') + std::string(200, ']');
  const std::string cases[] = {
      "",
      " ",
      "{",
      "{\"a\":1,}",
      "[1,]",
      "{'a':1}",
      "NaN",
      "{\"a\":Infinity}",
      "01",
      "1 2",
      "{} x",
      "\"\x01\"",
      "\"\xFF\"",
      "\"\\ud800x\"",
      "\xEF\xBB\xBF{}",
      "[1e999999]",
      deep_list,
  };
  for (const std::string& text : cases) {
    CAPTURE(text);
    const auto document = ParseJson(text, "model/config.json");
    REQUIRE_FALSE(document.ok());
    CHECK(document.status().code() == StatusCode::kCorrupt);
    CHECK(document.status().message().starts_with("model/config.json: "));
    CHECK(document.status().message().find('\n') == std::string::npos);
  }
}

TEST_CASE("a tree of many values") {
  std::string text = "{";
  for (int i = 0; i < 50000; ++i) {
    text += (i > 0 ? ",\"" : "\"") + std::to_string(i) + "\":" + std::to_string(i);
  }
  const auto document = ParseJson(text + "}", "vocab");
  REQUIRE(document.ok());
  int64_t expected = 0;
  for (const JsonMember& member : (*document)->members()) {
    if (member.value.as_int() != expected || member.key != std::to_string(expected)) break;
    ++expected;
  }
  CHECK(expected == 50000);
}

}  // namespace
}  // namespace pozor
