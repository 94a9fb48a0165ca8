// The model of a tokenizer: from words to tokens.
#ifndef POZOR_MODELS_TEXT_TOKEN_MODEL_H_
#define POZOR_MODELS_TEXT_TOKEN_MODEL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/json.h"
#include "models/text/vocabulary.h"

namespace pozor {

// A token and the bytes of the word that it covers.
struct ModelToken {
  int32_t id;
  uint32_t begin, end;
  bool surface = false;  // its text is what it covers, not the token's name
};

// Working memory of one thread for one call.
struct ModelScratch {
  std::vector<ModelToken> tokens;
  std::vector<uint64_t> hashes;

  // BPE: symbols of the word as a linked list, the queue of merges.
  struct Symbol {
    int32_t id;
    int32_t previous, next;
    uint32_t size;  // bytes; 0: merged away
  };
  struct Merge {
    uint32_t rank;
    int32_t position;
    int32_t product;
  };
  std::vector<Symbol> symbols;
  std::vector<Merge> queue;

  // Unigram: the best way to each byte.
  struct Step {
    double score;
    int32_t id;
    uint32_t begin;
  };
  std::vector<Step> steps;
};

class TokenModel {
 public:
  virtual ~TokenModel() = default;

  // Appends the tokens of a word (not empty, valid UTF-8) to scratch.tokens. False if the word has
  // a part that is unknown and the model has no token for that.
  virtual bool Tokenize(std::string_view word, ModelScratch& scratch) const = 0;

  // The length of a first part of a word that has the same tokens whether what follows is there or
  // not, and whose end does not change the tokens of what follows: the whole word, if in doubt.
  virtual size_t IndependentPart(std::string_view word) const { return word.size(); }

  virtual const Vocabulary& vocabulary() const = 0;
  // How many tokens there are, as Hugging Face counts them: ids of added tokens begin there.
  virtual size_t entries() const { return vocabulary().count(); }
  virtual const std::string& kind() const = 0;  // as tokenizer.json calls it
  // The name of the token for unknown text, for messages.
  virtual std::string unknown() const = 0;
  // Whether the words are plain bytes, not the characters that stand for them in the vocabulary.
  virtual bool on_bytes() const { return false; }
};

struct WordPieceOptions {
  std::string unknown = "[UNK]";
  std::string prefix = "##";
  size_t max_chars = 100;
};

Result<std::unique_ptr<TokenModel>> MakeWordPiece(Vocabulary vocabulary,
                                                  const WordPieceOptions& options,
                                                  const std::string& where);
// The options of a WordPiece model; null for any other.
const WordPieceOptions* AsWordPiece(const TokenModel& model);

// Left and right part of each merge, the first learned first.
using MergeList = std::vector<std::pair<std::string_view, std::string_view>>;

struct BpeOptions {
  std::optional<std::string> unknown;
  std::string prefix;          // of pieces that continue a word
  std::string suffix;          // of pieces that end one
  bool fuse_unknown = false;   // neighbouring unknown characters are one token
  bool byte_fallback = false;  // an unknown character becomes tokens such as <0x0A>
  bool ignore_merges = false;  // a word that is a token is taken as it is
  bool byte_level = false;     // the pipeline could leave words as plain bytes
};

Result<std::unique_ptr<TokenModel>> MakeBpe(Vocabulary vocabulary, const MergeList& merges,
                                            const BpeOptions& options, const std::string& where);
// Lines of a merges.txt: "left right". The result refers to them.
Result<MergeList> SplitMerges(const std::vector<std::string>& lines, const std::string& where);

struct UnigramOptions {
  std::vector<double> scores;  // of each piece
  int32_t unknown_id = -1;
  bool byte_fallback = false;
};

Result<std::unique_ptr<TokenModel>> MakeUnigram(const std::vector<std::string>& pieces,
                                                UnigramOptions options, const std::string& where);

// "<0x0A>" for 10.
std::string ByteToken(size_t byte);

// From the value of "model". `byte_level`: the words could be left as plain bytes instead of the
// characters that stand for them. `where` names the place in messages.
Result<std::unique_ptr<TokenModel>> ParseModel(const JsonValue& json, bool byte_level,
                                               const std::string& where);

// One function a kind.
Result<std::unique_ptr<TokenModel>> ParseWordPiece(const JsonValue& json, const std::string& where);
Result<std::unique_ptr<TokenModel>> ParseWordLevel(const JsonValue& json, const std::string& where);
Result<std::unique_ptr<TokenModel>> ParseBpe(const JsonValue& json, bool byte_level,
                                             const std::string& where);
Result<std::unique_ptr<TokenModel>> ParseUnigram(const JsonValue& json, const std::string& where);

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_TOKEN_MODEL_H_
