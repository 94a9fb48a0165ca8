// Unigram: the cut of a word whose pieces have the best sum of scores (Kudo, 2018), found by
// Viterbi's algorithm over the word's bytes.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "models/text/byte_trie.h"
#include "models/text/parse.h"
#include "models/text/space_cuts.h"
#include "models/text/token_model.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

// What an unknown character costs more than the rarest piece.
constexpr double kUnknownPenalty = 10.0;

constexpr uint32_t kUnreached = UINT32_MAX;

class Unigram final : public TokenModel {
 public:
  Unigram(const std::vector<std::string>& pieces, UnigramOptions options)
      : vocabulary_(Vocabulary::FromList(pieces)), options_(std::move(options)) {
    std::vector<std::pair<std::string_view, int32_t>> entries;
    entries.reserve(pieces.size());
    for (size_t id = 0; id < pieces.size(); ++id) {
      const auto value = static_cast<int32_t>(id);
      if (vocabulary_.Holds(value)) entries.emplace_back(vocabulary_.Text(value), value);
    }
    trie_.Build(entries);
    for (const double score : options_.scores) lowest_ = std::min(lowest_, score);
    FindByteTokens();
    FindCuts();
  }

  bool Tokenize(std::string_view word, ModelScratch& scratch) const override {
    if (!Forward(word, scratch.steps)) return false;
    // Back along the best way; neighbouring unknown characters become one piece.
    const size_t first = scratch.tokens.size();
    for (auto end = static_cast<uint32_t>(word.size()); end > 0;) {
      uint32_t begin = scratch.steps[end].begin;
      const int32_t id = scratch.steps[end].id;
      while (id == options_.unknown_id && begin > 0 &&
             scratch.steps[begin].id == options_.unknown_id) {
        begin = scratch.steps[begin].begin;
      }
      scratch.tokens.push_back({id, begin, end, true});
      end = begin;
    }
    std::reverse(scratch.tokens.begin() + static_cast<ptrdiff_t>(first), scratch.tokens.end());
    NameUnknown(word, first, scratch.tokens);
    return true;
  }

  // The way through each part is the same as through the whole if sums of scores are exact: then it
  // does not matter what stands before.
  size_t IndependentPart(std::string_view word) const override {
    return cuts_at_space_ && word.size() <= kExactBytes ? cuts_.FirstPart(word) : word.size();
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  size_t entries() const override { return vocabulary_.id_limit(); }  // equal pieces count
  const std::string& kind() const override {
    static const std::string kKind = "Unigram";
    return kKind;
  }
  std::string unknown() const override { return "unk_id"; }

 private:
  // Fills steps[i]: the best way to the i-th byte. False if it needs an unknown token and there is
  // none.
  bool Forward(std::string_view word, std::vector<ModelScratch::Step>& steps) const {
    steps.assign(word.size() + 1, {0.0, 0, kUnreached});
    const double unknown_score = lowest_ - kUnknownPenalty;
    for (size_t at = 0; at < word.size();) {
      const size_t size = unicode::SequenceLength(word[at]);
      const double so_far = steps[at].score;
      bool whole_char = false;
      const auto offer = [&](size_t length, int32_t id, double score) {
        ModelScratch::Step& step = steps[at + length];
        // Only a better way replaces one: the piece that began first wins a tie.
        if (step.begin != kUnreached && !(score > step.score)) return;
        step = {score, id, static_cast<uint32_t>(at)};
      };
      trie_.Prefixes(word.substr(at), [&](size_t length, int32_t id) {
        offer(length, id, options_.scores[static_cast<size_t>(id)] + so_far);
        whole_char |= length == size;
      });
      if (!whole_char) {
        if (options_.unknown_id < 0) return false;
        offer(size, options_.unknown_id, unknown_score + so_far);
      }
      at += size;
    }
    return true;
  }

  // A fused unknown piece may be a token after all; else it falls back to bytes, if it can.
  void NameUnknown(std::string_view word, size_t first, std::vector<ModelToken>& tokens) const {
    bool spelled = false;
    for (size_t i = first; i < tokens.size(); ++i) {
      if (tokens[i].id != options_.unknown_id) continue;
      const std::string_view text = word.substr(tokens[i].begin, tokens[i].end - tokens[i].begin);
      const int32_t id = vocabulary_.Find(text);
      if (id >= 0) {
        tokens[i].id = id;
      } else {
        spelled |= CanSpell(text);
      }
    }
    if (!spelled) return;
    const std::vector<ModelToken> old(tokens.begin() + static_cast<ptrdiff_t>(first), tokens.end());
    tokens.resize(first);
    for (const ModelToken& token : old) {
      const std::string_view text = word.substr(token.begin, token.end - token.begin);
      if (token.id != options_.unknown_id || vocabulary_.Find(text) >= 0 || !CanSpell(text)) {
        tokens.push_back(token);
        continue;
      }
      for (const char byte : text) {
        tokens.push_back({byte_ids_[static_cast<uint8_t>(byte)], token.begin, token.end, false});
      }
    }
  }

  bool CanSpell(std::string_view text) const {
    return options_.byte_fallback && std::all_of(text.begin(), text.end(), [this](char byte) {
             return byte_ids_[static_cast<uint8_t>(byte)] >= 0;
           });
  }

  // Scores are float32 in the models that these files come from: with multiples of 2^-30 below
  // 2^7 in size, a double holds sums of 2^16 of them.
  static constexpr double kGrain = 0x1p30, kLargest = 0x1p7;
  static constexpr size_t kExactBytes = size_t{1} << 16;

  void FindCuts() {
    const auto coarse = [](double score) {
      return std::abs(score) < kLargest && std::trunc(score * kGrain) == score * kGrain;
    };
    cuts_at_space_ = vocabulary_.Find(SpaceCuts::kSpace) >= 0 &&
                     coarse(lowest_ - kUnknownPenalty) &&
                     std::all_of(options_.scores.begin(), options_.scores.end(), coarse);
    for (size_t id = 0; id < vocabulary_.id_limit(); ++id) {
      const std::string_view text = vocabulary_.Text(static_cast<int32_t>(id));
      size_t at = 0;
      while ((at = text.find(SpaceCuts::kSpace, at + 1)) != std::string_view::npos) {
        cuts_.Join(text[at - 1]);
      }
    }
  }

  void FindByteTokens() {
    for (size_t byte = 0; byte < 256; ++byte) byte_ids_[byte] = vocabulary_.Find(ByteToken(byte));
  }

  Vocabulary vocabulary_;
  UnigramOptions options_;
  ByteTrie trie_;
  std::array<int32_t, 256> byte_ids_{};
  bool cuts_at_space_ = false;
  SpaceCuts cuts_;
  double lowest_ = std::numeric_limits<double>::infinity();
};

}  // namespace

std::string ByteToken(size_t byte) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  return {'<', '0', 'x', kDigits[byte >> 4], kDigits[byte & 15], '>'};
}

Result<std::unique_ptr<TokenModel>> MakeUnigram(const std::vector<std::string>& pieces,
                                                UnigramOptions options, const std::string& where) {
  if (pieces.empty()) return parse::Bad(where, "vocab", "the vocabulary is empty");
  if (options.unknown_id >= static_cast<int64_t>(pieces.size())) {
    return parse::Bad(where, "unk_id",
                      std::to_string(options.unknown_id) + " is outside the vocabulary of " +
                          std::to_string(pieces.size()) + " pieces");
  }
  if (options.scores.size() != pieces.size()) {
    return parse::Bad(where, "vocab", "there is not one score a piece");
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (std::isfinite(options.scores[i])) continue;
    return parse::Bad(where, "vocab",
                      "the score of entry " + std::to_string(i) + " is not a finite number");
  }
  return std::unique_ptr<TokenModel>(std::make_unique<Unigram>(pieces, std::move(options)));
}

Result<std::unique_ptr<TokenModel>> ParseUnigram(const JsonValue& json, const std::string& where) {
  const JsonValue* vocab = json.Find("vocab");
  if (vocab == nullptr) return parse::Missing(where, "vocab");
  if (!vocab->is_array()) return parse::Bad(where, "vocab", "it is not an array");
  UnigramOptions options;
  std::vector<std::string> pieces;
  pieces.reserve(vocab->size());
  for (const JsonValue& item : vocab->items()) {
    const auto pair = item.items();
    if (pair.size() != 2 || !pair[0].is_string() || !pair[1].is_number() ||
        !std::isfinite(pair[1].as_double())) {
      return parse::Bad(where, "vocab",
                        "entry " + std::to_string(pieces.size()) +
                            " is not a piece and its score, a finite number");
    }
    pieces.emplace_back(pair[0].as_string());
    options.scores.push_back(pair[1].as_double());
  }
  POZOR_TRY(options.byte_fallback, parse::Bool(json, "byte_fallback", false, where));
  const JsonValue* unknown = json.Find("unk_id");
  if (unknown != nullptr && !unknown->is_null()) {
    POZOR_TRY(const int64_t id, parse::Count(json, "unk_id", std::nullopt, where));
    options.unknown_id = static_cast<int32_t>(std::min<int64_t>(id, INT32_MAX));
  }
  return MakeUnigram(pieces, std::move(options), where);
}

}  // namespace pozor
