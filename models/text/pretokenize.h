// Pre-tokenizers of tokenizer.json: they cut normalised text into the words that the model sees.
#ifndef POZOR_MODELS_TEXT_PRETOKENIZE_H_
#define POZOR_MODELS_TEXT_PRETOKENIZE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/json.h"
#include "models/text/normalize.h"

namespace pozor {

// A part of the text: a word, or an added token that was found in it.
struct Piece {
  uint32_t begin, end;  // bytes of PieceList::text
  int32_t id;           // of an added token; -1: text for the model
};

// A text and its pieces in order; what lies between pieces was dropped.
struct PieceList {
  AlignedText text;
  std::vector<Piece> pieces;
  AlignedText spare;
  std::vector<Piece> spare_pieces;
  bool failed = false;  // a regular expression took too many steps

  void Clear();
};

class PreTokenizer {
 public:
  virtual ~PreTokenizer() = default;
  // Cuts every piece that is not an added token.
  virtual void Apply(PieceList& list) const = 0;
};

// From the value of "pre_tokenizer"; null for null. `where` names the place in messages.
Result<std::unique_ptr<PreTokenizer>> ParsePreTokenizer(const JsonValue& json,
                                                        const std::string& where);

std::unique_ptr<PreTokenizer> MakeBertPreTokenizer();
// GPT-2's words, or those of GPT-4 with single digits as Qwen has them, as byte characters.
std::unique_ptr<PreTokenizer> MakeByteLevel(bool qwen, bool add_prefix_space);
// U+2581 for spaces and, if `prepend`, before a text; words cut before it if `split`.
std::unique_ptr<PreTokenizer> MakeMetaspace(bool prepend, bool split);

// Properties of a pipeline.
bool IsBertPreTokenizer(const PreTokenizer* pre_tokenizer);
// Whether the last step is a ByteLevel, which maps bytes to characters.
bool EndsInByteLevel(const PreTokenizer* pre_tokenizer);
// Makes that step leave the bytes alone.
void DropByteMapping(PreTokenizer* pre_tokenizer);
// Overrides add_prefix_space of every ByteLevel; false if there is none.
bool SetAddPrefixSpace(PreTokenizer* pre_tokenizer, bool value);

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_PRETOKENIZE_H_
