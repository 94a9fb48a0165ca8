#include "models/architectures/decoder.h"

#include <algorithm>

#include "engine/distances.h"
#include "models/architectures/rotary.h"

namespace pozor {
namespace {

struct Biases {
  bool qkv, output, ffn;
};

LinearRef DenseWith(bool bias, const std::string& stem) {
  LinearRef ref = Dense(stem);
  if (!bias) ref.bias = {};
  return ref;
}

NormRef Gain(const std::string& stem) {
  NormRef ref = Norm(stem);
  ref.beta = {};
  return ref;
}

LayerSpec Layer(const std::string& stem, const Biases& biases, bool head_norms) {
  LayerSpec layer;
  const std::string attention = stem + "self_attn.", ffn = stem + "mlp.";
  layer.query = DenseWith(biases.qkv, attention + "q_proj");
  layer.key = DenseWith(biases.qkv, attention + "k_proj");
  layer.value = DenseWith(biases.qkv, attention + "v_proj");
  layer.attention_output = DenseWith(biases.output, attention + "o_proj");
  layer.attention_norm = Gain(stem + "input_layernorm");
  if (head_norms) {
    layer.query_norm = Gain(attention + "q_norm");
    layer.key_norm = Gain(attention + "k_norm");
  }
  layer.ffn_gate = DenseWith(biases.ffn, ffn + "gate_proj");
  layer.ffn_up = DenseWith(biases.ffn, ffn + "up_proj");
  layer.ffn_down = DenseWith(biases.ffn, ffn + "down_proj");
  layer.ffn_norm = Gain(stem + "post_attention_layernorm");
  return layer;
}

}  // namespace

EncoderSpec DecoderSpec(Config& config, const DecoderDefaults& defaults) {
  SizeKeys keys;
  keys.head_dim = "head_dim";
  keys.absent_head_dim = defaults.head_dim;
  EncoderSpec spec = ReadSizes(config, keys);
  spec.token_limit = std::min(spec.embeddings.max_positions, kLongestDistance);
  spec.embeddings.position_kind = PositionKind::kNone;
  spec.embeddings.word.name = "embed_tokens.weight";
  if (config.Has("num_key_value_heads")) {
    spec.kv_heads = config.Size("num_key_value_heads", kMostHeads,
                                "heads of keys and values, shared by groups of query heads");
  }
  spec.activation = config.ActivationOr(defaults.activation_key, defaults.activation,
                                        "activation of the feed-forward's gate");
  spec.norm_kind = NormKind::kRmsNorm;
  spec.norm_place = NormPlace::kPre;
  spec.norm_epsilon =
      config.PositiveOr("rms_norm_eps", defaults.norm_epsilon, "epsilon of every RMSNorm");
  spec.final_norm = Gain("norm");

  Biases biases;
  biases.output = config.FlagOr("attention_bias", false, "biases of Q, K, V and output");
  biases.qkv = biases.output || defaults.qkv_biases;
  biases.ffn = config.FlagOr("mlp_bias", false, "biases of the feed-forward");
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = Layer("layers." + std::to_string(i) + ".", biases, defaults.head_norms);
  }
  constexpr std::string_view kNoEffect[] = {"pretraining_tp", "cache_implementation"};
  config.Ignore(kNoEffect, "changes no f32 result");
  return spec;
}

std::vector<bool> ReadSliding(Config& config, size_t layers,
                              const std::function<bool(size_t)>& absent) {
  const std::vector<std::string> types =
      config.Texts("layer_types", "which layers look through a window");
  std::vector<bool> sliding(layers);
  if (!config.Has("layer_types")) {
    for (size_t i = 0; i < layers; ++i) sliding[i] = absent(i);
    return sliding;
  }
  if (types.size() != layers) {
    config.Fail(Corrupt(config.name() + ": layer_types has " + std::to_string(types.size()) +
                        " entries for " + std::to_string(layers) +
                        " layers; check the configuration"));
    return sliding;
  }
  for (size_t i = 0; i < layers; ++i) {
    sliding[i] = types[i] == "sliding_attention";
    if (sliding[i] || types[i] == "full_attention") continue;
    config.Fail(Unsupported(config.name() + ": layer_types has \"" + types[i] +
                            "\", this kind of layer is not supported; use another model"));
  }
  return sliding;
}

void ReadCausalAndRotation(Config& config, EncoderSpec* spec) {
  config.Refuse("auto_map", "a model that brings its own code");
  spec->causal = config.FlagOr("is_causal", true, "true: a token sees only those before it");
  spec->rotaries = {ReadRotary(config, spec->head_dim)};
  for (LayerSpec& layer : spec->layers) layer.rotary = 0;
}

// The window looks back from a token, which is in it.
void ReadQwenWindows(Config& config, EncoderSpec* spec) {
  const bool uses = config.FlagOr("use_sliding_window", false, "true: some layers have a window");
  const size_t window =
      config.SizeOr("sliding_window", 4096, kMostPositions, "tokens that a sliding layer sees");
  const size_t first = config.SizeOr("max_window_layers", 28, kMostPositions,
                                     "the first layer with a window, without layer_types");
  const std::vector<bool> sliding =
      ReadSliding(config, spec->layers.size(), [&](size_t i) { return uses && i >= first; });
  for (size_t i = 0; i < sliding.size(); ++i) {
    if (!sliding[i]) continue;
    if (uses && window > 0 && spec->causal) {
      spec->layers[i].window = window - 1;
      continue;
    }
    config.Fail(Unsupported(config.name() +
                            ": layer_types has \"sliding_attention\", such a layer "
                            "without a sliding_window or without a causal mask is not supported; "
                            "use another model"));
  }
}

}  // namespace pozor
