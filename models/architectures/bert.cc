// BERT (Devlin et al. 2018), as transformers' BertModel stores it. With is_decoder it is causal.
#include <string>

#include "models/architectures/architecture.h"

namespace pozor {
namespace {

constexpr std::string_view kPassengers[] = {
    "embeddings.position_ids",
    "embeddings.token_type_ids",
    "pooler.dense.*",
    "cls.*",
    "classifier.*",
    "dropout.*",
    "qa_outputs.*",

};

// Other models call themselves bert and mean their own code.
void RefuseLookAlikes(Config& config) {
  config.Refuse("auto_map", "a model that brings its own code (JinaBERT and the like)");
  config.Refuse("feed_forward_type", "the feed-forward of JinaBERT", {"original"});
  config.Refuse("emb_pooler", "the pooler of JinaBERT");
  config.Refuse("alibi", "ALiBi (linear attention biases)");
  config.Refuse("rotary_emb_base", "a rotary position embedding");
}

LayerSpec Layer(size_t index) {
  const std::string stem = "encoder.layer." + std::to_string(index) + ".";
  LayerSpec layer;
  layer.query = Dense(stem + "attention.self.query");
  layer.key = Dense(stem + "attention.self.key");
  layer.value = Dense(stem + "attention.self.value");
  layer.attention_output = Dense(stem + "attention.output.dense");
  layer.attention_norm = Norm(stem + "attention.output.LayerNorm");
  layer.ffn_up = Dense(stem + "intermediate.dense");
  layer.ffn_down = Dense(stem + "output.dense");
  layer.ffn_norm = Norm(stem + "output.LayerNorm");
  return layer;
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  EncoderSpec spec;
  spec.hidden = config.Size("hidden_size", kMostHidden, "columns of the hidden rows");
  spec.heads = config.Size("num_attention_heads", kMostHeads, "attention heads");
  spec.head_dim = spec.hidden / spec.heads;
  if (spec.hidden % spec.heads != 0) {
    config.Fail(Corrupt(config.name() + ": num_attention_heads " + std::to_string(spec.heads) +
                        " does not divide hidden_size " + std::to_string(spec.hidden) +
                        "; check the configuration"));
  }
  spec.intermediate =
      config.Size("intermediate_size", kMostIntermediate, "columns of the feed-forward");
  spec.activation = config.ActivationOr("hidden_act", "gelu", "activation of the feed-forward");
  spec.norm_epsilon = config.PositiveOr("layer_norm_eps", 1e-12, "epsilon of every LayerNorm");
  spec.causal = config.FlagOr("is_decoder", false, "true: a token sees only those before it");
  config.Refuse("add_cross_attention", "cross-attention");
  config.Refuse("position_embedding_type", "this kind of position embedding", {"absolute"});
  RefuseLookAlikes(config);

  EmbeddingSpec& embeddings = spec.embeddings;
  embeddings.vocab_size = config.Size("vocab_size", kMostVocabulary, "rows of the word table");
  embeddings.size = spec.hidden;
  embeddings.max_positions =
      config.Size("max_position_embeddings", kMostPositions, "rows of the position table");
  embeddings.type_count =
      config.SizeOr("type_vocab_size", 2, kMostVocabulary, "rows of the segment table");
  embeddings.position_kind = PositionKind::kLearned;
  embeddings.word.name = "embeddings.word_embeddings.weight";
  embeddings.position.name = "embeddings.position_embeddings.weight";
  if (embeddings.type_count > 0) embeddings.type.name = "embeddings.token_type_embeddings.weight";
  embeddings.norm = Norm("embeddings.LayerNorm");

  const size_t layers = config.Size("num_hidden_layers", kMostLayers, "layers");
  for (size_t i = 0; i < layers; ++i) spec.layers.push_back(Layer(i));
  return spec;
}

}  // namespace

extern const Architecture kBert;
const Architecture kBert = {
    .model_type = "bert",
    .class_name = "Bert",
    .description = "BERT",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kPassengers,
    .pooler_weight = "pooler.dense.weight",
    .pooler_bias = "pooler.dense.bias",
};

}  // namespace pozor
