// JinaBERT (Guenther et al. 2023; jina-embeddings-v2): BERT with ALiBi in place of positions and a
// gated feed-forward. The variant for code (jina-embeddings-v2-base-code) norms queries and keys
// over all heads, and adds a layer's input twice.
#include "models/architectures/bert_family.h"

namespace pozor {
namespace {

LayerSpec Layer(const std::string& stem, size_t intermediate) {
  LayerSpec layer = BertLayer(stem);
  const LinearRef gated = DenseWith(stem + "mlp.gated_layers", false);
  layer.ffn_gate = PartOf(gated, 0, intermediate, 2);
  layer.ffn_up = PartOf(gated, 1, intermediate, 2);
  layer.ffn_down = Dense(stem + "mlp.wo");
  layer.ffn_norm = Norm(stem + "mlp.layernorm");
  return layer;
}

LayerSpec CodeLayer(const std::string& stem, size_t intermediate) {
  LayerSpec layer = BertLayer(stem);
  layer.query_norm = Norm(stem + "attention.self.layer_norm_q");
  layer.key_norm = Norm(stem + "attention.self.layer_norm_k");
  layer.second_attention_norm = Norm(stem + "layer_norm_1");
  const LinearRef gated = DenseWith(stem + "mlp.up_gated_layer", false);
  layer.ffn_up = PartOf(gated, 0, intermediate, 2);
  layer.ffn_gate = PartOf(gated, 1, intermediate, 2);
  layer.ffn_down = Dense(stem + "mlp.down_layer");
  layer.ffn_norm = Norm(stem + "layer_norm_2");
  return layer;
}

EncoderSpec MakeSpec(Config& config, const WeightReader& weights) {
  config.Refuse("position_embedding_type", "this kind of position embedding", {"alibi"});
  EncoderSpec spec = BertSpec(config, BertPositions::kOwn);
  spec.token_limit = spec.embeddings.max_positions;
  spec.score_bias.kind = ScoreBias::kSlopes;
  config.Refuse("attn_implementation", "another attention", {"torch", "eager", "sdpa"});
  config.Refuse("emb_pooler", "a pooler of its own", {"mean"});
  const std::string kind =
      config.TextOr("feed_forward_type", "original", "geglu, reglu: gated; original: plain");
  if (kind != "geglu" && kind != "reglu" && kind != "original") {
    config.Fail(Unsupported(config.name() + ": feed_forward_type " + kind +
                            " is not supported; use geglu, reglu or original"));
  }
  const bool code = weights.Has("encoder.layer.0.attention.self.layer_norm_q.weight");
  if (code && kind == "original") {
    config.Fail(Unsupported(config.name() + ": feed_forward_type original is not supported with " +
                            "norms of queries and keys; use geglu or reglu"));
  }
  if (kind == "original") return spec;
  if (code) spec.head_norms = HeadNorms::kAllHeads;
  spec.activation = kind == "geglu" ? Activation::kGelu : Activation::kRelu;
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    const std::string stem = "encoder.layer." + std::to_string(i) + ".";
    spec.layers[i] = (code ? CodeLayer : Layer)(stem, spec.intermediate);
  }
  return spec;
}

bool Claims(const JsonValue& config) {
  const JsonValue* kind = config.Find("position_embedding_type");
  return kind != nullptr && kind->is_string() && kind->as_string() == "alibi";
}

}  // namespace

extern const Architecture kJinaBert;
const Architecture kJinaBert = {
    .model_type = "jina_bert",
    .class_name = "JinaBert",
    .description = "JinaBERT v2",
    .make_spec = MakeSpec,
    .claims = Claims,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kBertPassengers,
    .pooler_weight = "pooler.dense.weight",
    .pooler_bias = "pooler.dense.bias",
};

}  // namespace pozor
