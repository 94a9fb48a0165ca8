// MPNet (Song et al. 2020): positions as in RoBERTa, and a learned bias for each bucket of
// distances that all layers share.
#include "models/architectures/bert_family.h"

namespace pozor {
namespace {

constexpr size_t kPadding = 1;  // fixed in the reference, whatever pad_token_id says

LayerSpec Layer(const std::string& stem) {
  LayerSpec layer = BertLayer(stem);
  layer.query = Dense(stem + "attention.attn.q");
  layer.key = Dense(stem + "attention.attn.k");
  layer.value = Dense(stem + "attention.attn.v");
  layer.attention_output = Dense(stem + "attention.attn.o");
  layer.attention_norm = Norm(stem + "attention.LayerNorm");
  return layer;
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  EncoderSpec spec = BertSpec(config);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = Layer("encoder.layer." + std::to_string(i) + ".");
  }
  spec.embeddings.type = {};
  spec.embeddings.type_count = 0;
  spec.embeddings.position_offset = kPadding + 1;
  spec.embeddings.position_skips_id = kPadding;
  spec.score_bias.kind = ScoreBias::kBuckets;
  spec.score_bias.table.name = "encoder.relative_attention_bias.weight";
  spec.score_bias.buckets = config.SizeOr("relative_attention_num_buckets", 32, kMostPositions,
                                          "buckets of distances, each with a learned bias");
  return spec;
}

}  // namespace

extern const Architecture kMpnet;
const Architecture kMpnet = {
    .model_type = "mpnet",
    .class_name = "MPNet",
    .description = "MPNet",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kBertPassengers,
    .pooler_weight = "pooler.dense.weight",
    .pooler_bias = "pooler.dense.bias",
};

}  // namespace pozor
