// The encoder of T5 (Raffel et al. 2020), plain or gated (version 1.1, Shazeer 2020), and of mT5
// (Xue et al. 2021), which is gated: no positions but a learned bias for each bucket of distances,
// which all layers share; scores are not scaled.
#include "engine/distances.h"
#include "models/architectures/architecture.h"

namespace pozor {
namespace {

constexpr std::string_view kPassengers[] = {
    "decoder.*",    "lm_head.*",
    "classifier.*", "classification_head.*",
    "qa_outputs.*", "encoder.embed_tokens.weight",  // where shared.weight stands as well
};

LinearRef Weight(const std::string& stem) {
  return {.weight = {.name = stem + ".weight"}, .bias = {}};
}
NormRef Gain(const std::string& stem) { return {.gamma = {.name = stem + ".weight"}, .beta = {}}; }

LayerSpec Layer(const std::string& stem, bool gated) {
  const std::string attention = stem + "layer.0.SelfAttention.";
  const std::string ffn = stem + "layer.1.DenseReluDense.";
  LayerSpec layer;
  layer.query = Weight(attention + "q");
  layer.key = Weight(attention + "k");
  layer.value = Weight(attention + "v");
  layer.attention_output = Weight(attention + "o");
  layer.attention_norm = Gain(stem + "layer.0.layer_norm");
  if (gated) layer.ffn_gate = Weight(ffn + "wi_0");
  layer.ffn_up = Weight(ffn + (gated ? "wi_1" : "wi"));
  layer.ffn_down = Weight(ffn + "wo");
  layer.ffn_norm = Gain(stem + "layer.1.layer_norm");
  return layer;
}

// "relu", or "gated-" and the gate's activation; the GELU of a gate is the tanh form.
bool ReadFeedForward(Config& config, std::string_view absent, EncoderSpec* spec) {
  const std::string name =
      config.TextOr("feed_forward_proj", absent, "activation of the feed-forward, or of its gate");
  const bool gated = name.starts_with("gated-");
  const std::string activation = name == "gated-gelu" ? "gelu_new" : name.substr(gated ? 6 : 0);
  if (!ParseActivation(activation, &spec->activation)) {
    config.Fail(Unsupported(config.name() + ": feed_forward_proj is \"" + name +
                            "\", this kind of feed-forward is not supported; use another model"));
  }
  constexpr std::string_view kDerived[] = {"dense_act_fn", "is_gated_act"};
  config.Ignore(kDerived, "follows from feed_forward_proj");
  return gated;
}

void ReadBuckets(Config& config, EncoderSpec* spec) {
  spec->token_limit = kLongestDistance;  // the model has none
  spec->score_scale = 1;
  ScoreBiasSpec& bias = spec->score_bias;
  bias.kind = ScoreBias::kBuckets;
  bias.table.name = "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight";
  bias.buckets = config.SizeOr("relative_attention_num_buckets", 32, kMostPositions,
                               "buckets of distances, each with a learned bias");
  bias.max_distance = config.SizeOr("relative_attention_max_distance", 128, kMostPositions,
                                    "distances from here on share the last bucket");
}

EncoderSpec Make(Config& config, const WeightReader& weights, std::string_view feed_forward) {
  SizeKeys keys;
  keys.hidden = "d_model";
  keys.heads = "num_heads";
  keys.layers = "num_layers";
  keys.intermediate = "d_ff";
  keys.positions = "";
  keys.head_dim = "d_kv";
  keys.absent_head_dim = 64;
  EncoderSpec spec = ReadSizes(config, keys);
  const bool gated = ReadFeedForward(config, feed_forward, &spec);
  ReadBuckets(config, &spec);
  spec.norm_kind = NormKind::kRmsNorm;
  spec.norm_place = NormPlace::kPre;
  spec.norm_epsilon = config.PositiveOr("layer_norm_epsilon", 1e-6, "epsilon of every RMSNorm");
  constexpr std::string_view kDecoder[] = {"is_encoder_decoder", "num_decoder_layers",
                                           "scale_decoder_outputs"};
  config.Ignore(kDecoder, "of the decoder, which is not computed");
  constexpr std::string_view kUnused[] = {"n_positions", "dropout_rate"};
  config.Ignore(kUnused, "changes no vector: there is no position table, and no training");

  spec.embeddings.position_kind = PositionKind::kNone;
  const bool shared = weights.Has("shared.weight");
  spec.embeddings.word.name = shared ? "shared.weight" : "encoder.embed_tokens.weight";
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = Layer("encoder.block." + std::to_string(i) + ".", gated);
  }
  spec.final_norm = Gain("encoder.final_layer_norm");
  return spec;
}

EncoderSpec MakeT5(Config& config, const WeightReader& weights) {
  return Make(config, weights, "relu");
}

EncoderSpec MakeMt5(Config& config, const WeightReader& weights) {
  return Make(config, weights, "gated-gelu");
}

}  // namespace

extern const Architecture kT5, kMt5;
const Architecture kT5 = {
    .model_type = "t5",
    .class_name = "T5",
    .description = "T5, the encoder",
    .make_spec = MakeT5,
    .anchor = "encoder.block.0.layer.0.SelfAttention.q.weight",
    .passengers = kPassengers,
};
const Architecture kMt5 = {
    .model_type = "mt5",
    .class_name = "MT5",
    .description = "mT5, the encoder",
    .make_spec = MakeMt5,
    .anchor = "encoder.block.0.layer.0.SelfAttention.q.weight",
    .passengers = kPassengers,
};

}  // namespace pozor
