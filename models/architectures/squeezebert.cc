// SqueezeBERT (Iandola et al. 2020): BERT whose products are convolutions of width 1 in groups.
#include "models/architectures/bert_family.h"

namespace pozor {
namespace {

LinearRef Convolution(const std::string& stem, size_t groups) {
  LinearRef ref = Dense(stem);
  ref.groups = groups;
  return ref;
}

struct Groups {
  size_t query, key, value, attention_output, up, down;
};

Groups ReadGroups(Config& config) {
  const auto groups = [&](const char* key, size_t absent) {
    if (!config.Has(key)) return absent;
    return config.Size(key, kMostHidden, "groups of the convolution");
  };
  return {groups("q_groups", 4),
          groups("k_groups", 4),
          groups("v_groups", 4),
          groups("post_attention_groups", 1),
          groups("intermediate_groups", 4),
          groups("output_groups", 4)};
}

LayerSpec Layer(const std::string& stem, const Groups& groups) {
  LayerSpec layer;
  layer.query = Convolution(stem + "attention.query", groups.query);
  layer.key = Convolution(stem + "attention.key", groups.key);
  layer.value = Convolution(stem + "attention.value", groups.value);
  layer.attention_output = Convolution(stem + "post_attention.conv1d", groups.attention_output);
  layer.attention_norm = Norm(stem + "post_attention.layernorm");
  layer.ffn_up = Convolution(stem + "intermediate.conv1d", groups.up);
  layer.ffn_down = Convolution(stem + "output.conv1d", groups.down);
  layer.ffn_norm = Norm(stem + "output.layernorm");
  return layer;
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  EncoderSpec spec = BertSpec(config);
  const size_t size =
      config.SizeOr("embedding_size", 768, kMostHidden, "columns of the embedding tables");
  if (size != spec.hidden) {
    config.Fail(Unsupported(config.name() + ": embedding_size " + std::to_string(size) +
                            " differs from hidden_size " + std::to_string(spec.hidden) +
                            ", which the reference refuses as well; check the configuration"));
  }
  const Groups groups = ReadGroups(config);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = Layer("encoder.layers." + std::to_string(i) + ".", groups);
  }
  return spec;
}

}  // namespace

extern const Architecture kSqueezeBert;
const Architecture kSqueezeBert = {
    .model_type = "squeezebert",
    .class_name = "SqueezeBert",
    .description = "SqueezeBERT",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kBertPassengers,
    .pooler_weight = "pooler.dense.weight",
    .pooler_bias = "pooler.dense.bias",
};

}  // namespace pozor
