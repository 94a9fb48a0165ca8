// Normalisers of tokenizer.json: text to text, with the origin of each byte on request.
#ifndef POZOR_MODELS_TEXT_NORMALIZE_H_
#define POZOR_MODELS_TEXT_NORMALIZE_H_

#include <memory>
#include <string>
#include <vector>

#include "models/json.h"
#include "models/text/aligned_text.h"

namespace pozor {

class CharsMap;

class Normalizer {
 public:
  virtual ~Normalizer() = default;
  // Normalises `text` in place; `spare` is scratch.
  virtual void Apply(AlignedText& text, AlignedText& spare) const = 0;
};

// BERT's own; cleaning, spaces around CJK, accents, case, in that order.
struct BertNormalizerOptions {
  bool clean_text = true;
  bool handle_chinese_chars = true;
  bool strip_accents = true;
  bool lowercase = true;
};
std::unique_ptr<Normalizer> MakeBertNormalizer(const BertNormalizerOptions& options);
std::unique_ptr<Normalizer> MakeLowercase();
// NFC, NFD, NFKC and NFKD (UAX 15).
std::unique_ptr<Normalizer> MakeNormalizationForm(bool compatibility, bool compose);
// SentencePiece's table of replacements.
std::unique_ptr<Normalizer> MakePrecompiled(CharsMap map);
// What a SentencePiece model does to a text.
struct SentencePieceNormalizerOptions {
  std::string charsmap;             // table of replacements, may be empty
  bool remove_extra_spaces = true;  // at the ends and in runs
  bool lowercase = false;           // quotes, accents and case first, as ALBERT
  bool mark_spaces = false;         // U+2581 for spaces,
  bool prepend = false;             // and before the text
};
Result<std::unique_ptr<Normalizer>> MakeSentencePieceNormalizer(
    const SentencePieceNormalizerOptions& options, const std::string& where);
std::unique_ptr<Normalizer> MakeSequence(std::vector<std::unique_ptr<Normalizer>> parts);
// Whether it is a BertNormalizer, perhaps after a Lowercase.
bool IsBertNormalizer(const Normalizer* normalizer);
// The options of a BertNormalizer; null for any other.
const BertNormalizerOptions* AsBertNormalizer(const Normalizer* normalizer);
// Whether the pipeline lower-cases.
bool Lowercases(const Normalizer* normalizer);

// From the value of "normalizer"; null for null. `where` names the place in messages.
Result<std::unique_ptr<Normalizer>> ParseNormalizer(const JsonValue& json,
                                                    const std::string& where);

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_NORMALIZE_H_
