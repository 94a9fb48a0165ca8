// Random Unicode text through every kind of tokenizer, against the PyPI package `tokenizers`
// itself. Skipped, and says so, where Python ($POZOR_PYTHON, else python3) has no such package.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "models/text/tokenizer.h"
#include "tests/models/peer_texts.h"
#include "tests/support/process.h"
#include "tests/support/random.h"

namespace pozor {
namespace {

using test::Random;
using testing::Hex;
using testing::Python;
using testing::RandomText;

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

TEST_CASE("random text gives what the package tokenizers gives") {
  if (!testing::HasTokenizersPackage()) {
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
