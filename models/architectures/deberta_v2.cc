// DeBERTa-v2 and v3 (He et al. 2021): distances in logarithmic buckets, positions projected by the
// layers' own keys and queries, a convolution beside the first layer.
#include <string>

#include "models/architectures/deberta_family.h"

namespace pozor {
namespace {

void ReadBuckets(Config& config, RelativePositionSpec* positions) {
  const size_t buckets =
      config.SizeOrNone("position_buckets", kMostPositions,
                        "rows on either side that distances share in logarithmic steps; -1: none");
  bool normed = false;
  for (const std::string& part : config.Parts("norm_rel_ebd", "a norm of those rows, or none")) {
    normed = normed || part == "layer_norm";
    if (part == "layer_norm" || part == "none") continue;
    config.Fail(Unsupported(config.name() + ": norm_rel_ebd has \"" + part +
                            "\", only layer_norm and none are supported"));
  }
  if (positions->span == 0) return;
  if (normed) positions->norm = Norm("encoder.LayerNorm");
  if (buckets == 0) return;
  positions->rows = DistanceRows::kLogarithmic;
  positions->max_distance = positions->span;
  positions->span = buckets;
}

void ReadConvolution(Config& config, ConvolutionSpec* convolution) {
  const size_t taps = config.SizeOr("conv_kernel_size", 0, kMostPositions,
                                    "tokens that the convolution beside the first layer sees");
  convolution->activation =
      config.ActivationOr("conv_act", "tanh", "activation of that convolution");
  config.Refuse("conv_groups", "a convolution in groups", {"1"});
  if (taps == 0) return;
  convolution->linear = Dense("encoder.conv.conv");
  convolution->linear.taps = taps;
  convolution->norm = Norm("encoder.conv.LayerNorm");
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  SizeKeys keys;
  keys.head_dim = "attention_head_size";
  DebertaScores scores;
  EncoderSpec spec = DebertaSpec(config, keys, &scores);
  ReadBuckets(config, &spec.relative_positions);
  ReadConvolution(config, &spec.convolution);
  const bool shared =
      config.FlagOr("share_att_key", false, "true: keys and queries project positions as well");
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const std::string stem = "encoder.layer." + std::to_string(i) + ".attention.self.";
    LayerSpec& layer = spec.layers[i];
    layer.query = Dense(stem + "query_proj");
    layer.key = Dense(stem + "key_proj");
    layer.value = Dense(stem + "value_proj");
    if (scores.query_positions) {
      layer.position_key = shared ? layer.key : Dense(stem + "pos_key_proj");
    }
    if (scores.key_positions) {
      layer.position_query = shared ? layer.query : Dense(stem + "pos_query_proj");
    }
  }
  return spec;
}

}  // namespace

extern const Architecture kDebertaV2;
const Architecture kDebertaV2 = {
    .model_type = "deberta-v2",
    .class_name = "DebertaV2",
    .description = "DeBERTa-v2 and v3",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kDebertaPassengers,
};

}  // namespace pozor
