// Behaviour of tokenizers beyond the recorded rows: added tokens, special tokens typed as text,
// configuration that contradicts, truncation, hostile files and texts.
#include "models/text/tokenizer.h"

#include <doctest/doctest.h>

#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "models/json.h"
#include "tests/support/cpu_time.h"
#include "tests/support/process.h"

namespace pozor {
namespace {

std::string DataPath(const std::string& name) {
  return std::string(POZOR_TEST_DATA) + "/tokenizers/" + name;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::unique_ptr<Tokenizer> LoadKind(const std::string& name) {
  auto tokenizer = Tokenizer::Load(DataPath(name), nullptr);
  REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.status().message());
  return std::move(tokenizer).value();
}

std::vector<int32_t> AppendIds(const Tokenizer& tokenizer, std::string_view text,
                               const TokenizeOptions& options = {}) {
  TokenizeScratch scratch;
  std::vector<int32_t> ids, types;
  const auto stats = tokenizer.Append(text, nullptr, options, scratch, &ids, &types);
  REQUIRE_MESSAGE(stats.ok(), stats.status().message());
  return ids;
}

// The same by both ways.
std::vector<int32_t> Ids(const Tokenizer& tokenizer, std::string_view text,
                         const TokenizeOptions& options = {}) {
  const auto encoded = tokenizer.Encode(text, nullptr, options);
  REQUIRE_MESSAGE(encoded.ok(), encoded.status().message());
  CHECK(AppendIds(tokenizer, text, options) == encoded->ids);
  return encoded->ids;
}

std::vector<int32_t> Numbers(const JsonValue& list) {
  std::vector<int32_t> out;
  for (const JsonValue& item : list.items()) out.push_back(static_cast<int32_t>(item.as_int()));
  return out;
}

// Rows {text, ids, offsets_chars} of an expected.json.
void CheckRows(const Tokenizer& tokenizer, const JsonValue& rows,
               const TokenizeOptions& options = {}) {
  REQUIRE(rows.is_array());
  for (const JsonValue& row : rows.items()) {
    const std::string_view text = row.Find("text")->as_string();
    INFO("text: ", std::string(text));
    CHECK(Ids(tokenizer, text, options) == Numbers(*row.Find("ids")));
    const JsonValue* offsets = row.Find("offsets_chars");
    if (offsets == nullptr) continue;
    const auto encoded = tokenizer.Encode(text, nullptr, options);
    REQUIRE(offsets->size() == encoded->offsets.size());
    for (size_t i = 0; i < offsets->size(); ++i) {
      CHECK(offsets->items()[i].items()[0].as_int() == encoded->offsets[i].begin);
      CHECK(offsets->items()[i].items()[1].as_int() == encoded->offsets[i].end);
    }
  }
}

JsonDocument Expected(const std::string& folder) {
  auto document = ParseJson(ReadFile(DataPath("cases/" + folder + "/expected.json")), folder);
  REQUIRE_MESSAGE(document.ok(), document.status().message());
  return *document;
}

// The list of rows in a document that is one or holds one.
const JsonValue& Rows(const JsonDocument& document) {
  if (document->is_array()) return document.root();
  for (const JsonMember& member : document->members()) {
    if (member.value.is_array()) return member.value;
  }
  return document.root();
}

TEST_CASE("of added tokens the longest at a place counts, whatever their order") {
  for (const char* folder : {"P01/short_first", "P01/long_first"}) {
    INFO("folder: ", std::string(folder));
    const auto tokenizer = LoadKind(std::string("cases/") + folder);
    CheckRows(*tokenizer, Rows(Expected(folder)));
  }
}

TEST_CASE("line breaks and tabs part words, control characters do not") {
  CheckRows(*LoadKind("minilm"), Rows(Expected("P05")));
}

TEST_CASE("special tokens typed by the user") {
  const auto tokenizer = LoadKind("minilm");
  const JsonDocument expected = Expected("P06");
  CheckRows(*tokenizer, *expected->Find("default"));
  TokenizeOptions options;
  options.plain_specials = true;
  CheckRows(*tokenizer, *expected->Find("specials_as_plain_text"), options);
}

TEST_CASE("merges as strings and as pairs, pieces with a space") {
  for (const char* folder : {"P08/string_merges", "P08/pair_merges", "P08/pair_with_space"}) {
    INFO("folder: ", std::string(folder));
    CheckRows(*LoadKind(std::string("cases/") + folder), Rows(Expected(folder)));
  }
}

TEST_CASE("tokenizer.json decides, and a warning names the key that is ignored") {
  std::vector<std::string> warnings;
  const auto tokenizer = Tokenizer::Load(DataPath("cases/P10"), &warnings);
  REQUIRE(tokenizer.ok());
  CHECK(Ids(**tokenizer, "the small green boat") == std::vector<int32_t>{2, 73, 84, 85, 86});
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("add_eos_token") != std::string::npos);
  CHECK((*tokenizer)->model_max_length() == 64);
}

// A copy of a kind's tokenizer.json beside another configuration.
std::unique_ptr<Tokenizer> WithConfig(const std::string& kind, const std::string& config) {
  const testing::TemporaryFolder folder;
  folder.Write("tokenizer.json", ReadFile(DataPath(kind + "/tokenizer.json")));
  folder.Write("tokenizer_config.json", config);
  auto tokenizer = Tokenizer::Load(folder.path(), nullptr);
  REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.status().message());
  return std::move(tokenizer).value();
}

TEST_CASE("classes that follow their own configuration, as in transformers") {
  const std::string text = "The MAN plays \xC3\x89tude";
  const auto cased = Ids(*LoadKind("wp-cased"), text);
  const auto plain = WithConfig(
      "wp-cased", R"({"tokenizer_class": "PreTrainedTokenizerFast", "do_lower_case": true})");
  CHECK(Ids(*plain, text) == cased);
  const auto bert =
      WithConfig("wp-cased", R"({"tokenizer_class": "BertTokenizer", "do_lower_case": true})");
  CHECK(Ids(*bert, text) == Ids(*bert, "the man plays etude"));
  CHECK(Ids(*bert, text) != cased);
  const auto keep =
      WithConfig("wp-cased", R"({"tokenizer_class": "BertTokenizerFast", "do_lower_case": false})");
  CHECK(Ids(*keep, text) == cased);
  const auto roberta = WithConfig(
      "bpe-roberta", R"({"tokenizer_class": "RobertaTokenizer", "add_prefix_space": true})");
  CHECK(Ids(*roberta, "man") == Ids(*roberta, " man"));
  const auto json = WithConfig(
      "bpe-roberta", R"({"tokenizer_class": "PreTrainedTokenizerFast", "add_prefix_space": true})");
  CHECK(Ids(*json, "man") != Ids(*json, " man"));
}

// What a folder with some of the older files gives for a text.
std::string OlderIds(const char* kind, const std::vector<std::string>& files,
                     const std::string& config, const std::string& model_type,
                     const std::string& text, const std::string& added = "") {
  const testing::TemporaryFolder folder;
  for (const std::string& file : files) {
    folder.Write(file, ReadFile(DataPath(std::string(kind) + "/" + file)));
  }
  if (!config.empty()) folder.Write("tokenizer_config.json", config);
  if (!added.empty()) folder.Write("added_tokens.json", added);
  folder.Write("config.json", R"({"model_type":")" + model_type + "\"}");
  const auto tokenizer = Tokenizer::Load(folder.path(), nullptr);
  if (!tokenizer.ok()) return tokenizer.status().message();
  std::string out;
  for (const int32_t id : Ids(**tokenizer, text)) out += std::to_string(id) + " ";
  return out;
}

// The classes of transformers have special tokens that no file needs to name.
TEST_CASE("older files that name no special tokens have those of their class") {
  const std::vector<std::string> words = {"vocab.txt"}, merges = {"vocab.json", "merges.txt"};
  const auto bert = [&](const std::string& config) {
    return OlderIds("wp-uncased", words, config, "bert", "a [SEP] b [MASK]");
  };
  CHECK(bert("") == "2 38 3 39 4 3 ");
  CHECK(bert(R"({"tokenizer_class":"BertTokenizerFast"})") == bert(""));
  CHECK(bert(R"({"cls_token":"[SEP]","sep_token":"[CLS]"})") == "3 38 3 39 4 2 ");
  const auto roberta = [&](const std::string& config, const std::string& type) {
    return OlderIds("bpe-roberta", merges, config, type, "a</s>b");
  };
  CHECK(roberta("", "roberta") == "0 68 2 69 2 ");
  CHECK(roberta(R"({"tokenizer_class":"RobertaTokenizer"})", "") == "0 68 2 69 2 ");
  CHECK(roberta(R"({"model_max_length":512})", "longformer") == "0 68 2 69 2 ");
  CHECK(OlderIds("bpe-gpt2", merges, "", "deberta", "a [MASK]") == "599 64 603 600 ");
  // Tokens that the vocabulary lacks get the ids behind it.
  CHECK(OlderIds("bpe-gpt2", merges, "", "gpt2", "<|endoftext|>") == "599 ");
  CHECK(OlderIds("bpe-gpt2", merges, R"({"additional_special_tokens":["q1"]})", "gpt2", "q1") ==
        "600 ");
  CHECK(OlderIds("wp-uncased", words, "", "bert", "q1", R"({"q1":600})") == "2 600 3 ");
  CHECK(OlderIds("wp-uncased", words, "", "bert", "q1", R"({"q1":700})").find("700") !=
        std::string::npos);
  CHECK(OlderIds("bpe-gpt2", merges, R"({"add_bos_token":true})", "gpt2", "a")
            .find("add_bos_token") != std::string::npos);
}

TEST_CASE("folders with the older files alone") {
  struct Older {
    const char* kind;
    std::vector<const char*> files;
  };
  const Older kinds[] = {{"wp-uncased", {"vocab.txt", "tokenizer_config.json"}},
                         {"wp-cased", {"vocab.txt", "tokenizer_config.json"}},
                         {"wp-cased-strip", {"vocab.txt", "tokenizer_config.json"}},
                         {"wp-mpnet", {"vocab.txt", "tokenizer_config.json"}},
                         {"bpe-gpt2", {"vocab.json", "merges.txt", "tokenizer_config.json"}},
                         {"bpe-roberta", {"vocab.json", "merges.txt", "tokenizer_config.json"}},
                         {"bpe-prefix", {"vocab.json", "merges.txt", "tokenizer_config.json"}}};
  for (const Older& older : kinds) {
    INFO("kind: ", std::string(older.kind));
    const testing::TemporaryFolder folder;
    for (const char* file : older.files) {
      folder.Write(file, ReadFile(DataPath(std::string(older.kind) + "/" + file)));
    }
    const auto tokenizer = Tokenizer::Load(folder.path(), nullptr);
    REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.status().message());
    std::ifstream rows(DataPath(std::string(older.kind) + ".jsonl"));
    for (std::string line; std::getline(rows, line);) {
      const auto row = ParseJson(line, "row");
      REQUIRE(row.ok());
      if ((*row)->Find("pair") != nullptr) continue;
      const std::string_view text = (*row)->Find("text")->as_string();
      INFO("text: ", std::string(text));
      CHECK(Ids(**tokenizer, text) == Numbers(*(*row)->Find("ids")));
    }
  }
  const testing::TemporaryFolder empty;
  const auto missing = Tokenizer::Load(empty.path(), nullptr);
  REQUIRE_FALSE(missing.ok());
  CHECK(missing.status().message().find("tokenizer.json") != std::string::npos);
}

TEST_CASE("SentencePiece models alone") {
  // Such a model drops white space at the ends of a text, tokenizer.json may keep it.
  const std::pair<const char*, const char*> kinds[] = {{"uni-camembert", "sentencepiece.bpe.model"},
                                                       {"uni-deberta", "spm.model"}};
  for (const auto& [kind, file] : kinds) {
    INFO("kind: ", std::string(kind));
    const testing::TemporaryFolder folder;
    folder.Write(file, ReadFile(DataPath(std::string(kind) + "/" + file)));
    const std::string config = std::string(kind) == "uni-camembert"
                                   ? R"({"tokenizer_class": "CamembertTokenizer"})"
                                   : R"({"tokenizer_class": "DebertaV2Tokenizer"})";
    folder.Write("tokenizer_config.json", config);
    const auto tokenizer = Tokenizer::Load(folder.path(), nullptr);
    REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.status().message());
    const auto whole = LoadKind(kind);
    for (const char* text : {"", "A man is playing the guitar.", "two  spaces, \xEF\xAC\x81ne",
                             "\xC3\x89tude \xE4\xB8\xAD unbelievable 12.5"}) {
      INFO("text: ", std::string(text));
      CHECK(Ids(**tokenizer, text) == Ids(*whole, text));
    }
  }
  for (size_t size : {0u, 1u, 3u, 100u, 5000u}) {
    const testing::TemporaryFolder folder;
    const std::string model = ReadFile(DataPath("uni-t5/spiece.model"));
    folder.Write("spiece.model", model.substr(0, size));
    const auto cut = Tokenizer::Load(folder.path(), nullptr);
    REQUIRE_FALSE(cut.ok());
    CHECK(cut.status().message().find("spiece.model") != std::string::npos);
  }
}

TEST_CASE("what a tokenizer says of itself") {
  const auto tokenizer = LoadKind("minilm");
  CHECK(tokenizer->kind() == "WordPiece");
  CHECK(tokenizer->vocab_size() == 30522);
  CHECK(tokenizer->special_count(false) == 2);
  CHECK(tokenizer->special_count(true) == 3);
  CHECK(tokenizer->TokenToId("[MASK]") == 103);
  CHECK(tokenizer->TokenToId("no such token") == -1);
  CHECK(tokenizer->IdToToken(7592) == "hello");
  CHECK(tokenizer->IdToToken(30522).empty());
  CHECK(tokenizer->IdToToken(-1).empty());
  CHECK(tokenizer->IsSpecialId(101));
  CHECK_FALSE(tokenizer->IsSpecialId(7592));
  CHECK(LoadKind("bpe-gpt2")->kind() == "BPE");
  CHECK(LoadKind("uni-t5")->kind() == "Unigram");
}

TEST_CASE("tokens back to text") {
  const auto bert = LoadKind("minilm");
  const std::vector<int32_t> ids = Ids(*bert, "Hello, world! The tokenization.");
  CHECK(bert->Decode(ids, true) == "hello, world! the tokenization.");
  CHECK(bert->Decode(ids, false) == "[CLS] hello, world! the tokenization. [SEP]");
  CHECK(bert->Decode({}, true).empty());
  const std::string text = "Caf\xC3\xA9 \xE4\xB8\xAD\xF0\x9F\x98\x80 12";
  for (const char* kind : {"bpe-gpt2", "bpe-roberta", "bpe-modernbert", "sp-llama"}) {
    INFO("kind: ", std::string(kind));
    const auto tokenizer = LoadKind(kind);
    CHECK(tokenizer->Decode(Ids(*tokenizer, text), true) == text);
  }
  // Half a character.
  const auto gpt2 = LoadKind("bpe-gpt2");
  const std::vector<int32_t> bytes = Ids(*gpt2, "\xF0\x9F\x98\x80");
  REQUIRE(bytes.size() > 1);
  CHECK(gpt2->Decode(std::span(bytes).first(1), true) == "\xEF\xBF\xBD");
}

TEST_CASE("forced lower case") {
  const auto tokenizer = LoadKind("wp-cased");
  const std::vector<int32_t> lower = Ids(*tokenizer, "a man plays guitar \xC3\xA9t\xC3\xA9");
  CHECK(Ids(*tokenizer, "A MAN Plays guitar \xC3\x89T\xC3\x89") != lower);
  tokenizer->ForceLowercase();
  CHECK(Ids(*tokenizer, "A MAN Plays guitar \xC3\x89T\xC3\x89") == lower);
}

TEST_CASE("a scratch goes from one tokenizer to another") {
  const auto first = LoadKind("wp-cased");
  const auto second = LoadKind("wp-uncased");
  TokenizeScratch scratch;
  for (const Tokenizer* tokenizer : {first.get(), second.get(), first.get()}) {
    std::vector<int32_t> ids, types;
    REQUIRE(tokenizer->Append("A man plays", nullptr, {}, scratch, &ids, &types).ok());
    CHECK(ids == tokenizer->Encode("A man plays", nullptr, {})->ids);
  }
}

TEST_CASE("truncation from the left and of one text only") {
  const auto tokenizer = LoadKind("minilm");
  TokenizeOptions options;
  options.max_length = 5;
  options.truncate_left = true;
  // cls one two three four five sep
  CHECK(Ids(*tokenizer, "one two three four five", options) ==
        std::vector<int32_t>{101, 2093, 2176, 2274, 102});
  options.truncate_left = false;
  CHECK(Ids(*tokenizer, "one two three four five", options) ==
        std::vector<int32_t>{101, 2028, 2048, 2093, 102});
  const std::string_view pair = "one two";
  options.max_length = 8;
  options.strategy = TruncationStrategy::kOnlyFirst;
  const auto cut = tokenizer->Encode("one two three four five", &pair, options);
  REQUIRE(cut.ok());
  CHECK(cut->ids == std::vector<int32_t>{101, 2028, 2048, 2093, 102, 2028, 2048, 102});
  CHECK(cut->type_ids == std::vector<int32_t>{0, 0, 0, 0, 0, 1, 1, 1});
  CHECK(cut->overflow.size() == 1);
  options.strategy = TruncationStrategy::kOnlySecond;
  const auto refused = tokenizer->Encode("one two three four five", &pair, options);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().message().find("truncation") == 0);
  options.max_length = 2;
  CHECK_FALSE(tokenizer->Encode("one", &pair, options).ok());
}

TEST_CASE("invalid UTF-8 is an error that names the byte") {
  const std::pair<const char*, const char*> texts[] = {
      {"abc \xFF def", "byte 4 "},
      {"a long enough ascii text before it \xC3(", "byte 35 "},
      {"\xC0\x80", "byte 0 "},
      {"\xED\xA0\x80", "byte 0 "},
      {"\xF5\x80\x80\x80", "byte 0 "},
      {"cut \xE4\xB8", "byte 4 "},
      {"\xE4\xB8\xAD\xE4\xB8\xAD x\x80", "byte 8 "},
  };
  for (const char* kind : {"minilm", "wp-lower-keep", "bpe-qwen", "uni-xlmr", "wordlevel"}) {
    const auto tokenizer = LoadKind(kind);
    TokenizeScratch scratch;
    for (const auto& [text, place] : texts) {
      INFO("kind: ", std::string(kind), " text: ", std::string(text));
      std::vector<int32_t> ids, types;
      const auto fast = tokenizer->Append(text, nullptr, {}, scratch, &ids, &types);
      REQUIRE_FALSE(fast.ok());
      CHECK(ids.empty());
      CHECK(fast.status().message().find(place) != std::string::npos);
      const auto full = tokenizer->Encode(text, nullptr, {});
      REQUIRE_FALSE(full.ok());
      CHECK(full.status().message() == fast.status().message());
    }
  }
}

TEST_CASE("long texts take time in proportion") {
  struct Case {
    const char* name;
    std::string unit;
  };
  const Case cases[] = {{"one letter", "a"},     {"words", "some words in a row "},
                        {"CJK", "\xE4\xB8\xAD"}, {"marks", "\xCC\x81"},
                        {"punctuation", "!?"},   {"spaces", " "}};
  for (const char* kind : {"minilm", "wp-lower-keep", "bpe-gpt2", "bpe-qwen", "sp-llama",
                           "uni-xlmr", "uni-deberta", "wordlevel"}) {
    const auto tokenizer = LoadKind(kind);
    for (const Case& c : cases) {
      INFO("kind: ", std::string(kind), " text: ", std::string(c.name));
      std::string text;
      while (text.size() < (size_t{1} << 20)) text += c.unit;
      const test::CpuStopwatch watch;
      CHECK_FALSE(AppendIds(*tokenizer, text).empty());
      // A quadratic step takes hours on a megabyte.
      CHECK(watch.Seconds() < test::kFewCpuSeconds);
    }
  }
}

struct Malformed {
  const char* file;
  const char* names;  // what the message must hold; null: it loads, and takes any text
};

const Malformed kMalformed[] = {
    {"truncated", "JSON"},
    {"empty", "JSON"},
    {"array", "object"},
    {"non-utf8", "UTF-8"},
    {"lone-surrogate", "string"},
    {"version", "9.0"},
    {"no-model", "model"},
    {"unknown-model", "NeuralPiece"},
    {"unknown-normalizer", "Magic"},
    {"unknown-pre-tokenizer", "Magic"},
    {"nested-sequence", "nested"},
    {"unk-missing", "[NOPE]"},
    {"id-negative", "the id of x"},
    {"id-huge", "the id of x"},
    {"id-string", "the id of x"},
    {"id-hole", "the id of x"},
    {"id-duplicate", nullptr},
    {"vocab-array", "vocab"},
    {"max-chars-negative", "max_input_chars_per_word"},
    {"template-unknown-special", "[CLS]"},
    {"template-sequence-c", "\"C\""},
    {"template-id-outside", "123456789"},
    {"bpe-merge-missing", "merge a b"},
    {"bpe-merge-three", "a b c"},
    {"bpe-dropout", "0.5"},
    {"unigram-unk-outside", "77"},
    {"unigram-nan", "JSON"},
    {"unigram-empty", "empty"},
    {"charsmap-not-base64", "base64"},
    {"charsmap-size-lies", "precompiled_charsmap"},
    {"charsmap-empty", "too short"},
    {"charsmap-cycle", nullptr},
    {"regex-broken", "regular expression"},
    {"replace-empty", "empty"},
    {"prepend-empty", "empty"},
    {"added-vanishes", "the normalizer removes all of it"},
    {"added-same-form", "the same of it as of \"Ab\""},
    {"added-twice", "stands there twice"},
    {"added-huge-id", "[PAD]"},
    {"added-empty", nullptr},
    {"truncation-stride", nullptr},
    {"padding-huge", nullptr},
};

// The package counts equal pieces of a Unigram model, and goes on after the highest id there is.
TEST_CASE("ids of added tokens begin behind the model's") {
  const auto id = [](const std::string& model, const std::string& before) {
    const std::string json = R"({"version":"1.0","added_tokens":[)" + before +
                             R"({"id":0,"content":"new"}],"model":)" + model + "}";
    const auto tokenizer = Tokenizer::FromJson(json, "test");
    REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.status().message());
    return (*tokenizer)->TokenToId("new");
  };
  const std::string level = R"({"type":"WordLevel","unk_token":"u","vocab":{"u":0,"b":1,"z":9}})";
  CHECK(id(level, "") == 3);
  CHECK(id(level, R"({"id":1,"content":"b"},)") == 3);
  CHECK(id(level, R"({"id":9,"content":"z"},)") == 10);
  CHECK(id(level, R"({"id":9,"content":"z"},{"id":0,"content":"other"},)") == 11);
  CHECK(id(R"({"type":"Unigram","unk_id":0,"vocab":[["u",0],["b",-1],["b",-2]]})", "") == 3);
}

TEST_CASE("malformed files are refused by name") {
  for (const Malformed& item : kMalformed) {
    INFO("file: ", std::string(item.file));
    const std::string name = std::string(item.file) + ".json";
    const auto tokenizer = Tokenizer::FromJson(ReadFile(DataPath("malformed/" + name)), name);
    if (item.names != nullptr) {
      REQUIRE_FALSE(tokenizer.ok());
      const std::string& message = tokenizer.status().message();
      INFO("message: ", message);
      CHECK(message.find(item.names) != std::string::npos);
      CHECK(message.find("; ") != std::string::npos);
      CHECK(message.find('\n') == std::string::npos);
    } else {
      REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.status().message());
      CHECK_FALSE(Ids(**tokenizer, "x \xE2\x82\xAC aaa! \x01").empty());
    }
  }
}

TEST_CASE("an expression that backtracks without end is given up") {
  const std::string json = ReadFile(DataPath("malformed/regex-backtracking.json"));
  const auto tokenizer = Tokenizer::FromJson(json, "regex-backtracking.json");
  if (!tokenizer.ok()) return;
  const std::string text = std::string(40, 'a') + "!";
  const auto encoded = (*tokenizer)->Encode(text, nullptr, {});
  REQUIRE_FALSE(encoded.ok());
  CHECK(encoded.status().message().find("regular expression") != std::string::npos);
}

}  // namespace
}  // namespace pozor
