// BigBird (Zaheer et al. 2020) with full attention, as transformers computes it for every text that
// is short beside its blocks.
#include <cmath>

#include "models/architectures/bert_family.h"

namespace pozor {
namespace {

// Tokens up to which transformers' block-sparse attention is full attention.
size_t FullAttentionTokens(Config& config) {
  const std::string type = config.TextOr("attention_type", "block_sparse",
                                         "full attention; block_sparse: up to (5 + 2 "
                                         "num_random_blocks) block_size tokens");
  const size_t block =
      config.SizeOr("block_size", 64, kMostPositions, "limits the tokens of block_sparse");
  const size_t random =
      config.SizeOr("num_random_blocks", 3, kMostPositions, "limits the tokens of block_sparse");
  if (type == "original_full") return 0;
  if (type != "block_sparse") {
    config.Fail(Unsupported(config.name() + ": attention_type " + type +
                            " is not supported; use original_full or block_sparse"));
  }
  return (5 + 2 * random) * block;
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  EncoderSpec spec = BertSpec(config);
  spec.activation = config.ActivationOr("hidden_act", "gelu_new", "");
  spec.token_limit = FullAttentionTokens(config);
  if (config.FlagOr("rescale_embeddings", false, "word rows times sqrt(hidden_size)")) {
    spec.embeddings.word_scale = std::sqrt(static_cast<float>(spec.hidden));
  }
  if (config.FlagOr("use_bias", true, "biases of query, key and value")) return spec;
  for (LayerSpec& layer : spec.layers) {
    for (LinearRef* linear : {&layer.query, &layer.key, &layer.value}) linear->bias = {};
  }
  return spec;
}

}  // namespace

extern const Architecture kBigBird;
const Architecture kBigBird = {
    .model_type = "big_bird",
    .class_name = "BigBird",
    .description = "BigBird, full attention",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kBertPassengers,
    .pooler_weight = "pooler.weight",
    .pooler_bias = "pooler.bias",
};

}  // namespace pozor
