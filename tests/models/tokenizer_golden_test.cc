// Ids, tokens, offsets, pairs and truncation of every kind of tokenizer, against recorded output of
// Hugging Face `tokenizers`. A row of data/tokenizers/<kind>.jsonl:
//   text, pair?, ids, tokens?, type_ids? (where not all 0), chars (offsets, flat), bytes? (where
//   they differ), seq? (pairs), bare? (ids without specials, where they are not the ids between
//   them), truncate? {max_length, stride, ids, overflow} or {max_length, stride, error}
#include <doctest/doctest.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "models/json.h"
#include "models/text/tokenizer.h"

namespace pozor {
namespace {

const char* const kKinds[] = {
    "wp-uncased",    "wp-cased",    "wp-cased-strip", "wp-lower-keep",  "wp-mpnet",
    "minilm",        "wordlevel",   "bpe-gpt2",       "bpe-modernbert", "bpe-prefix",
    "bpe-qwen",      "bpe-roberta", "sp-gemma",       "sp-llama",       "uni-albert",
    "uni-camembert", "uni-deberta", "uni-t5",         "uni-xlmr",
};

std::string DataPath(const std::string& name) {
  return std::string(POZOR_TEST_DATA) + "/tokenizers/" + name;
}

std::vector<int32_t> Numbers(const JsonValue* list) {
  std::vector<int32_t> out;
  if (list == nullptr) return out;
  for (const JsonValue& item : list->items()) out.push_back(static_cast<int32_t>(item.as_int()));
  return out;
}

std::vector<int32_t> Flat(const std::vector<Span>& spans) {
  std::vector<int32_t> out;
  for (const Span& span : spans) {
    out.push_back(static_cast<int32_t>(span.begin));
    out.push_back(static_cast<int32_t>(span.end));
  }
  return out;
}

// One row under test.
struct Row {
  const Tokenizer& tokenizer;
  const JsonValue& json;
  std::string_view text, pair;
  const std::string_view* second;
  TokenizeScratch& scratch;

  std::vector<int32_t> Append(const TokenizeOptions& options, TokenizeStats* stats) const {
    std::vector<int32_t> ids = {-7}, types = {-7};
    auto result = tokenizer.Append(text, second, options, scratch, &ids, &types);
    REQUIRE_MESSAGE(result.ok(), result.status().message());
    *stats = *result;
    CHECK(types.size() == ids.size());
    CHECK(stats->tokens + 1 == ids.size());
    return {ids.begin() + 1, ids.end()};
  }
};

void CheckWhole(const Row& row) {
  TokenizeOptions options;
  const auto encoded = row.tokenizer.Encode(row.text, row.second, options);
  REQUIRE_MESSAGE(encoded.ok(), encoded.status().message());
  const std::vector<int32_t> ids = Numbers(row.json.Find("ids"));
  CHECK(encoded->ids == ids);
  if (const JsonValue* tokens = row.json.Find("tokens")) {
    REQUIRE(tokens->size() == encoded->tokens.size());
    for (size_t i = 0; i < tokens->size(); ++i) {
      CHECK(encoded->tokens[i] == tokens->items()[i].as_string());
    }
  }
  std::vector<int32_t> types = Numbers(row.json.Find("type_ids"));
  types.resize(ids.size());
  CHECK(encoded->type_ids == types);
  const std::vector<int32_t> chars = Numbers(row.json.Find("chars"));
  CHECK(Flat(encoded->offsets) == chars);
  const JsonValue* bytes = row.json.Find("bytes");
  CHECK(Flat(encoded->byte_offsets) == (bytes != nullptr ? Numbers(bytes) : chars));
  if (const JsonValue* seq = row.json.Find("seq")) CHECK(encoded->sequence == Numbers(seq));
  TokenizeStats stats;
  CHECK(row.Append(options, &stats) == ids);
  CHECK(stats.full_tokens == ids.size());
  CHECK_FALSE(stats.truncated());
}

void CheckBare(const Row& row) {
  TokenizeOptions options;
  options.add_special_tokens = false;
  std::vector<int32_t> expected;
  if (const JsonValue* bare = row.json.Find("bare")) {
    expected = Numbers(bare);
  } else {
    const auto whole = row.tokenizer.Encode(row.text, row.second, {});
    for (size_t i = 0; i < whole->ids.size(); ++i) {
      if (whole->special[i] == 0) expected.push_back(whole->ids[i]);
    }
  }
  TokenizeStats stats;
  CHECK(row.Append(options, &stats) == expected);
  CHECK(row.tokenizer.Encode(row.text, row.second, options)->ids == expected);
}

void CheckTruncated(const Row& row, const JsonValue& truncate) {
  TokenizeOptions options;
  options.max_length = static_cast<size_t>(truncate.Find("max_length")->as_int());
  options.stride = static_cast<size_t>(truncate.Find("stride")->as_int());
  const auto encoded = row.tokenizer.Encode(row.text, row.second, options);
  if (truncate.Find("error") != nullptr) {
    CHECK_FALSE(encoded.ok());
    return;
  }
  REQUIRE_MESSAGE(encoded.ok(), encoded.status().message());
  CHECK(encoded->ids == Numbers(truncate.Find("ids")));
  const auto overflow = truncate.Find("overflow")->items();
  REQUIRE(encoded->overflow.size() == overflow.size());
  for (size_t i = 0; i < overflow.size(); ++i) {
    CHECK(encoded->overflow[i].ids == Numbers(&overflow[i]));
  }
  TokenizeStats stats;
  CHECK(row.Append(options, &stats) == encoded->ids);
  CHECK(stats.truncated() == (stats.full_tokens > options.max_length));
  CHECK(stats.full_tokens == Numbers(row.json.Find("ids")).size());
}

TEST_CASE("recorded rows of every kind") {
  for (const char* kind : kKinds) {
    INFO("kind: ", kind);
    auto tokenizer = Tokenizer::Load(DataPath(kind), nullptr);
    CHECK_MESSAGE(tokenizer.ok(), tokenizer.status().message());
    if (!tokenizer.ok()) continue;
    std::ifstream file(DataPath(std::string(kind) + ".jsonl"));
    TokenizeScratch scratch;
    std::string line;
    size_t rows = 0;
    for (; std::getline(file, line); ++rows) {
      INFO("row: ", rows, " ", line.substr(0, 300));
      const auto json = ParseJson(line, "row");
      REQUIRE(json.ok());
      const JsonValue* pair = (*json)->Find("pair");
      const std::string_view second = pair != nullptr ? pair->as_string() : std::string_view();
      const Row row{**tokenizer,
                    json->root(),
                    (*json)->Find("text")->as_string(),
                    second,
                    pair != nullptr ? &second : nullptr,
                    scratch};
      CheckWhole(row);
      CheckBare(row);
      if (const JsonValue* truncate = row.json.Find("truncate")) CheckTruncated(row, *truncate);
    }
    CHECK(rows > 100);
  }
}

void CheckWindow(const Encoding& encoding, const JsonValue& window) {
  CHECK(encoding.ids == Numbers(window.Find("ids")));
  CHECK(encoding.type_ids == Numbers(window.Find("type_ids")));
  CHECK(Flat(encoding.offsets) == Numbers(window.Find("chars")));
}

// data/tokenizers/make_overflow.py describes the rows.
TEST_CASE("recorded windows of texts that are cut, by every kind of post-processor") {
  std::ifstream file(DataPath("overflow.jsonl"));
  std::unique_ptr<Tokenizer> tokenizer;
  size_t rows = 0, cut = 0;
  for (std::string line; std::getline(file, line); ++rows) {
    INFO("row: ", rows, " ", line.substr(0, 2000));
    const auto json = ParseJson(line, "row").value();
    if (const JsonValue* definition = json->Find("tokenizer")) {
      tokenizer = Tokenizer::FromJson(definition->as_string(), "row").value();
    }
    TokenizeOptions options;
    options.add_special_tokens = json->Find("add_special_tokens")->as_bool();
    options.max_length = static_cast<size_t>(json->Find("max_length")->as_int());
    options.stride = static_cast<size_t>(json->Find("stride")->as_int());
    options.truncate_left = json->Find("direction")->as_string() == "left";
    const std::string_view strategy = json->Find("strategy")->as_string();
    if (strategy == "only_first") options.strategy = TruncationStrategy::kOnlyFirst;
    if (strategy == "only_second") options.strategy = TruncationStrategy::kOnlySecond;
    const JsonValue* pair = json->Find("pair");
    const std::string_view second = pair != nullptr ? pair->as_string() : std::string_view();
    const auto encoding = tokenizer->Encode(json->Find("text")->as_string(),
                                            pair != nullptr ? &second : nullptr, options);
    REQUIRE_MESSAGE(encoding.ok(), encoding.status().message());
    const auto windows = json->Find("windows")->items();
    REQUIRE(encoding->overflow.size() + 1 == windows.size());
    CheckWindow(*encoding, windows[0]);
    for (size_t i = 1; i < windows.size(); ++i) CheckWindow(encoding->overflow[i - 1], windows[i]);
    cut += windows.size() > 1;
  }
  CHECK(rows == 224);
  CHECK(cut > 150);
}

}  // namespace
}  // namespace pozor
