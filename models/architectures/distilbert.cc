// DistilBERT (Sanh et al. 2019): half of BERT's layers, no segments and no pooler.
#include "models/architectures/architecture.h"

namespace pozor {
namespace {

constexpr std::string_view kPassengers[] = {
    "embeddings.position_ids", "pre_classifier.*",  "classifier.*", "vocab_transform.*",
    "vocab_layer_norm.*",      "vocab_projector.*", "qa_outputs.*",
};

LayerSpec Layer(const std::string& stem) {
  LayerSpec layer;
  layer.query = Dense(stem + "attention.q_lin");
  layer.key = Dense(stem + "attention.k_lin");
  layer.value = Dense(stem + "attention.v_lin");
  layer.attention_output = Dense(stem + "attention.out_lin");
  layer.attention_norm = Norm(stem + "sa_layer_norm");
  layer.ffn_up = Dense(stem + "ffn.lin1");
  layer.ffn_down = Dense(stem + "ffn.lin2");
  layer.ffn_norm = Norm(stem + "output_layer_norm");
  return layer;
}

EncoderSpec MakeSpec(Config& config, const WeightReader& weights) {
  SizeKeys keys;
  keys.hidden = "dim";
  keys.heads = "n_heads";
  keys.layers = "n_layers";
  keys.intermediate = "hidden_dim";
  EncoderSpec spec = ReadSizes(config, keys);
  spec.activation = config.ActivationOr("activation", "gelu", "activation of the feed-forward");
  EmbeddingSpec& embeddings = spec.embeddings;
  embeddings.word.name = "embeddings.word_embeddings.weight";
  embeddings.position.name = "embeddings.position_embeddings.weight";
  embeddings.norm = Norm("embeddings.LayerNorm");
  const bool sinusoidal = config.FlagOr(
      "sinusoidal_pos_embds", false, "true: positions are computed if the weights have no table");
  if (sinusoidal && !weights.Has(embeddings.position.name)) {
    embeddings.position_kind = PositionKind::kSinusoidalInterleaved;
  }
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = Layer("transformer.layer." + std::to_string(i) + ".");
  }
  return spec;
}

}  // namespace

extern const Architecture kDistilBert;
const Architecture kDistilBert = {
    .model_type = "distilbert",
    .class_name = "DistilBert",
    .description = "DistilBERT",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kPassengers,
};

}  // namespace pozor
