// Normalisers of tokenizer.json: text to text, with the origin of each byte on request.
#ifndef POZOR_MODELS_TEXT_NORMALIZE_H_
#define POZOR_MODELS_TEXT_NORMALIZE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/json.h"
#include "models/text/tokenizer.h"

namespace pozor {

// Text on its way through the pipeline.
struct AlignedText {
  std::string bytes;
  std::vector<Span> spans;  // if tracked: for each byte, the bytes of the original it comes from
  uint32_t base = 0;        // where this piece begins in the original
  size_t lead = 0;          // so many leading bytes come from the piece's first character
  bool tracked = false;
  bool failed = false;  // a regular expression took too many steps

  void Start(std::string_view original, uint32_t begin, bool track);
  void Clear();
  void Swap(AlignedText& other);
};

// Writes a new version of a text while it keeps the origins. Positions are those of the old one.
class Rewriter {
 public:
  Rewriter(const AlignedText& from, AlignedText* to);

  // Bytes [begin, end) as they are.
  void Copy(size_t begin, size_t end);
  // Something that takes the place of what stands at `at`.
  void Replace(size_t at, std::string_view bytes) { Put(at, at + 1, bytes); }
  void Replace(size_t at, char32_t c);
  // Something new that follows what ends at `end`; it shares the origin of the byte before.
  void Insert(size_t end, std::string_view bytes) { Put(end - 1, end, bytes); }
  void Insert(size_t end, char32_t c);

 private:
  void Put(size_t origin, size_t next, std::string_view bytes);

  const AlignedText& from_;
  AlignedText& to_;
};

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
std::unique_ptr<Normalizer> MakeNfc();
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
