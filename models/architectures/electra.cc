// ELECTRA (Clark et al. 2020): BERT's layers under embeddings of their own size, no pooler.
#include "models/architectures/bert_family.h"

namespace pozor {
namespace {

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  EncoderSpec spec = BertSpec(config);
  spec.embeddings.size = config.SizeOr("embedding_size", 128, kMostHidden,
                                       "columns of the tables; projected to hidden_size");
  if (spec.embeddings.size != spec.hidden) {
    spec.embeddings.projection = Dense("embeddings_project");
  }
  return spec;
}

}  // namespace

extern const Architecture kElectra;
const Architecture kElectra = {
    .model_type = "electra",
    .class_name = "Electra",
    .description = "ELECTRA",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kBertPassengers,
};

}  // namespace pozor
