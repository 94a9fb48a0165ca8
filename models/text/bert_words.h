// The usual BERT pipeline (BertNormalizer, BertPreTokenizer, WordPiece) in one pass over the text.
// It gives what the three steps give one after the other; only English-like text is quick.
#ifndef POZOR_MODELS_TEXT_BERT_WORDS_H_
#define POZOR_MODELS_TEXT_BERT_WORDS_H_

#include <array>
#include <cstdint>
#include <string_view>

#include "models/text/normalize.h"
#include "models/text/token_model.h"
#include "models/text/word_cache.h"
#include "pozor/status.h"

namespace pozor {

class BertWords {
 public:
  // `normalizer` is a BertNormalizer, perhaps with a Lowercase before it, and `lowercase` says
  // whether it makes letters small. Both must outlive this.
  BertWords(const Normalizer& normalizer, bool lowercase, const TokenModel& model);

  struct Buffers {
    AlignedText text, spare;
    ModelScratch model;
    WordCache cache;
  };

  // Appends the ids of [begin, end) of a text. An error names the byte that is not UTF-8.
  Status Append(std::string_view text, size_t begin, size_t end, Buffers& buffers,
                IdBuffer* ids) const;

 private:
  enum Kind : uint8_t { kWord, kSpace, kPunctuation, kHard };

  const char* Words(const char* p, const char* limit, const char* end, Buffers& buffers,
                    IdBuffer* ids) const;
  size_t NewWord(const WordCache::Key& key, uint64_t hash, size_t size, Buffers& buffers,
                 int32_t* out) const;
  Result<size_t> HardChunk(std::string_view text, size_t begin, size_t end, Buffers& buffers,
                           IdBuffer* ids) const;
  static bool BreaksChunk(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

  const Normalizer& normalizer_;
  const TokenModel& model_;
  uint64_t lower_mask_;  // makes ASCII letters small when or-ed
  std::array<uint8_t, 256> kinds_;
  std::array<int32_t, 128> punctuation_ids_;
};

// The error for a text whose byte `at` is not valid UTF-8.
Status InvalidUtf8(std::string_view text, size_t at);

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_BERT_WORDS_H_
