// NomicBERT (Nussbaum et al. 2024; nomic-embed-text-v1, -v1.5): post-norm, rotary positions, gated
// feed-forward. Two layouts: the published one with GPT-2's keys, and that of transformers 5.
#include <algorithm>
#include <string>

#include "models/architectures/architecture.h"
#include "models/architectures/rotary.h"

namespace pozor {
namespace {

constexpr std::string_view kPassengers[] = {
    "cls.*", "pooler.*", "classifier.*", "*.rotary_emb.inv_freq", "embeddings.position_ids",
};

struct Biases {
  bool qkv = false, up = false, down = false;
};

// Names of nomic-ai's own code.
LayerSpec HubLayer(size_t index, size_t hidden, const Biases& biases) {
  const std::string stem = "encoder.layers." + std::to_string(index) + ".";
  LayerSpec layer;
  const LinearRef qkv = DenseWith(stem + "attn.Wqkv", biases.qkv);
  layer.query = PartOf(qkv, 0, hidden, 3);
  layer.key = PartOf(qkv, 1, hidden, 3);
  layer.value = PartOf(qkv, 2, hidden, 3);
  layer.attention_output = DenseWith(stem + "attn.out_proj", biases.qkv);
  layer.attention_norm = Norm(stem + "norm1");
  layer.ffn_up = DenseWith(stem + "mlp.fc11", biases.up);
  layer.ffn_gate = DenseWith(stem + "mlp.fc12", biases.up);
  layer.ffn_down = DenseWith(stem + "mlp.fc2", biases.down);
  layer.ffn_norm = Norm(stem + "norm2");
  return layer;
}

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
  return layer;
}

EncoderSpec HubKeys(Config& config, Biases* biases) {
  EncoderSpec spec = ReadSizes(config, {"n_embd", "n_head", "n_layer", "n_inner", "n_positions"});
  const std::string activation =
      config.TextOr("activation_function", "swiglu", "activation of the feed-forward's gate");
  spec.activation = activation == "geglu" ? Activation::kGelu : Activation::kSilu;
  if (activation != "geglu" && activation != "swiglu") {
    config.Fail(Unsupported(config.name() + ": activation_function " + activation +
                            " is not supported; use a model with swiglu or geglu"));
  }
  spec.norm_epsilon = config.PositiveOr("layer_norm_epsilon", 1e-12, "epsilon of every LayerNorm");
  biases->qkv = config.FlagOr("qkv_proj_bias", false, "attention has biases");
  biases->up = config.FlagOr("mlp_fc1_bias", false, "the feed-forward has biases going up");
  biases->down = config.FlagOr("mlp_fc2_bias", false, "the feed-forward has biases going down");
  for (const std::string_view key :
       {"prenorm", "use_rms_norm", "parallel_block", "causal", "rotary_emb_scale_base",
        "moe_every_n_layers", "num_experts"}) {
    config.Refuse(key, "this variant of NomicBERT", {"0"});
  }
  config.Refuse("rotary_emb_fraction", "a rotation of part of each head", {"1", "1.0"});
  config.Demand("scale_attn_weights", "scores over sqrt(head size)");
  RotarySpec rotary = ReadRotary(config, spec.head_dim, {.theta = "rotary_emb_base"});
  if (config.FlagOr("rotary_emb_interleaved", false, "neighbouring columns turn together")) {
    rotary.pairs = RotaryPairs::kInterleaved;
  }
  spec.rotaries = {rotary};
  UseRotaryPositions(&spec);
  // Longer texts would turn by other angles, depending on their length.
  const size_t trained = config.SizeOr("max_trained_positions", 2048, kMostPositions,
                                       "longest text if there is a rotary_scaling_factor");
  if (config.PositiveOr("rotary_scaling_factor", 1, "limits texts to max_trained_positions") != 1) {
    spec.token_limit = std::min(spec.token_limit, trained);
  }
  return spec;
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
  Biases biases;
  EncoderSpec spec = config.Has("n_embd") ? HubKeys(config, &biases) : NativeKeys(config);
  EmbeddingSpec& embeddings = spec.embeddings;
  embeddings.word.name = "embeddings.word_embeddings.weight";
  embeddings.type_count =
      config.SizeOr("type_vocab_size", 2, kMostVocabulary, "rows of the segment table");
  if (embeddings.type_count > 0) embeddings.type.name = "embeddings.token_type_embeddings.weight";
  const bool native = weights.Has("layers.0.self_attn.q_proj.weight");
  embeddings.norm = Norm(native ? "embeddings.LayerNorm" : "emb_ln");
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = native ? NativeLayer(i) : HubLayer(i, spec.hidden, biases);
    spec.layers[i].rotary = 0;
  }
  constexpr std::string_view kNoEffect[] = {
      "pad_vocab_size_multiple", "parallel_block_tied_norm", "use_flash_attn",
      "fused_bias_fc",           "fused_dropout_add_ln",     "dense_seq_output",
      "max_position_embeddings", "last_layer_subset",        "use_xentropy",
      "rotary_emb_dim",
  };
  config.Ignore(kNoEffect, "without effect on hidden states");
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
    .passengers = kPassengers,
};

}  // namespace pozor
