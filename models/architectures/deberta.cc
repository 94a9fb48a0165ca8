// DeBERTa, the first version (He et al. 2020): Q, K and V of a head side by side in one tensor,
// biases of queries and values alone, projections of its own for positions.
#include <string>

#include "models/architectures/deberta_family.h"

namespace pozor {
namespace {

// Output rows [part * head_dim, ...) of every head.
LinearRef PartOfHeads(const std::string& stem, size_t part, const EncoderSpec& spec) {
  const size_t rows = spec.heads * spec.head_dim;
  LinearRef ref = DenseWith(stem + "in_proj", false);
  ref.weight.row_begin = part * spec.head_dim;
  ref.weight.row_count = rows;
  ref.weight.fused_rows = 3 * rows;
  ref.weight.group_rows = spec.head_dim;
  ref.weight.group_step = 3 * spec.head_dim;
  return ref;
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  DebertaScores scores;
  EncoderSpec spec = DebertaSpec(config, {}, &scores);
  config.Refuse("talking_head", "a product across heads");
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const std::string stem = "encoder.layer." + std::to_string(i) + ".attention.self.";
    LayerSpec& layer = spec.layers[i];
    layer.query = PartOfHeads(stem, 0, spec);
    layer.key = PartOfHeads(stem, 1, spec);
    layer.value = PartOfHeads(stem, 2, spec);
    layer.query.bias.name = stem + "q_bias";
    layer.value.bias.name = stem + "v_bias";
    if (scores.query_positions) layer.position_key = DenseWith(stem + "pos_proj", false);
    if (scores.key_positions) layer.position_query = Dense(stem + "pos_q_proj");
  }
  return spec;
}

}  // namespace

extern const Architecture kDeberta;
const Architecture kDeberta = {
    .model_type = "deberta",
    .class_name = "Deberta",
    .description = "DeBERTa",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kDebertaPassengers,
};

}  // namespace pozor
