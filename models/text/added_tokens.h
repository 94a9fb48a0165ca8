// Tokens that stand beside a model's vocabulary and are found in the text before anything else.
#ifndef POZOR_MODELS_TEXT_ADDED_TOKENS_H_
#define POZOR_MODELS_TEXT_ADDED_TOKENS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/json.h"
#include "models/text/normalize.h"
#include "models/text/pretokenize.h"
#include "models/text/token_model.h"

namespace pozor {

struct AddedToken {
  std::string content;
  int32_t id = -1;
  bool single_word = false;  // only between characters that are no part of a word
  bool lstrip = false;       // takes the white space before it
  bool rstrip = false;       // and after it
  bool normalized = true;    // searched in the normalised text, in its own normalised form
  bool special = false;
  std::string normal;     // what the normaliser makes of it, if that is something else
  bool vanishes = false;  // the normaliser makes nothing of it
  int32_t same_as = -1;   // another token of which the normaliser makes the same
};

// Finds strings in a text: the leftmost, of those the longest.
class StringMatcher {
 public:
  void Add(std::string_view text, int32_t value);
  bool empty() const { return nodes_.size() <= 1; }
  // Length of the longest string at `begin`, 0 if there is none.
  size_t LongestAt(std::string_view text, size_t begin, int32_t* value) const;
  // The first place from `begin` on where a string might start; text.size() if there is none.
  size_t NextStart(std::string_view text, size_t begin) const;

 private:
  struct Node {
    int32_t value = -1;
    int32_t child = -1, sibling = -1;
    char byte = 0;
  };
  int32_t Child(int32_t node, char byte) const;

  std::vector<Node> nodes_{1};
  int32_t roots_[256];
  bool rooted_ = false;
  std::string first_bytes_;
};

class AddedTokens {
 public:
  // From the value of "added_tokens". A token that the vocabulary holds has its id; the others get
  // free ids in order, whatever the file says, as in Hugging Face. One line for each
  // token whose id the file has otherwise goes to `warnings`.
  static Result<AddedTokens> FromJson(const JsonValue& json, const TokenModel& model,
                                      const std::string& where, std::vector<std::string>* warnings);

  // A new token gets the id after the model's entries and after every token added before.
  Status Add(AddedToken token, const TokenModel& model);
  // Makes the tokens searchable; to be called again when the normaliser changes.
  void Prepare(const Normalizer* normalizer);
  // Once prepared: an error that names a token of which nothing is left to be searched, or two that
  // look the same then; which one of these is found differs between versions of `tokenizers`.
  Status Check() const;

  // Cuts [begin, end) of a text into tokens that are searched in normalised (or in raw) text and
  // what is between them. `plain_specials`: special tokens are text.
  void Split(bool normalized, size_t begin, size_t end, bool plain_specials, std::string_view text,
             std::vector<Piece>* pieces) const;

  // Whether any token might be in a raw text; never wrongly false.
  bool MayOccur(std::string_view text) const { return raw_.NextStart(text, 0) < text.size(); }
  bool any_normalized() const { return !normalized_.empty(); }

  int32_t Find(std::string_view content) const;
  const AddedToken* ById(int32_t id) const;
  int32_t id_limit() const { return id_limit_; }
  const std::vector<AddedToken>& tokens() const { return tokens_; }

 private:
  std::vector<AddedToken> tokens_;
  std::unordered_map<int32_t, size_t> by_id_;
  std::unordered_map<std::string, int32_t> by_content_;
  StringMatcher raw_, normalized_;
  int32_t id_limit_ = 0;  // highest id + 1
};

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_ADDED_TOKENS_H_
