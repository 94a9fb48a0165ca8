// jina-embeddings-v3 (Sturua et al. 2024): XLM-RoBERTa's sizes with rotary positions, in the layout
// of its own code. Adapters are merged before (models/tasks.h).
#include "models/architectures/architecture.h"
#include "models/architectures/rotary.h"

namespace pozor {
namespace {

constexpr std::string_view kPassengers[] = {
    "pooler.*", "lm_head.*", "classifier.*", "*.lora_A", "*.lora_B", "*.rotary_emb.*",
};

// The weight itself where adapters stand beside it.
LinearRef Adapted(const std::string& stem, const WeightReader& weights) {
  LinearRef ref = Dense(stem);
  const std::string original = stem + ".parametrizations.weight.original";
  if (weights.Has(original)) ref.weight.name = original;
  return ref;
}

LayerSpec Layer(size_t index, size_t hidden, const WeightReader& weights) {
  const std::string stem = "encoder.layers." + std::to_string(index) + ".";
  LayerSpec layer;
  const LinearRef qkv = Adapted(stem + "mixer.Wqkv", weights);
  layer.query = PartOf(qkv, 0, hidden, 3);
  layer.key = PartOf(qkv, 1, hidden, 3);
  layer.value = PartOf(qkv, 2, hidden, 3);
  layer.attention_output = Adapted(stem + "mixer.out_proj", weights);
  layer.attention_norm = Norm(stem + "norm1");
  layer.ffn_up = Adapted(stem + "mlp.fc1", weights);
  layer.ffn_down = Adapted(stem + "mlp.fc2", weights);
  layer.ffn_norm = Norm(stem + "norm2");
  layer.rotary = 0;
  return layer;
}

EncoderSpec MakeSpec(Config& config, const WeightReader& weights) {
  EncoderSpec spec = ReadSizes(config, {});
  spec.activation = config.ActivationOr("hidden_act", "gelu", "activation of the feed-forward");
  spec.norm_epsilon = config.PositiveOr("layer_norm_eps", 1e-5, "epsilon of every LayerNorm");
  config.Refuse("position_embedding_type", "this kind of position embedding", {"rotary"});
  const RotaryKeys keys = {.theta = "rotary_emb_base", .absent_theta = 20000};
  spec.rotaries = {ReadRotary(config, spec.head_dim, keys)};
  UseRotaryPositions(&spec);
  EmbeddingSpec& embeddings = spec.embeddings;
  embeddings.word.name = Adapted("embeddings.word_embeddings", weights).weight.name;
  embeddings.type_count =
      config.SizeOr("type_vocab_size", 1, kMostVocabulary, "rows of the segment table");
  embeddings.type.name = Adapted("embeddings.token_type_embeddings", weights).weight.name;
  embeddings.norm = Norm("emb_ln");
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = Layer(i, spec.hidden, weights);
  }
  config.Texts("lora_adaptations", "tasks with an adapter each; one of them may be chosen");
  config.PositiveOr("lora_rank", 4, "rank of the adapters");
  config.PositiveOr("lora_alpha", 1, "adapters count lora_alpha / lora_rank times");
  constexpr std::string_view kOfAdapters[] = {"lora_dropout_p", "lora_main_params_trainable",
                                              "load_trained_adapters"};
  config.Ignore(kOfAdapters, "of the training of adapters");
  constexpr std::string_view kInstructions[] = {"task_instructions"};
  config.Ignore(kInstructions, "prompt of each task");
  constexpr std::string_view kNoEffect[] = {"use_flash_attn", "use_reg_tokens", "emb_pooler",
                                            "matryoshka_dimensions", "truncate_dim"};
  config.Ignore(kNoEffect, "without effect on hidden states");
  return spec;
}

// The published folder says xlm-roberta.
bool Claims(const JsonValue& config) {
  const JsonValue* kind = config.Find("position_embedding_type");
  const JsonValue* type = config.Find("model_type");
  return kind != nullptr && kind->is_string() && kind->as_string() == "rotary" && type != nullptr &&
         type->is_string() && type->as_string() == "xlm-roberta";
}

}  // namespace

extern const Architecture kJinaV3;
const Architecture kJinaV3 = {
    .model_type = "jina_embeddings_v3",
    .class_name = "JinaEmbeddingsV3",
    .description = "jina-embeddings-v3",
    .make_spec = MakeSpec,
    .claims = Claims,
    .anchor = "encoder.layers.0.norm1.weight",
    .passengers = kPassengers,
    .pooler_weight = "pooler.dense.weight",
    .pooler_bias = "pooler.dense.bias",
    .has_adapters = true,
};

}  // namespace pozor
