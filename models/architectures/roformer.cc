// RoFormer (Su et al. 2021): BERT whose queries and keys turn by their positions.
#include "models/architectures/bert_family.h"
#include "models/architectures/rotary.h"

namespace pozor {
namespace {

constexpr std::string_view kPassengers[] = {"pooler.*", "cls.*", "classifier.*", "qa_outputs.*"};

EncoderSpec MakeSpec(Config& config, const WeightReader& weights) {
  EncoderSpec spec = BertSpec(config, BertPositions::kOwn);
  UseRotaryPositions(&spec);
  spec.rotaries = {{.pairs = RotaryPairs::kInterleaved, .columns = spec.head_dim, .exact = true}};
  if (weights.Has("encoder.embed_positions.weight")) {
    spec.rotaries[0].table.name = "encoder.embed_positions.weight";
  }
  for (LayerSpec& layer : spec.layers) layer.rotary = 0;
  config.Refuse("rotary_value", "rotation of values");
  spec.embeddings.size = config.SizeOr("embedding_size", spec.hidden, kMostHidden,
                                       "columns of the tables; projected to hidden_size");
  if (spec.embeddings.size != spec.hidden) {
    spec.embeddings.projection = Dense("embeddings_project");
  }
  return spec;
}

}  // namespace

extern const Architecture kRoFormer;
const Architecture kRoFormer = {
    .model_type = "roformer",
    .class_name = "RoFormer",
    .description = "RoFormer",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kPassengers,
};

}  // namespace pozor
