#include "models/text/sentencepiece.h"

#include <bit>

#include "models/text/unicode.h"

namespace pozor {
namespace {

// Fields of a protocol buffer, one after the other.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : rest_(bytes) {}

  // Moves to the next field; false at the end or at damage, which bad() tells apart.
  bool Next() {
    uint64_t key = 0;
    if (rest_.empty() || !Varint(&key)) return false;
    number_ = key >> 3;
    switch (key & 7) {
      case 0:
        return Varint(&value_);
      case 1:
        return Take(8);
      case 2: {
        uint64_t size = 0;
        return Varint(&size) && Take(size);
      }
      case 5:
        return Take(4);
      default:
        bad_ = true;
        return false;
    }
  }

  bool bad() const { return bad_; }
  uint64_t number() const { return number_; }
  uint64_t value() const { return value_; }          // of a varint
  std::string_view bytes() const { return bytes_; }  // of anything else
  float as_float() const {
    uint32_t bits = 0;
    for (size_t i = 0; i < 4 && i < bytes_.size(); ++i) {
      bits |= uint32_t{static_cast<uint8_t>(bytes_[i])} << (8 * i);
    }
    return std::bit_cast<float>(bits);
  }

 private:
  bool Varint(uint64_t* out) {
    *out = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<uint8_t>(rest_[0]);
      rest_.remove_prefix(1);
      *out |= uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return true;
    }
    bad_ = true;
    return false;
  }

  bool Take(uint64_t size) {
    bad_ = size > rest_.size();
    if (bad_) return false;
    bytes_ = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_, bytes_;
  uint64_t number_ = 0, value_ = 0;
  bool bad_ = false;
};

bool ReadPiece(std::string_view bytes, SentencePieceModel::Piece* piece) {
  Fields fields(bytes);
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
  Fields fields(bytes);
  while (fields.Next()) {
    if (fields.number() == 3) model->is_bpe = fields.value() == 2;
    if (fields.number() == 35) model->byte_fallback = fields.value() != 0;
  }
  return !fields.bad();
}

bool ReadNormalizer(std::string_view bytes, SentencePieceModel* model) {
  Fields fields(bytes);
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
  Fields fields(bytes);
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
