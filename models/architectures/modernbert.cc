// ModernBERT (Warner et al. 2024): pre-norm, gated feed-forward, rotary positions; most layers see
// a window, every few see all.
#include <string>
#include <vector>

#include "models/architectures/decoder.h"
#include "models/architectures/rotary.h"

namespace pozor {
namespace {

constexpr std::string_view kPassengers[] = {"head.*", "decoder.*", "classifier.*"};

struct Biases {
  bool norm, attention, mlp;
};

LayerSpec Layer(size_t index, const EncoderSpec& spec, const Biases& biases) {
  const std::string stem = "layers." + std::to_string(index) + ".";
  LayerSpec layer;
  const LinearRef qkv = DenseWith(stem + "attn.Wqkv", biases.attention);
  layer.query = PartOf(qkv, 0, spec.hidden, 3);
  layer.key = PartOf(qkv, 1, spec.hidden, 3);
  layer.value = PartOf(qkv, 2, spec.hidden, 3);
  layer.attention_output = DenseWith(stem + "attn.Wo", biases.attention);
  if (index > 0) layer.attention_norm = NormWith(stem + "attn_norm", biases.norm);
  const LinearRef wi = DenseWith(stem + "mlp.Wi", biases.mlp);
  layer.ffn_gate = PartOf(wi, 0, spec.intermediate, 2);
  layer.ffn_up = PartOf(wi, 1, spec.intermediate, 2);
  layer.ffn_down = DenseWith(stem + "mlp.Wo", biases.mlp);
  layer.ffn_norm = NormWith(stem + "mlp_norm", biases.norm);
  return layer;
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  EncoderSpec spec = ReadSizes(config, {});
  spec.activation =
      config.ActivationOr("hidden_activation", "gelu", "activation of the feed-forward's gate");
  spec.norm_epsilon = config.PositiveOr("norm_eps", 1e-5, "epsilon of every norm");
  spec.norm_place = NormPlace::kPre;
  UseRotaryPositions(&spec);
  const Biases biases = {config.FlagOr("norm_bias", false, "norms have a shift"),
                         config.FlagOr("attention_bias", false, "attention has biases"),
                         config.FlagOr("mlp_bias", false, "the feed-forward has biases")};
  spec.embeddings.word.name = "embeddings.tok_embeddings.weight";
  spec.embeddings.norm = NormWith("embeddings.norm", biases.norm);
  spec.final_norm = NormWith("final_norm", biases.norm);

  RotaryKeys keys = {.theta = "global_rope_theta", .absent_theta = 160000};
  spec.rotaries.push_back(ReadRotary(config, spec.head_dim, keys));
  keys = {"sliding_attention", "local_rope_theta", 10000};
  if (config.Has("global_rope_theta")) keys.absent_theta = spec.rotaries[0].theta;
  spec.rotaries.push_back(ReadRotary(config, spec.head_dim, keys));
  const size_t window = config.SizeOr("local_attention", 128, kMostPositions,
                                      "width of the window: half of it to either side") /
                        2;
  const size_t every = config.SizeOr("global_attn_every_n_layers", 3, kMostLayers,
                                     "every such layer sees all tokens, the others a window");
  const std::vector<bool> sliding = ReadSliding(
      config, spec.layers.size(), [every](size_t i) { return every != 0 && i % every != 0; });
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = Layer(i, spec, biases);
    spec.layers[i].rotary = sliding[i] ? 1 : 0;
    if (sliding[i]) spec.layers[i].window = window;
  }
  constexpr std::string_view kNoEffect[] = {
      "position_embedding_type",
      "layer_norm_eps",
      "cls_token_id",
      "decoder_bias",
      "deterministic_flash_attn",
      "initializer_cutoff_factor",
      "sparse_prediction",
      "sparse_pred_ignore_index",
      "reference_compile",
      "repad_logits_with_grad",
      "hidden_act",
      "type_vocab_size",
  };
  config.Ignore(kNoEffect, "without effect on hidden states");
  return spec;
}

}  // namespace

extern const Architecture kModernBert;
const Architecture kModernBert = {
    .model_type = "modernbert",
    .class_name = "ModernBert",
    .description = "ModernBERT",
    .make_spec = MakeSpec,
    .anchor = "embeddings.tok_embeddings.weight",
    .passengers = kPassengers,
};

}  // namespace pozor
