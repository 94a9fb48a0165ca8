// WordPiece: the longest token that a word begins with, then the longest that goes on from there.
#include <algorithm>
#include <utility>

#include "models/text/parse.h"
#include "models/text/token_model.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

class WordPiece final : public TokenModel {
 public:
  WordPiece(Vocabulary vocabulary, WordPieceOptions options)
      : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {
    unknown_ = vocabulary_.Find(options_.unknown);
    IndexContinuations();
  }

  bool Tokenize(std::string_view word, ModelScratch& scratch) const override {
    const size_t first = scratch.tokens.size();
    if (word.size() > options_.max_chars && unicode::CountCodePoints(word) > options_.max_chars) {
      return Unknown(word, first, scratch);
    }
    for (size_t begin = 0; begin < word.size();) {
      const ModelToken token = Longest(word, begin, scratch);
      if (token.id < 0) return Unknown(word, first, scratch);
      scratch.tokens.push_back(token);
      begin = token.end;
    }
    return true;
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  const std::string& kind() const override {
    static const std::string kKind = "WordPiece";
    return kKind;
  }
  std::string unknown() const override { return options_.unknown; }
  const WordPieceOptions& options() const { return options_; }

 private:
  // Tokens that start with the prefix, by the hash of the rest.
  void IndexContinuations() {
    const std::string& prefix = options_.prefix;
    size_t count = 0;
    for (size_t id = 0; id < vocabulary_.id_limit(); ++id) {
      count += vocabulary_.Text(static_cast<int32_t>(id)).starts_with(prefix) ? 1 : 0;
    }
    continuations_.Reserve(count);
    for (size_t id = 0; id < vocabulary_.id_limit(); ++id) {
      const std::string_view text = vocabulary_.Text(static_cast<int32_t>(id));
      if (text.size() <= prefix.size() || !text.starts_with(prefix)) continue;
      // Of equal tokens only the one that the vocabulary finds counts.
      if (vocabulary_.Find(text) != static_cast<int32_t>(id)) continue;
      const std::string_view rest = text.substr(prefix.size());
      continuations_.Insert(ByteHash::Of(rest), static_cast<int32_t>(id));
      longest_continuation_ = std::max(longest_continuation_, rest.size());
    }
  }

  bool Unknown(std::string_view word, size_t first, ModelScratch& scratch) const {
    scratch.tokens.resize(first);
    if (unknown_ < 0) return false;
    scratch.tokens.push_back({unknown_, 0, static_cast<uint32_t>(word.size())});
    return true;
  }

  // The longest token that fits at `begin`; id -1 if none does.
  ModelToken Longest(std::string_view word, size_t begin, ModelScratch& scratch) const {
    const size_t most = begin == 0 ? vocabulary_.longest() : longest_continuation_;
    const size_t size = std::min(most, word.size() - begin);
    scratch.hashes.resize(std::max(scratch.hashes.size(), size + 1));
    ByteHash hash;
    for (size_t i = 0; i < size; ++i) {
      hash.Add(word[begin + i]);
      scratch.hashes[i + 1] = hash.value;
    }
    const auto at = static_cast<uint32_t>(begin);
    for (size_t k = size; k > 0; --k) {
      const std::string_view part = word.substr(begin, k);
      const int32_t id = begin == 0 ? vocabulary_.Find(part, scratch.hashes[k])
                                    : FindContinuation(part, scratch.hashes[k]);
      if (id >= 0) return {id, at, at + static_cast<uint32_t>(k)};
    }
    return {-1, at, at};
  }

  int32_t FindContinuation(std::string_view part, uint64_t hash) const {
    return continuations_.Find(hash, [&](int32_t id) {
      return vocabulary_.Text(id).substr(options_.prefix.size()) == part;
    });
  }

  Vocabulary vocabulary_;
  WordPieceOptions options_;
  HashIndex continuations_;
  size_t longest_continuation_ = 0;
  int32_t unknown_ = -1;
};

// Every word is a token.
class WordLevel final : public TokenModel {
 public:
  WordLevel(Vocabulary vocabulary, std::string unknown)
      : vocabulary_(std::move(vocabulary)), unknown_name_(std::move(unknown)) {
    unknown_ = vocabulary_.Find(unknown_name_);
  }

  bool Tokenize(std::string_view word, ModelScratch& scratch) const override {
    int32_t id = vocabulary_.Find(word);
    if (id < 0) id = unknown_;
    if (id < 0) return false;
    scratch.tokens.push_back({id, 0, static_cast<uint32_t>(word.size())});
    return true;
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  const std::string& kind() const override {
    static const std::string kKind = "WordLevel";
    return kKind;
  }
  std::string unknown() const override { return unknown_name_; }

 private:
  Vocabulary vocabulary_;
  std::string unknown_name_;
  int32_t unknown_ = -1;
};

Result<Vocabulary> VocabularyOf(const JsonValue& json, const std::string& where) {
  const JsonValue* vocab = json.Find("vocab");
  if (vocab == nullptr) return parse::Missing(where, "vocab");
  return Vocabulary::FromJson(*vocab, where);
}

Status CheckUnknown(const Vocabulary& vocabulary, const std::string& name,
                    const std::string& where) {
  if (vocabulary.Find(name) >= 0) return Status();
  return parse::Bad(where, "unk_token", "\"" + name + "\" is not in the vocabulary");
}

}  // namespace

Result<std::unique_ptr<TokenModel>> MakeWordPiece(Vocabulary vocabulary,
                                                  const WordPieceOptions& options,
                                                  const std::string& where) {
  POZOR_RETURN_IF_ERROR(CheckUnknown(vocabulary, options.unknown, where));
  return std::unique_ptr<TokenModel>(std::make_unique<WordPiece>(std::move(vocabulary), options));
}

const WordPieceOptions* AsWordPiece(const TokenModel& model) {
  const auto* word_piece = dynamic_cast<const WordPiece*>(&model);
  return word_piece != nullptr ? &word_piece->options() : nullptr;
}

Result<std::unique_ptr<TokenModel>> ParseWordPiece(const JsonValue& json,
                                                   const std::string& where) {
  WordPieceOptions options;
  POZOR_TRY(options.unknown, parse::String(json, "unk_token", options.unknown, where));
  POZOR_TRY(options.prefix,
            parse::String(json, "continuing_subword_prefix", options.prefix, where));
  POZOR_TRY(const int64_t most, parse::Count(json, "max_input_chars_per_word", 100, where));
  options.max_chars = static_cast<size_t>(most);
  POZOR_TRY(Vocabulary vocabulary, VocabularyOf(json, where));
  return MakeWordPiece(std::move(vocabulary), options, where);
}

Result<std::unique_ptr<TokenModel>> ParseWordLevel(const JsonValue& json,
                                                   const std::string& where) {
  POZOR_TRY(std::string unknown, parse::String(json, "unk_token", "<unk>", where));
  POZOR_TRY(Vocabulary vocabulary, VocabularyOf(json, where));
  POZOR_RETURN_IF_ERROR(CheckUnknown(vocabulary, unknown, where));
  return std::unique_ptr<TokenModel>(
      std::make_unique<WordLevel>(std::move(vocabulary), std::move(unknown)));
}

}  // namespace pozor
