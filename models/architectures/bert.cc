// BERT (Devlin et al. 2018), as transformers' BertModel stores it. With is_decoder it is causal.
#include "models/architectures/bert_family.h"

namespace pozor {
namespace {

// Other models call themselves bert and mean their own code.
void RefuseLookAlikes(Config& config) {
  config.Refuse("auto_map", "a model that brings its own code (JinaBERT and the like)");
  config.Refuse("feed_forward_type", "the feed-forward of JinaBERT", {"original"});
  config.Refuse("emb_pooler", "the pooler of JinaBERT");
  config.Refuse("alibi", "ALiBi (linear attention biases)");
  config.Refuse("rotary_emb_base", "a rotary position embedding");
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  RefuseLookAlikes(config);
  return BertSpec(config);
}

}  // namespace

extern const Architecture kBert;
const Architecture kBert = {
    .model_type = "bert",
    .class_name = "Bert",
    .description = "BERT",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kBertPassengers,
    .pooler_weight = "pooler.dense.weight",
    .pooler_bias = "pooler.dense.bias",
};

}  // namespace pozor
