// A tokenizer.json as a pipeline: added tokens, normaliser, pre-tokenizer, model, truncation,
// post-processor. Ids, tokens and offsets equal those of Hugging Face `tokenizers`.
#ifndef POZOR_MODELS_TEXT_TOKENIZER_H_
#define POZOR_MODELS_TEXT_TOKENIZER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pozor/status.h"

namespace pozor {

class GgufMetadata;

enum class TruncationStrategy : uint8_t { kLongestFirst, kOnlyFirst, kOnlySecond };

struct TokenizeOptions {
  size_t max_length = 0;  // tokens including specials; 0: no limit
  TruncationStrategy strategy = TruncationStrategy::kLongestFirst;
  size_t stride = 0;  // tokens that neighbouring overflow windows share
  bool truncate_left = false;
  bool add_special_tokens = true;
  bool plain_specials = false;  // "[SEP]" typed in a text is text, not the special token
};

struct Span {
  uint32_t begin = 0, end = 0;
};

// One encoded text or pair, with everything that a caller may want to look at.
struct Encoding {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;
  std::vector<std::string> tokens;
  std::vector<Span> offsets;       // in code points of the text that the token comes from
  std::vector<Span> byte_offsets;  // in UTF-8 bytes
  std::vector<uint8_t> special;    // 1: added by the post-processor
  std::vector<int32_t> sequence;   // 0, 1; -1 for specials
  std::vector<int32_t> words;      // index of the pre-tokenizer's word; -1 for specials
  std::vector<Encoding> overflow;  // further windows, if the text was cut
};

// What happened to a text on the fast path.
struct TokenizeStats {
  size_t tokens = 0;       // ids appended
  size_t full_tokens = 0;  // what an unlimited call would have appended
  bool truncated() const { return full_tokens > tokens; }
};

// Scratch of one thread; reuse it, so that the steady state allocates nothing a word.
class TokenizeScratch {
 public:
  TokenizeScratch();
  ~TokenizeScratch();
  TokenizeScratch(TokenizeScratch&&) noexcept;
  TokenizeScratch& operator=(TokenizeScratch&&) noexcept;
  struct Impl;
  Impl& impl() { return *impl_; }

 private:
  std::unique_ptr<Impl> impl_;
};

// Immutable once loaded; every const member may be called from many threads.
class Tokenizer {
 public:
  // From a model folder: tokenizer.json, else the older files (vocab.txt, ...), with what
  // tokenizer_config.json says. `warnings` gets one line for each key that is ignored.
  static Result<std::unique_ptr<Tokenizer>> Load(const std::string& folder,
                                                 std::vector<std::string>* warnings);

  // From the text of a tokenizer.json alone; `name` is for messages.
  static Result<std::unique_ptr<Tokenizer>> FromJson(std::string_view json,
                                                     const std::string& name);

  // From the metadata of a GGUF file, which `file` names in messages.
  static Result<std::unique_ptr<Tokenizer>> FromGguf(const GgufMetadata& metadata,
                                                     const std::string& file);

  ~Tokenizer();

  // Appends the ids and type ids of a text (or pair, if `pair` is not null) to the vectors. Invalid
  // UTF-8 is an error that names the byte.
  Result<TokenizeStats> Append(std::string_view text, const std::string_view* pair,
                               const TokenizeOptions& options, TokenizeScratch& scratch,
                               std::vector<int32_t>* ids, std::vector<int32_t>* type_ids) const;

  // The same with tokens, offsets and overflow.
  Result<Encoding> Encode(std::string_view text, const std::string_view* pair,
                          const TokenizeOptions& options) const;

  // The text of these tokens, as the decoder of tokenizer.json puts it together.
  std::string Decode(std::span<const int32_t> ids, bool skip_specials) const;

  // Puts a Lowercase normaliser in front if the pipeline has none (sentence-transformers'
  // do_lower_case).
  void ForceLowercase();

  size_t vocab_size() const;              // highest id + 1
  size_t special_count(bool pair) const;  // specials that the post-processor adds
  size_t model_max_length() const;        // tokenizer_config.json's, 0 if it does not say
  // -1 if there is no such token.
  int32_t TokenToId(std::string_view token) const;
  std::string_view IdToToken(int32_t id) const;  // empty if there is none
  bool IsSpecialId(int32_t id) const;
  const std::string& kind() const;  // "WordPiece", "BPE", ... for info

  struct Impl;

 private:
  explicit Tokenizer(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_TOKENIZER_H_
