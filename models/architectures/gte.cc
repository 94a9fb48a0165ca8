// GTE v1.5 (Zhang et al. 2024, mGTE), "NewModel" of Alibaba-NLP and "gte" of transformers:
// post-norm, rotary positions, gated feed-forward.
#include "models/architectures/architecture.h"
#include "models/architectures/rotary.h"

namespace pozor {
namespace {

constexpr std::string_view kPassengers[] = {
    "pooler.*", "classifier.*", "lm_head.*", "embeddings.position_ids", "*.rotary_emb.*",
};

LayerSpec Layer(size_t index, const EncoderSpec& spec, bool packed) {
  const std::string stem = "encoder.layer." + std::to_string(index) + ".";
  LayerSpec layer;
  const LinearRef qkv = Dense(stem + "attention.qkv_proj");
  layer.query = packed ? PartOf(qkv, 0, spec.hidden, 3) : Dense(stem + "attention.q_proj");
  layer.key = packed ? PartOf(qkv, 1, spec.hidden, 3) : Dense(stem + "attention.k_proj");
  layer.value = packed ? PartOf(qkv, 2, spec.hidden, 3) : Dense(stem + "attention.v_proj");
  layer.attention_output = Dense(stem + "attention.o_proj");
  layer.attention_norm = Norm(stem + "attn_ln");
  const LinearRef up_gate = DenseWith(stem + "mlp.up_gate_proj", false);
  layer.ffn_up = PartOf(up_gate, 0, spec.intermediate, 2);
  layer.ffn_gate = PartOf(up_gate, 1, spec.intermediate, 2);
  layer.ffn_down = Dense(stem + "mlp.down_proj");
  layer.ffn_norm = Norm(stem + "mlp_ln");
  layer.rotary = 0;
  return layer;
}

EncoderSpec MakeSpec(Config& config, const WeightReader& weights) {
  EncoderSpec spec = ReadSizes(config, {});
  spec.activation =
      config.ActivationOr("hidden_act", "gelu", "activation of the feed-forward's gate");
  spec.norm_epsilon = config.PositiveOr("layer_norm_eps", 1e-12, "epsilon of every LayerNorm");
  config.Refuse("position_embedding_type", "this kind of position embedding", {"rope"});
  config.Refuse("layer_norm_type", "this kind of norm", {"layer_norm"});
  config.Refuse("logn_attention_scale", "scores scaled by the length of the text");
  config.Refuse("logn_attention_clip1", "scores scaled by the length of the text");
  constexpr std::string_view kNoEffect[] = {"unpad_inputs", "use_memory_efficient_attention",
                                            "pack_qkv"};
  config.Ignore(kNoEffect, "without effect on hidden states");
  spec.rotaries = {ReadRotary(config, spec.head_dim)};
  UseRotaryPositions(&spec);

  EmbeddingSpec& embeddings = spec.embeddings;
  embeddings.word.name = "embeddings.word_embeddings.weight";
  embeddings.type_count =
      config.SizeOr("type_vocab_size", 0, kMostVocabulary, "rows of the segment table");
  if (embeddings.type_count > 0) embeddings.type.name = "embeddings.token_type_embeddings.weight";
  embeddings.norm = Norm("embeddings.LayerNorm");
  const bool packed = weights.Has("encoder.layer.0.attention.qkv_proj.weight");
  for (size_t i = 0; i < spec.layers.size(); ++i) spec.layers[i] = Layer(i, spec, packed);
  return spec;
}

constexpr Architecture Named(std::string_view model_type, std::string_view class_name) {
  return {
      .model_type = model_type,
      .class_name = class_name,
      .description = "GTE v1.5",
      .make_spec = MakeSpec,
      .anchor = "embeddings.word_embeddings.weight",
      .passengers = kPassengers,
  };
}

}  // namespace

extern const Architecture kGte, kGteHub;
const Architecture kGte = Named("gte", "Gte");
const Architecture kGteHub = Named("new", "New");

}  // namespace pozor
