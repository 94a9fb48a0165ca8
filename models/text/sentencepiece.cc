#include "models/text/sentencepiece.h"

#include "models/protobuf.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

bool ReadPiece(std::string_view bytes, SentencePieceModel::Piece* piece) {
  ProtoFields fields(bytes);
  while (fields.Next()) {
    if (fields.number() == 1) piece->text = fields.bytes();
    if (fields.number() == 2) piece->score = fields.as_float();
    if (fields.number() == 3 && fields.value() >= 1 && fields.value() <= 6) {
      piece->type = static_cast<SentencePieceModel::Type>(fields.value());
    }
  }
  return !fields.bad() && unicode::FindInvalidUtf8(piece->text) == piece->text.size();
}

bool ReadTrainer(std::string_view bytes, SentencePieceModel* model) {
  ProtoFields fields(bytes);
  while (fields.Next()) {
    if (fields.number() == 3) model->is_bpe = fields.value() == 2;
    if (fields.number() == 35) model->byte_fallback = fields.value() != 0;
  }
  return !fields.bad();
}

bool ReadNormalizer(std::string_view bytes, SentencePieceModel* model) {
  ProtoFields fields(bytes);
  while (fields.Next()) {
    if (fields.number() == 2) model->charsmap = fields.bytes();
    if (fields.number() == 3) model->add_dummy_prefix = fields.value() != 0;
    if (fields.number() == 4) model->remove_extra_whitespaces = fields.value() != 0;
  }
  return !fields.bad();
}

}  // namespace

int32_t SentencePieceModel::unknown_id() const {
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].type == Type::kUnknown) return static_cast<int32_t>(i);
  }
  return -1;
}

Result<SentencePieceModel> ParseSentencePiece(std::string_view bytes, const std::string& name) {
  SentencePieceModel model;
  ProtoFields fields(bytes);
  bool good = true;
  while (good && fields.Next()) {
    if (fields.number() == 1) {
      model.pieces.emplace_back();
      good = ReadPiece(fields.bytes(), &model.pieces.back());
    } else if (fields.number() == 2) {
      good = ReadTrainer(fields.bytes(), &model);
    } else if (fields.number() == 3) {
      good = ReadNormalizer(fields.bytes(), &model);
    }
  }
  if (!good || fields.bad() || model.pieces.empty()) {
    return Corrupt(name + ": it is no SentencePiece model or is damaged; download it again");
  }
  return model;
}

}  // namespace pozor
