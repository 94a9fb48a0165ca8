// Random Unicode text through every kind of tokenizer, against the PyPI package `tokenizers`
// itself. Skipped, and says so, where Python ($POZOR_PYTHON, else python3) has no such package.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "models/text/tokenizer.h"
#include "models/text/unicode.h"
#include "tests/support/process.h"
#include "tests/support/random.h"

namespace pozor {
namespace {

constexpr size_t kTexts = 2000;

const char* const kKinds[] = {
    "wp-uncased", "wp-cased",      "wp-cased-strip", "wp-lower-keep",  "wp-mpnet",
    "minilm",     "wordlevel",     "bpe-gpt2",       "bpe-modernbert", "bpe-prefix",
    "bpe-qwen",   "bpe-roberta",   "sp-gemma",       "sp-llama",       "uni-albert",
    "uni-t5",     "uni-camembert", "uni-deberta",    "uni-xlmr",
};

// Reads texts in hexadecimal, a line each; prints ids, code point offsets and the text that the
// decoder makes of the ids, in hexadecimal.
constexpr const char* kScript = R"(
import os, sys
os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer
t = Tokenizer.from_file(sys.argv[1])
t.no_padding()
t.no_truncation()
for line in sys.stdin:
    e = t.encode(bytes.fromhex(line.strip()).decode("utf-8"))
    print(*e.ids, "|", *[x for o in e.offsets for x in o], "|", t.decode(e.ids).encode("utf-8").hex())
)";

using test::Random;

template <class Table>
const auto& OneOf(const Table& table, Random& random) {
  return table[random.Index(std::size(table))];
}

// Blocks where something happens: scripts, marks, forms, planes.
const std::pair<char32_t, char32_t> kBlocks[] = {
    {0x20, 0x7E},     {0x20, 0x7E},     {0x20, 0x7E},       {0xA0, 0xFF},       {0x100, 0x24F},
    {0x300, 0x36F},   {0x370, 0x3FF},   {0x400, 0x4FF},     {0x590, 0x5FF},     {0x600, 0x6FF},
    {0x900, 0x97F},   {0xA80, 0xBFF},   {0xD00, 0xDFF},     {0xE00, 0xE7F},     {0x1000, 0x109F},
    {0x1100, 0x11FF}, {0x1E00, 0x1FFF}, {0x2000, 0x206F},   {0x20A0, 0x214F},   {0x2150, 0x218F},
    {0x2460, 0x24FF}, {0x3000, 0x30FF}, {0x4E00, 0x4FFF},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE00, 0xFE0F}, {0xFF00, 0xFFEF}, {0x1D100, 0x1D4FF}, {0x1F1E0, 0x1F6FF}, {0x20000, 0x2CEAF},
    {0, 0xFFFF},      {0, 0x10FFFF},
};

const char* const kWords[] = {
    "the",
    "guitar",
    "man",
    "playing",
    "don't",
    "I'M",
    "He'LL",
    "12,345.67",
    "[MASK]",
    "[CLS]",
    "<mask>",
    "</s>",
    "<s>",
    "<LEFT>",
    "<both>",
    "<RIGHT>",
    "guitar man",
    "running",
    "snake_case",
    "##ing",
    "http://a.b/c?d=e",
    "``quoted''",
    "\u00C5ngstr\u00F6m",
    "caf\u00E9",
    "\uFB01ne",
    "\u201Cq\u201D",
    "<|endoftext|>",
};

const char* const kOdd[] = {
    "\x01",
    "\x07",
    "\x0B",
    "\x0C",
    "\x1C",
    "\x7F",
    "\u0085",
    "\u00A0",
    "\u00AD",
    "\u0300",
    "\u0345",
    "\u034F",
    "\u1680",
    "\u180E",
    "\u200B",
    "\u200C",
    "\u200D",
    "\u2028",
    "\u202F",
    "\u2581",
    "\u3000",
    "\uFE0F",
    "\uFEFF",
    "\uFFFD",
    "\u0130",
    "\u1E9E",
    "\u03A3",
    "\r\n",
    "\n\n",
    "\t",
    " ",
    "  ",
    "   ",
    "'\u017F",
    "\u0915\u094D\u0937",
    "e\u0301",
    "\u0344",
    "\U0001F469\u200D\U0001F467",
    "\U0001F1E8\U0001F1FF",
};

const char* const kBetween[] = {" ", " ", "", "", "\n", "  ", "\t"};

std::string RandomRun(Random& random) {
  std::string out;
  const bool mixed = random.Index(3) > 0;
  auto block = OneOf(kBlocks, random);
  for (size_t n = 1 + random.Index(7); n > 0; --n) {
    if (mixed) block = OneOf(kBlocks, random);
    const auto c =
        static_cast<char32_t>(block.first + random.Index(block.second - block.first + 1));
    if (c < 0xD800 || c > 0xDFFF) unicode::AppendUtf8(c, &out);
  }
  return out;
}

std::string RandomText(Random& random) {
  const char* const between = OneOf(kBetween, random);
  std::string out = random.Index(8) == 0 ? OneOf(kOdd, random) : "";
  for (size_t n = 1 + random.Index(7); n > 0; --n) {
    const size_t kind = random.Index(10);
    out += kind < 3 ? OneOf(kWords, random) : kind < 5 ? OneOf(kOdd, random) : RandomRun(random);
    if (n > 1) out += between;
  }
  return out;
}

std::string Hex(const std::string& text) {
  std::string out;
  char digits[3];
  for (const char c : text) {
    std::snprintf(digits, sizeof(digits), "%02x", static_cast<unsigned>(static_cast<uint8_t>(c)));
    out += digits;
  }
  return out;
}

std::string Row(const Tokenizer& tokenizer, const std::string& text) {
  const auto encoded = tokenizer.Encode(text, nullptr, {});
  if (!encoded.ok()) return encoded.status().message();
  std::string out;
  for (const int32_t id : encoded->ids) out += std::to_string(id) + " ";
  out += "|";
  for (const Span& span : encoded->offsets) {
    out += " " + std::to_string(span.begin) + " " + std::to_string(span.end);
  }
  return out + " | " + Hex(tokenizer.Decode(encoded->ids, true));
}

std::string Python() {
  const char* named = std::getenv("POZOR_PYTHON");
  return named != nullptr && *named != '\0' ? named : "python3";
}

TEST_CASE("random text gives what the package tokenizers gives") {
  if (testing::RunProcess({Python(), "-c", "import tokenizers"}).exit_code != 0) {
    MESSAGE("SKIPPED: " << Python() << " has no package tokenizers");
    return;
  }
  for (const char* kind : kKinds) {
    INFO("kind: ", std::string(kind));
    const std::string folder = std::string(POZOR_TEST_DATA) + "/tokenizers/" + kind;
    const auto tokenizer = Tokenizer::Load(folder, nullptr);
    REQUIRE_MESSAGE(tokenizer.ok(), tokenizer.status().message());
    Random random(11);
    std::vector<std::string> texts(kTexts);
    testing::ProcessOptions options;
    for (std::string& text : texts) {
      text = RandomText(random);
      options.input += Hex(text) + "\n";
    }
    const auto peer =
        testing::RunProcess({Python(), "-c", kScript, folder + "/tokenizer.json"}, options);
    REQUIRE_MESSAGE(peer.exit_code == 0, peer.errors);
    const std::vector<std::string> rows = testing::Lines(peer.output);
    REQUIRE(rows.size() == kTexts);
    TokenizeScratch scratch;
    std::vector<int32_t> ids, types;
    for (size_t i = 0; i < kTexts; ++i) {
      INFO("text: ", texts[i], " = ", Hex(texts[i]));
      CHECK(Row(**tokenizer, texts[i]) == rows[i]);
      ids.clear();
      types.clear();
      REQUIRE((*tokenizer)->Append(texts[i], nullptr, {}, scratch, &ids, &types).ok());
      CHECK(ids == (*tokenizer)->Encode(texts[i], nullptr, {})->ids);
    }
  }
}

}  // namespace
}  // namespace pozor
