// The encoder of a Marian translation model (Junczys-Dowmunt et al. 2018): the Transformer encoder
// of Vaswani et al. 2017 with sinusoidal positions in halves.
#include <cmath>

#include "models/architectures/architecture.h"

namespace pozor {
namespace {

constexpr std::string_view kPassengers[] = {
    "decoder.*", "lm_head.*", "final_logits_bias", "encoder.embed_tokens.weight", "shared.weight",
};

LayerSpec Layer(const std::string& stem) {
  LayerSpec layer;
  layer.query = Dense(stem + "self_attn.q_proj");
  layer.key = Dense(stem + "self_attn.k_proj");
  layer.value = Dense(stem + "self_attn.v_proj");
  layer.attention_output = Dense(stem + "self_attn.out_proj");
  layer.attention_norm = Norm(stem + "self_attn_layer_norm");
  layer.ffn_up = Dense(stem + "fc1");
  layer.ffn_down = Dense(stem + "fc2");
  layer.ffn_norm = Norm(stem + "final_layer_norm");
  return layer;
}

// Keys of the decoder, and of options that Marian's published models leave off.
void CheckOtherKeys(Config& config) {
  constexpr std::string_view kDecoder[] = {
      "is_encoder_decoder", "decoder_layers",     "decoder_attention_heads",
      "decoder_ffn_dim",    "decoder_vocab_size", "share_encoder_decoder_embeddings",
      "add_bias_logits",    "num_hidden_layers",  "extra_pos_embeddings",
      "decoder_layerdrop",  "encoder_layerdrop",
  };
  config.Ignore(kDecoder, "of the decoder, which is not computed");
  config.Refuse("normalize_before", "pre-norm");
  config.Refuse("normalize_embedding", "a norm of the embeddings");
  config.Refuse("add_final_layer_norm", "a final norm");
  config.Demand("static_position_embeddings", "sinusoidal positions");
}

EncoderSpec MakeSpec(Config& config, const WeightReader& weights) {
  SizeKeys keys;
  keys.hidden = "d_model";
  keys.heads = "encoder_attention_heads";
  keys.layers = "encoder_layers";
  keys.intermediate = "encoder_ffn_dim";
  EncoderSpec spec = ReadSizes(config, keys);
  spec.activation =
      config.ActivationOr("activation_function", "gelu", "activation of the feed-forward");
  spec.norm_epsilon = 1e-5f;
  CheckOtherKeys(config);

  EmbeddingSpec& embeddings = spec.embeddings;
  if (config.FlagOr("scale_embedding", false, "word rows times sqrt(d_model)")) {
    embeddings.word_scale = std::sqrt(static_cast<float>(spec.hidden));
  }
  embeddings.word.name = "shared.weight";
  if (!weights.Has("shared.weight")) embeddings.word.name = "encoder.embed_tokens.weight";
  embeddings.position.name = "encoder.embed_positions.weight";
  if (!weights.Has(embeddings.position.name)) {
    embeddings.position_kind = PositionKind::kSinusoidalHalves;
  }
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = Layer("encoder.layers." + std::to_string(i) + ".");
  }
  return spec;
}

}  // namespace

extern const Architecture kMarian;
const Architecture kMarian = {
    .model_type = "marian",
    .class_name = "Marian",
    .description = "Marian, the encoder",
    .make_spec = MakeSpec,
    .anchor = "encoder.layers.0.self_attn.k_proj.weight",
    .passengers = kPassengers,
};

}  // namespace pozor
