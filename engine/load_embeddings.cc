// What an encoder loads before its layers: tables of words and types, and everything positions
// need.
#include <array>
#include <cmath>
#include <vector>

#include "engine/distances.h"
#include "engine/encoder_loader.h"

namespace pozor {

Status EncoderLoader::Embeddings() {
  const EmbeddingSpec& embeddings = model_.spec.embeddings;
  POZOR_RETURN_IF_ERROR(
      Table(embeddings.word, embeddings.vocab_size, embeddings.size, &model_.word));
  POZOR_RETURN_IF_ERROR(PositionTable());
  if (embeddings.type.present()) {
    POZOR_RETURN_IF_ERROR(Table(embeddings.type, embeddings.type_count,
                                model_.spec.embedding_columns(), &model_.type));
  }
  POZOR_RETURN_IF_ERROR(
      Norm(embeddings.norm, model_.spec.embedding_norm_columns(), &model_.embedding_norm));
  if (!embeddings.projection.weight.present()) return {};
  const LinearBlock block{.ref = &embeddings.projection, .out = model_.spec.hidden};
  return Product({&block, 1}, embeddings.projection_inputs(), Activation::kNone,
                 &model_.projection);
}

// Angle of position p and frequency k: p / 10000^(2k / size) (Vaswani et al. 2017, section 3.5).
Status EncoderLoader::PositionTable() {
  const EmbeddingSpec& embeddings = model_.spec.embeddings;
  const size_t size = model_.spec.embedding_columns();
  if (embeddings.position_kind == PositionKind::kNone) return {};
  if (embeddings.position_kind == PositionKind::kLearned) {
    return Table(embeddings.position, embeddings.max_positions, size, &model_.position);
  }
  float* table = Take(embeddings.max_positions * size);
  if (!packing_) return {};
  const bool interleaved = embeddings.position_kind == PositionKind::kSinusoidalInterleaved;
  const size_t half = DivCeil(size, 2);
  for (size_t p = 0; p < embeddings.max_positions; ++p) {
    for (size_t c = 0; c < size; ++c) {
      const size_t k = interleaved ? c / 2 : c % half;
      const bool sine = interleaved ? c % 2 == 0 : c < half;
      const double angle =
          static_cast<double>(p) /
          std::pow(10000.0, 2.0 * static_cast<double>(k) / static_cast<double>(size));
      table[p * size + c] = static_cast<float>(sine ? std::sin(angle) : std::cos(angle));
    }
  }
  model_.position = table;
  return {};
}

// A number for each head and distance, or for each head, bucket and distance.
Status EncoderLoader::ScoreBiases() {
  const EncoderSpec& spec = model_.spec;
  if (spec.score_bias.kind == ScoreBias::kNone) return {};
  std::vector<float> learned;
  if (spec.score_bias.kind == ScoreBias::kBuckets) {
    const std::array<size_t, 2> shape = {spec.score_bias.buckets, spec.heads};
    POZOR_TRY(const TensorInfo* tensor, weights_.Take(spec.score_bias.table.name, shape));
    learned.resize(tensor->elements());
    POZOR_RETURN_IF_ERROR(weights_.source().Read(*tensor, 0, learned.size(), learned.data()));
  }
  const size_t tokens = model_.max_tokens();
  float* bias = Take(spec.heads * (2 * tokens - 1));
  if (!packing_) return {};
  FillScoreBias(spec.score_bias, learned, spec.heads, tokens, bias);
  model_.score_bias = bias;
  return {};
}

Status EncoderLoader::Rotations() {
  for (const RotarySpec& rotary : model_.spec.rotaries) {
    float* table = Take(model_.max_tokens() * rotary.columns);
    if (rotary.table.present()) {
      POZOR_RETURN_IF_ERROR(StoredRotation(rotary, table));
    } else if (packing_) {
      FillRotaryTable(rotary, model_.max_tokens(), table);
    }
    if (packing_) model_.rotary_tables.push_back(table);
  }
  return {};
}

Status EncoderLoader::StoredRotation(const RotarySpec& rotary, float* table) {
  const std::array<size_t, 2> shape = {model_.spec.embeddings.max_positions, rotary.columns};
  POZOR_TRY(const TensorInfo* tensor, weights_.Take(rotary.table.name, shape));
  if (!packing_) return {};
  const size_t half = rotary.columns / 2;
  const bool halves = rotary.pairs == RotaryPairs::kHalves;
  std::vector<float> row(rotary.columns);
  for (size_t p = 0; p < model_.max_tokens(); ++p, table += rotary.columns) {
    POZOR_RETURN_IF_ERROR(
        weights_.source().Read(*tensor, p * rotary.columns, rotary.columns, row.data()));
    for (size_t i = 0; i < half; ++i) {
      table[halves ? i : 2 * i] = row[half + i];
      table[halves ? half + i : 2 * i + 1] = row[i];
    }
  }
  return {};
}

Status EncoderLoader::RelativeTable() {
  return packing_ ? relative_positions_.Read(model_.spec, weights_)
                  : RelativePositions::Check(model_.spec, weights_);
}

}  // namespace pozor
