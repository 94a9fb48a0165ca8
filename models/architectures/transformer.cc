// The encoder of Vaswani et al. 2017 as weights of torch.nn.TransformerEncoder, with a config.json
// of our own: docs/models.md lists its keys.
#include <cmath>

#include "models/architectures/architecture.h"

namespace pozor {
namespace {

LayerSpec Layer(const std::string& stem, size_t hidden) {
  LayerSpec layer;
  LinearRef fused;
  fused.weight.name = stem + "self_attn.in_proj_weight";
  fused.bias.name = stem + "self_attn.in_proj_bias";
  layer.query = PartOf(fused, 0, hidden, 3);
  layer.key = PartOf(fused, 1, hidden, 3);
  layer.value = PartOf(fused, 2, hidden, 3);
  layer.attention_output = Dense(stem + "self_attn.out_proj");
  layer.attention_norm = Norm(stem + "norm1");
  layer.ffn_up = Dense(stem + "linear1");
  layer.ffn_down = Dense(stem + "linear2");
  layer.ffn_norm = Norm(stem + "norm2");
  return layer;
}

PositionKind ReadPositions(Config& config) {
  const std::string kind =
      config.TextOr("positional_encoding", "sinusoidal-interleaved", "what is added to word rows");
  if (kind == "sinusoidal-interleaved") return PositionKind::kSinusoidalInterleaved;
  if (kind == "sinusoidal-halves") return PositionKind::kSinusoidalHalves;
  if (kind != "none") {
    config.Fail(Unsupported(config.name() + ": positional_encoding " + kind +
                            " is not supported; use sinusoidal-interleaved, sinusoidal-halves or "
                            "none"));
  }
  return PositionKind::kNone;
}

EncoderSpec MakeSpec(Config& config, const WeightReader& weights) {
  SizeKeys keys;
  keys.hidden = "d_model";
  keys.heads = "num_heads";
  keys.layers = "num_layers";
  keys.intermediate = "d_ff";
  EncoderSpec spec = ReadSizes(config, keys);
  spec.activation = config.ActivationOr("activation", "relu", "activation of the feed-forward");
  spec.norm_epsilon = config.PositiveOr("layer_norm_eps", 1e-5, "epsilon of every LayerNorm");
  if (config.FlagOr("norm_first", false, "true: norms before the sublayers, else after")) {
    spec.norm_place = NormPlace::kPre;
  }
  const std::string stem = weights.Has("encoder.layers.0.linear1.weight") ? "encoder." : "";
  if (config.FlagOr("final_norm", false, "a norm after the last layer")) {
    spec.final_norm = Norm(stem + "norm");
  }
  spec.embeddings.position_kind = ReadPositions(config);
  spec.embeddings.word.name = "embedding.weight";
  if (config.FlagOr("scale_embedding", true, "word rows times sqrt(d_model)")) {
    spec.embeddings.word_scale = std::sqrt(static_cast<float>(spec.hidden));
  }
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = Layer(stem + "layers." + std::to_string(i) + ".", spec.hidden);
  }
  return spec;
}

}  // namespace

extern const Architecture kTransformer;
const Architecture kTransformer = {
    .model_type = "transformer-encoder",
    .class_name = "TransformerEncoder",
    .description = "the original Transformer encoder (torch.nn.TransformerEncoder)",
    .make_spec = MakeSpec,
    .anchor = "embedding.weight",
};

}  // namespace pozor
