#include "models/architectures/bert_family.h"

namespace pozor {
namespace {

// Learned distances instead of learned positions: Shaw et al. 2018, Huang et al. 2020.
void ReadPositionType(Config& config, EncoderSpec* spec) {
  const std::string type = config.TextOr("position_embedding_type", "absolute",
                                         "absolute: a learned row for each position; relative_key, "
                                         "relative_key_query: one for each distance");
  if (type == "absolute") return;
  if (type != "relative_key" && type != "relative_key_query") {
    config.Fail(Unsupported(config.name() + ": position_embedding_type is \"" + type +
                            "\", this kind of position embedding is not supported; use another "
                            "model"));
  }
  spec->embeddings.position_kind = PositionKind::kNone;
  spec->embeddings.position = {};
  spec->token_limit = spec->embeddings.max_positions;
  spec->distances_score_keys = type == "relative_key_query";
  for (size_t i = 0; i < spec->layers.size(); ++i) {
    spec->layers[i].distances.name =
        "encoder.layer." + std::to_string(i) + ".attention.self.distance_embedding.weight";
  }
}

}  // namespace

LayerSpec BertLayer(const std::string& stem) {
  LayerSpec layer;
  layer.query = Dense(stem + "attention.self.query");
  layer.key = Dense(stem + "attention.self.key");
  layer.value = Dense(stem + "attention.self.value");
  layer.attention_output = Dense(stem + "attention.output.dense");
  layer.attention_norm = Norm(stem + "attention.output.LayerNorm");
  layer.ffn_up = Dense(stem + "intermediate.dense");
  layer.ffn_down = Dense(stem + "output.dense");
  layer.ffn_norm = Norm(stem + "output.LayerNorm");
  return layer;
}

EncoderSpec BertSpec(Config& config, BertPositions positions) {
  EncoderSpec spec = ReadSizes(config, {});
  spec.activation = config.ActivationOr("hidden_act", "gelu", "activation of the feed-forward");
  spec.norm_epsilon = config.PositiveOr("layer_norm_eps", 1e-12, "epsilon of every LayerNorm");
  spec.causal = config.FlagOr("is_decoder", false, "true: a token sees only those before it");
  config.Refuse("add_cross_attention", "cross-attention");

  EmbeddingSpec& embeddings = spec.embeddings;
  embeddings.type_count =
      config.SizeOr("type_vocab_size", 2, kMostVocabulary, "rows of the segment table");
  embeddings.position_kind = PositionKind::kLearned;
  embeddings.word.name = "embeddings.word_embeddings.weight";
  embeddings.position.name = "embeddings.position_embeddings.weight";
  if (embeddings.type_count > 0) embeddings.type.name = "embeddings.token_type_embeddings.weight";
  embeddings.norm = Norm("embeddings.LayerNorm");
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = BertLayer("encoder.layer." + std::to_string(i) + ".");
  }
  if (positions == BertPositions::kLearned) {
    ReadPositionType(config, &spec);
  } else {
    embeddings.position_kind = PositionKind::kNone;
    embeddings.position = {};
  }
  return spec;
}

void CountPositionsFromPad(Config& config, EncoderSpec* spec) {
  const size_t pad = config.SizeOr("pad_token_id", 1, kMostPositions,
                                   "positions count from the one after it; it has none itself");
  spec->embeddings.position_offset = pad + 1;
  spec->embeddings.position_skips_id = static_cast<int>(pad);
}

}  // namespace pozor
