// A SentencePiece model file: pieces with scores, and how text is normalised.
#ifndef POZOR_MODELS_TEXT_SENTENCEPIECE_H_
#define POZOR_MODELS_TEXT_SENTENCEPIECE_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pozor/status.h"

namespace pozor {

struct SentencePieceModel {
  enum class Type : uint8_t { kNormal = 1, kUnknown, kControl, kUserDefined, kUnused, kByte };
  struct Piece {
    std::string text;
    float score = 0;
    Type type = Type::kNormal;
  };
  std::vector<Piece> pieces;
  bool is_bpe = false;  // else Unigram
  bool byte_fallback = false;
  std::string charsmap;  // precompiled, may be empty
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;

  // Place of the unknown piece, -1 if there is none.
  int32_t unknown_id() const;
};

// Reads the protocol buffer ModelProto of sentencepiece_model.proto. `name` is for messages.
Result<SentencePieceModel> ParseSentencePiece(std::string_view bytes, const std::string& name);

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_SENTENCEPIECE_H_
