#include "models/architectures/nomic_family.h"

#include <algorithm>

#include "models/architectures/rotary.h"

namespace pozor {
namespace {

RotarySpec HubRotary(Config& config, size_t head_dim) {
  config.Refuse("rotary_emb_fraction", "a rotation of part of each head", {"1", "1.0"});
  if (!config.Has("rotary_emb_fraction")) {
    config.Fail(Unsupported(config.name() + ": without rotary_emb_fraction no head turns, which " +
                            "is not supported; use a model that states it as 1"));
  }
  RotarySpec rotary =
      ReadRotary(config, head_dim, {.theta = "rotary_emb_base", .absent_theta = 1000});
  if (config.FlagOr("rotary_emb_interleaved", false, "neighbouring columns turn together")) {
    rotary.pairs = RotaryPairs::kInterleaved;
  }
  return rotary;
}

// "swiglu", "geglu", or the activation of a feed-forward without a gate.
void ReadActivation(Config& config, EncoderSpec* spec, NomicForm* form) {
  const std::string name = config.TextOr("activation_function", "gelu_new",
                                         "activation of the feed-forward; swiglu, geglu: gated");
  form->gated = name == "swiglu" || name == "geglu";
  if (form->gated) {
    spec->activation = name == "geglu" ? Activation::kGelu : Activation::kSilu;
  } else {
    spec->activation =
        config.ActivationOr("activation_function", "gelu_new", "of the feed-forward");
  }
}

// With a rotary_scaling_factor, of 1 as well, longer texts would turn by other angles, depending on
// their length.
void LimitLength(Config& config, EncoderSpec* spec) {
  const size_t trained = config.SizeOr("max_trained_positions", 2048, kMostPositions,
                                       "longest text if there is a rotary_scaling_factor");
  config.PositiveOr("rotary_scaling_factor", 1, "limits texts to max_trained_positions");
  const bool is_null =
      config.Mentions("rotary_scaling_factor") && !config.Has("rotary_scaling_factor");
  if (is_null) return;
  if (trained == 0) {
    config.Fail(Unsupported(config.name() + ": max_trained_positions is 0, and with a " +
                            "rotary_scaling_factor it is the longest text; correct one of them"));
  }
  spec->token_limit = std::min(spec->token_limit, trained);
}

}  // namespace

// Absent keys have the values of nomic-ai's configuration class and of GPT-2's, which it extends.
EncoderSpec NomicHubKeys(Config& config, NomicForm* form) {
  EncoderSpec spec = ReadSizes(config, {"n_embd", "n_head", "n_layer", "n_inner", "n_positions"});
  ReadActivation(config, &spec, form);
  spec.norm_epsilon = config.PositiveOr("layer_norm_epsilon", 1e-5, "epsilon of every LayerNorm");
  form->qkv_bias = config.FlagOr("qkv_proj_bias", true, "attention has biases");
  form->up_bias = config.FlagOr("mlp_fc1_bias", true, "the feed-forward has biases going up");
  form->down_bias = config.FlagOr("mlp_fc2_bias", true, "the feed-forward has biases going down");
  for (const std::string_view key :
       {"prenorm", "use_rms_norm", "parallel_block", "causal", "rotary_emb_scale_base"}) {
    config.Refuse(key, "this variant of NomicBERT", {"0"});
  }
  config.Demand("scale_attn_weights", "scores over sqrt(head size)");
  spec.rotaries = {HubRotary(config, spec.head_dim)};
  UseRotaryPositions(&spec);
  LimitLength(config, &spec);
  return spec;
}

void ReadNomicEmbeddings(Config& config, const std::string& norm, EncoderSpec* spec) {
  EmbeddingSpec& embeddings = spec->embeddings;
  embeddings.word.name = "embeddings.word_embeddings.weight";
  embeddings.type_count =
      config.SizeOr("type_vocab_size", 2, kMostVocabulary, "rows of the segment table");
  if (embeddings.type_count > 0) embeddings.type.name = "embeddings.token_type_embeddings.weight";
  embeddings.norm = Norm(norm);
  constexpr std::string_view kNoEffect[] = {
      "pad_vocab_size_multiple", "parallel_block_tied_norm", "use_flash_attn",
      "fused_bias_fc",           "fused_dropout_add_ln",     "dense_seq_output",
      "max_position_embeddings", "last_layer_subset",        "use_xentropy",
      "rotary_emb_dim",
  };
  config.Ignore(kNoEffect, "without effect on hidden states");
}

LayerSpec NomicHubLayer(size_t index, size_t hidden, const NomicForm& form) {
  const std::string stem = "encoder.layers." + std::to_string(index) + ".";
  LayerSpec layer;
  const LinearRef qkv = DenseWith(stem + "attn.Wqkv", form.qkv_bias);
  layer.query = PartOf(qkv, 0, hidden, 3);
  layer.key = PartOf(qkv, 1, hidden, 3);
  layer.value = PartOf(qkv, 2, hidden, 3);
  layer.attention_output = DenseWith(stem + "attn.out_proj", form.qkv_bias);
  layer.attention_norm = Norm(stem + "norm1");
  layer.ffn_up = DenseWith(stem + (form.gated ? "mlp.fc11" : "mlp.fc1"), form.up_bias);
  if (form.gated) layer.ffn_gate = DenseWith(stem + "mlp.fc12", form.up_bias);
  layer.ffn_down = DenseWith(stem + "mlp.fc2", form.down_bias);
  layer.ffn_norm = Norm(stem + "norm2");
  layer.rotary = 0;
  return layer;
}

}  // namespace pozor
