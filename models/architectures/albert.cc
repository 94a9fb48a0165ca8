// ALBERT (Lan et al. 2019): groups of layers that are used again and again, under embeddings of
// their own size.
#include <string>

#include "models/architectures/bert_family.h"

namespace pozor {
namespace {

constexpr std::string_view kAlbertPassengers[] = {
    "embeddings.position_ids", "pooler.*", "predictions.*", "classifier.*", "qa_outputs.*",
    "sop_classifier.*",
};

LayerSpec Layer(const std::string& stem) {
  LayerSpec layer;
  layer.query = Dense(stem + "attention.query");
  layer.key = Dense(stem + "attention.key");
  layer.value = Dense(stem + "attention.value");
  layer.attention_output = Dense(stem + "attention.dense");
  layer.attention_norm = Norm(stem + "attention.LayerNorm");
  layer.ffn_up = Dense(stem + "ffn");
  layer.ffn_down = Dense(stem + "ffn_output");
  layer.ffn_norm = Norm(stem + "full_layer_layer_norm");
  return layer;
}

// The layers in the order in which they are computed: step i takes all of its group in turn.
std::vector<LayerSpec> Layers(size_t steps, size_t groups, size_t inner) {
  std::vector<LayerSpec> layers;
  for (size_t step = 0; step < steps; ++step) {
    const size_t group = step * groups / steps;
    const size_t first = (group * steps + groups - 1) / groups;  // the first step of this group
    for (size_t i = 0; i < inner; ++i) {
      layers.push_back(Layer("encoder.albert_layer_groups." + std::to_string(group) +
                             ".albert_layers." + std::to_string(i) + "."));
      if (step != first) layers.back().same_as = first * inner + i;
    }
  }
  return layers;
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  EncoderSpec spec = BertSpec(config);
  spec.activation = config.ActivationOr("hidden_act", "gelu_new", "");
  spec.embeddings.size = config.SizeOr("embedding_size", 128, kMostHidden,
                                       "columns of the tables; projected to hidden_size");
  spec.embeddings.projection = Dense("encoder.embedding_hidden_mapping_in");
  const size_t groups =
      config.SizeOr("num_hidden_groups", 1, kMostLayers, "groups that the layers share");
  const size_t inner = config.SizeOr("inner_group_num", 1, kMostLayers, "layers of a group");
  config.Refuse("net_structure_type", "another structure", {"0"});
  config.Refuse("gap_size", "a gap between groups", {"0"});
  config.Refuse("num_memory_blocks", "memory blocks", {"0"});
  config.Refuse("down_scale_factor", "scaling between groups", {"1"});
  const size_t steps = spec.layers.size();
  if (groups == 0 || inner == 0 || groups > steps || steps * inner > kMostLayers) {
    config.Fail(Corrupt(config.name() + ": num_hidden_groups " + std::to_string(groups) +
                        " of inner_group_num " + std::to_string(inner) +
                        " do not make num_hidden_layers " + std::to_string(steps) +
                        "; check the configuration"));
    return spec;
  }
  spec.layers = Layers(steps, groups, inner);
  return spec;
}

}  // namespace

extern const Architecture kAlbert;
const Architecture kAlbert = {
    .model_type = "albert",
    .class_name = "Albert",
    .description = "ALBERT",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kAlbertPassengers,
    .pooler_weight = "pooler.weight",
    .pooler_bias = "pooler.bias",
};

}  // namespace pozor
