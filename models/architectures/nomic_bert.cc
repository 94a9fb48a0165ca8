// NomicBERT (Nussbaum et al. 2024; nomic-embed-text-v1, -v1.5): post-norm, rotary positions, gated
// feed-forward. Two layouts: the published one with GPT-2's keys, and that of transformers 5.
#include <string>

#include "models/architectures/nomic_family.h"
#include "models/architectures/rotary.h"

namespace pozor {
namespace {

// Names of transformers.
LayerSpec NativeLayer(size_t index) {
  const std::string stem = "layers." + std::to_string(index) + ".";
  LayerSpec layer;
  layer.query = DenseWith(stem + "self_attn.q_proj", false);
  layer.key = DenseWith(stem + "self_attn.k_proj", false);
  layer.value = DenseWith(stem + "self_attn.v_proj", false);
  layer.attention_output = DenseWith(stem + "self_attn.o_proj", false);
  layer.attention_norm = Norm(stem + "post_attention_layernorm");
  layer.ffn_up = DenseWith(stem + "mlp.up_proj", false);
  layer.ffn_gate = DenseWith(stem + "mlp.gate_proj", false);
  layer.ffn_down = DenseWith(stem + "mlp.down_proj", false);
  layer.ffn_norm = Norm(stem + "post_mlp_layernorm");
  layer.rotary = 0;
  return layer;
}

EncoderSpec NativeKeys(Config& config) {
  EncoderSpec spec = ReadSizes(config, {});
  spec.activation =
      config.ActivationOr("hidden_act", "silu", "activation of the feed-forward's gate");
  spec.norm_epsilon = config.PositiveOr("layer_norm_eps", 1e-12, "epsilon of every LayerNorm");
  config.Refuse("head_dim", "a head size of its own", {std::to_string(spec.head_dim)});
  spec.rotaries = {ReadRotary(config, spec.head_dim, {.absent_theta = 1000})};
  UseRotaryPositions(&spec);
  return spec;
}

EncoderSpec MakeSpec(Config& config, const WeightReader& weights) {
  NomicForm form;
  EncoderSpec spec = config.Has("n_embd") ? NomicHubKeys(config, &form) : NativeKeys(config);
  for (const std::string_view key : {"moe_every_n_layers", "num_experts"}) {
    config.Refuse(key, "experts in this layout", {"0"});
  }
  const bool native = weights.Has("layers.0.self_attn.q_proj.weight");
  ReadNomicEmbeddings(config, native ? "embeddings.LayerNorm" : "emb_ln", &spec);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = native ? NativeLayer(i) : NomicHubLayer(i, spec.hidden, form);
  }
  return spec;
}

}  // namespace

extern const Architecture kNomicBert;
const Architecture kNomicBert = {
    .model_type = "nomic_bert",
    .class_name = "NomicBert",
    .description = "NomicBERT",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kNomicPassengers,
};

}  // namespace pozor
