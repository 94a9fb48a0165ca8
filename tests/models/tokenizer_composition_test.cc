// Tokenizers put together at random, of every normaliser, pre-tokenizer, model and post-processor,
// against the PyPI package `tokenizers`. Skipped, and says so, where Python has no such package.
#include <doctest/doctest.h>

#include <iterator>
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
using testing::OneOf;

constexpr size_t kTokenizers = 150, kTexts = 20;

// A line is a command and its arguments in hexadecimal: "T json", "E text", "P text text". A file
// that the package refuses gives "none", a text it fails on "fails".
constexpr const char* kScript = R"(
import os, sys
os.environ["TOKENIZERS_PARALLELISM"] = "false"
from tokenizers import Tokenizer
for line in sys.stdin:
    command, *texts = line.split()
    texts = [bytes.fromhex(t[1:]).decode("utf-8") for t in texts]
    if command == "T":
        try:
            t = Tokenizer.from_str(texts[0])
            t.no_padding()
            t.no_truncation()
            print("ok")
        except BaseException:
            t = None
            print("none")
        continue
    try:
        e = t.encode(*texts)
        print(*e.ids, "|", *[x for o in e.offsets for x in o], "|", *e.type_ids, "|",
              *[token.encode("utf-8").hex() for token in e.tokens])
    except BaseException:
        print("fails")
)";

const char* const kPatterns[] = {
    R"({"String":" "})",
    R"({"String":"e"})",
    R"({"String":"ss"})",
    R"({"Regex":"\\s+"})",
    R"({"Regex":"\\d"})",
    R"({"Regex":"[aeiou]"})",
    R"({"Regex":"\\p{Han}+"})",
    R"({"Regex":"\\p{Hiragana}"})",
    R"({"Regex":"\\p{Lu}"})",
    R"({"Regex":"[\\p{P}\\p{S}]"})",
    R"({"Regex":"[\\W_]+"})",
    R"({"Regex":"[[:alpha:]]+"})",
    R"({"Regex":"[[:punct:]]"})",
    R"({"Regex":"\\p{Latin}+"})",
    R"({"Regex":"\\w+|[^\\w\\s]+"})",
    R"x({"Regex":"(?i:'s|'t|'re|'ve|'m|'ll|'d)"})x",
};

const char* const kNormalizers[] = {
    R"({"type":"NFC"})",
    R"({"type":"NFD"})",
    R"({"type":"NFKC"})",
    R"({"type":"NFKD"})",
    R"({"type":"Lowercase"})",
    R"({"type":"StripAccents"})",
    R"({"type":"Nmt"})",
    R"({"type":"ByteLevel"})",
    R"({"type":"Strip","strip_left":true,"strip_right":false})",
    R"({"type":"Strip","strip_left":true,"strip_right":true})",
    R"({"type":"Prepend","prepend":"\u2581"})",
    R"({"type":"Replace","pattern":PATTERN,"content":""})",
    R"({"type":"Replace","pattern":PATTERN,"content":"\u2581"})",
    R"({"type":"Replace","pattern":PATTERN,"content":"xy"})",
    R"({"type":"BertNormalizer","clean_text":FLAG,"handle_chinese_chars":FLAG,
        "strip_accents":FLAG,"lowercase":FLAG})",
};

const char* const kPreTokenizers[] = {
    R"({"type":"BertPreTokenizer"})",
    R"({"type":"Whitespace"})",
    R"({"type":"WhitespaceSplit"})",
    R"({"type":"UnicodeScripts"})",
    R"({"type":"Digits","individual_digits":FLAG})",
    R"({"type":"Punctuation","behavior":"BEHAVIOR"})",
    R"({"type":"Split","pattern":PATTERN,"behavior":"BEHAVIOR","invert":FLAG})",
    R"({"type":"ByteLevel","add_prefix_space":FLAG,"trim_offsets":FLAG,"use_regex":FLAG})",
    R"({"type":"Metaspace","replacement":"\u2581","prepend_scheme":"SCHEME","split":FLAG})",
    R"({"type":"CharDelimiterSplit","delimiter":"e"})",
    R"({"type":"FixedLength","length":3})",
};

const char* const kPostProcessors[] = {
    "null",
    R"({"type":"BertProcessing","sep":["</s>",1],"cls":["<s>",0]})",
    R"({"type":"RobertaProcessing","sep":["</s>",1],"cls":["<s>",0],"trim_offsets":FLAG,
        "add_prefix_space":FLAG})",
    R"({"type":"ByteLevel","add_prefix_space":FLAG,"trim_offsets":FLAG,"use_regex":true})",
    R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<s>","type_id":1}},
        {"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"B","type_id":1}},
        {"SpecialToken":{"id":"</s>","type_id":0}},{"Sequence":{"id":"A","type_id":2}}],
        "special_tokens":{"<s>":{"id":"<s>","ids":[0],"tokens":["<s>"]},
        "</s>":{"id":"</s>","ids":[1,0],"tokens":["</s>","<s>"]}}})",
};

const char* const kAdded[] = {
    "[MASK]", "guitar man", "guitar", "man",          "the", " the", "  ",
    "\u00E9", "\u0130",     "\uFB01", "\u65E5\u672C", "ing", "a",    "\u2581",
};

const char* const kModels[] = {"WordPiece", "WordLevel", "BPE", "Unigram"};

const char* Flag(Random& random) { return random.Index(2) == 0 ? "true" : "false"; }

void ReplaceAll(std::string& text, const std::string& name, Random& random,
                const char* (*value)(Random&)) {
  for (size_t at; (at = text.find(name)) != std::string::npos;) {
    text.replace(at, name.size(), value(random));
  }
}

// A row of a table with its blanks filled in.
template <class Table>
std::string Filled(const Table& table, Random& random) {
  std::string text = OneOf(table, random);
  ReplaceAll(text, "PATTERN", random, [](Random& r) { return OneOf(kPatterns, r); });
  ReplaceAll(text, "FLAG", random, Flag);
  ReplaceAll(text, "BEHAVIOR", random, [](Random& r) {
    static const char* const kBehaviors[] = {"Removed", "Isolated", "MergedWithPrevious",
                                             "MergedWithNext", "Contiguous"};
    return OneOf(kBehaviors, r);
  });
  ReplaceAll(text, "SCHEME", random, [](Random& r) {
    static const char* const kSchemes[] = {"always", "first", "never"};
    return OneOf(kSchemes, r);
  });
  return text;
}

// Up to three in a row.
template <class Table>
std::string Stack(const char* members, const Table& table, Random& random) {
  const size_t count = random.Index(4);
  if (count == 0) return "null";
  if (count == 1) return Filled(table, random);
  std::string out = std::string(R"({"type":"Sequence",")") + members + "\":[";
  for (size_t i = 0; i < count; ++i) out += (i > 0 ? "," : "") + Filled(table, random);
  return out + "]}";
}

// Letters, what stands for bytes, and some words; every model gets most of them.
std::vector<std::string> Pieces(const std::string& prefix, Random& random) {
  std::vector<std::string> pieces = {"<s>", "</s>", "<unk>"};
  const auto put = [&](const std::string& piece) {
    if (random.Index(20) > 0) pieces.push_back(piece);
  };
  for (char32_t c = 0x21; c < 0x144; ++c) {
    if (c == '"' || c == '\\' || (c > 0x7E && c < 0xA1) || c == 0xAD) continue;
    std::string letter;
    unicode::AppendUtf8(c, &letter);
    put(letter);
    if (!prefix.empty()) put(prefix + letter);
  }
  for (const char* word : {"\u2581", " ", "\u2581the", "\u0120the", "the", "man", "ing", "un", "  ",
                           "\u65E5", "\u3042", "\u0301", "e\u0301", "\u00DF", "guit"}) {
    put(word);
    if (!prefix.empty() && random.Index(2) == 0) pieces.push_back(prefix + word);
  }
  return pieces;
}

std::string Quoted(const std::string& text) { return "\"" + text + "\""; }

std::string UnigramVocabulary(std::vector<std::string> pieces, Random& random) {
  if (random.Index(4) == 0) pieces.push_back(pieces[5]);
  std::string out = "[";
  for (const std::string& piece : pieces) {
    out += (out.size() > 1 ? ",[" : "[") + Quoted(piece) + ",-" + std::to_string(random.Index(40)) +
           ".5]";
  }
  return out + "]";
}

std::string Vocabulary(const std::vector<std::string>& pieces) {
  std::string out = "{";
  for (size_t i = 0; i < pieces.size(); ++i) {
    out += (i > 0 ? "," : "") + Quoted(pieces[i]) + ":" + std::to_string(i);
  }
  return out + "}";
}

// Merges of two pieces that give a third.
std::string Merges(const std::vector<std::string>& pieces) {
  std::string out = "[";
  for (const std::string& whole : pieces) {
    for (const std::string& left : pieces) {
      if (left == whole || !whole.starts_with(left)) continue;
      const std::string right = whole.substr(left.size());
      for (const std::string& piece : pieces) {
        if (piece != right) continue;
        out += (out.size() > 1 ? ",[" : "[") + Quoted(left) + "," + Quoted(right) + "]";
      }
    }
  }
  return out + "]";
}

std::string Model(Random& random) {
  const std::string kind = OneOf(kModels, random);
  const std::string begin = R"({"type":")" + kind + "\",";
  if (kind == "WordPiece") {
    const std::string prefix = random.Index(3) == 0 ? "@" : "##";
    return begin + R"("unk_token":"<unk>","continuing_subword_prefix":")" + prefix +
           R"(","max_input_chars_per_word":)" + (random.Index(3) == 0 ? "4" : "100") +
           R"(,"vocab":)" + Vocabulary(Pieces(prefix, random)) + "}";
  }
  std::vector<std::string> pieces = Pieces("", random);
  if (kind == "WordLevel") {
    return begin + R"("unk_token":"<unk>","vocab":)" + Vocabulary(pieces) + "}";
  }
  const std::string fallback = Flag(random);
  if (fallback == "true") {
    for (int byte = 0; byte < 256; ++byte) {
      char token[8];
      std::snprintf(token, sizeof(token), "<0x%02X>", byte);
      pieces.emplace_back(token);
    }
  }
  if (kind == "Unigram") {
    return begin + R"("unk_id":2,"byte_fallback":)" + fallback + R"(,"vocab":)" +
           UnigramVocabulary(std::move(pieces), random) + "}";
  }
  return begin + R"("dropout":null,"unk_token":)" + (random.Index(3) == 0 ? "null" : "\"<unk>\"") +
         R"(,"continuing_subword_prefix":null,"end_of_word_suffix":null,"fuse_unk":)" +
         Flag(random) + R"(,"byte_fallback":)" + fallback + R"(,"ignore_merges":)" + Flag(random) +
         R"(,"merges":)" + Merges(pieces) + R"(,"vocab":)" + Vocabulary(pieces) + "}";
}

std::string Added(Random& random) {
  std::string out = "[";
  for (size_t n = random.Index(6); n > 0; --n) {
    out += std::string(out.size() > 1 ? "," : "") + R"({"id":999,"content":")" +
           OneOf(kAdded, random) + "\"";
    for (const char* key : {"single_word", "lstrip", "rstrip", "normalized", "special"}) {
      out += std::string(",\"") + key + "\":" + Flag(random);
    }
    out += "}";
  }
  return out + "]";
}

std::string Composition(Random& random) {
  std::string json = R"({"version":"1.0","added_tokens":)" + Added(random);
  json += R"(,"normalizer":)" + Stack("normalizers", kNormalizers, random);
  json += R"(,"pre_tokenizer":)" + Stack("pretokenizers", kPreTokenizers, random);
  json += R"(,"post_processor":)" + Filled(kPostProcessors, random);
  return json + R"(,"decoder":null,"model":)" + Model(random) + "}";
}

template <class Items, class Write>
void Join(const Items& items, std::string* out, Write&& write) {
  for (const auto& item : items) *out += write(item) + " ";
}

std::string Row(const Encoding& encoding) {
  std::string out;
  const auto number = [](int32_t value) { return std::to_string(value); };
  Join(encoding.ids, &out, number);
  out += "| ";
  Join(encoding.offsets, &out, [](const Span& span) {
    return std::to_string(span.begin) + " " + std::to_string(span.end);
  });
  out += "| ";
  Join(encoding.type_ids, &out, number);
  out += "| ";
  Join(encoding.tokens, &out, Hex);
  out.pop_back();
  return out;
}

std::string OneSpaced(const std::string& row) {
  std::string out;
  for (const char c : row) {
    if (c != ' ' || (!out.empty() && out.back() != ' ')) out += c;
  }
  while (out.ends_with(' ')) out.pop_back();
  return out;
}

struct Draw {
  std::string first, second;
  bool pair = false;
};

struct Drawn {
  std::string json;
  std::vector<Draw> texts;
};

TEST_CASE("tokenizers of any composition give what the package tokenizers gives") {
  if (!testing::HasTokenizersPackage()) {
    MESSAGE("SKIPPED: " << testing::Python() << " has no package tokenizers");
    return;
  }
  Random random(5);
  std::vector<Drawn> drawn(kTokenizers);
  testing::ProcessOptions options;
  for (Drawn& one : drawn) {
    one.json = Composition(random);
    options.input += "T x" + Hex(one.json) + "\n";
    for (size_t i = 0; i < kTexts; ++i) {
      Draw draw{testing::RandomText(random), testing::RandomText(random), random.Index(4) == 0};
      options.input += (draw.pair ? "P x" : "E x") + Hex(draw.first) +
                       (draw.pair ? " x" + Hex(draw.second) : "") + "\n";
      one.texts.push_back(std::move(draw));
    }
  }
  const auto peer = testing::RunProcess({testing::Python(), "-c", kScript}, options);
  REQUIRE_MESSAGE(peer.exit_code == 0, peer.errors);
  const std::vector<std::string> rows = testing::Lines(peer.output);
  REQUIRE(rows.size() == kTokenizers * (kTexts + 1));
  size_t row = 0, compared = 0;
  for (const Drawn& one : drawn) {
    const auto tokenizer = Tokenizer::FromJson(one.json, "composition");
    const bool known = rows[row++] == "ok";
    for (const Draw& draw : one.texts) {
      const std::string& wanted = rows[row++];
      if (!tokenizer.ok() || !known || wanted == "fails") continue;
      INFO("tokenizer: ", one.json.substr(0, one.json.find("\"vocab\"")));
      INFO("text: ", draw.first, " = ", Hex(draw.first), ", ", draw.pair ? Hex(draw.second) : "");
      const std::string_view second = draw.second;
      const auto encoded = (*tokenizer)->Encode(draw.first, draw.pair ? &second : nullptr, {});
      REQUIRE_MESSAGE(encoded.ok(), encoded.status().message());
      CHECK(OneSpaced(Row(*encoded)) == OneSpaced(wanted));
      ++compared;
    }
  }
  MESSAGE(compared << " texts compared");
  CHECK(compared > kTokenizers * kTexts / 2);
}

}  // namespace
}  // namespace pozor
