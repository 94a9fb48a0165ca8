// RoBERTa (Liu et al. 2019), XLM-RoBERTa and CamemBERT: BERT with positions that count from the
// padding id.
#include "models/architectures/bert_family.h"

namespace pozor {
namespace {

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  EncoderSpec spec = BertSpec(config);
  CountPositionsFromPad(config, &spec);
  return spec;
}

constexpr Architecture Named(std::string_view model_type, std::string_view class_name,
                             std::string_view description) {
  return {
      .model_type = model_type,
      .class_name = class_name,
      .description = description,
      .make_spec = MakeSpec,
      .anchor = "embeddings.word_embeddings.weight",
      .passengers = kBertPassengers,
      .pooler_weight = "pooler.dense.weight",
      .pooler_bias = "pooler.dense.bias",
  };
}

}  // namespace

extern const Architecture kRoberta, kXlmRoberta, kCamembert;
const Architecture kRoberta = Named("roberta", "Roberta", "RoBERTa");
const Architecture kXlmRoberta = Named("xlm-roberta", "XLMRoberta", "XLM-RoBERTa");
const Architecture kCamembert = Named("camembert", "Camembert", "CamemBERT");

}  // namespace pozor
