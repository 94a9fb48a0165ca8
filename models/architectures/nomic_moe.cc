// NomicBERT with experts (Nussbaum and Duderstadt 2025; nomic-embed-text-v2-moe): in every n-th
// layer a mixture of experts in place of the feed-forward.
#include <string>

#include "models/architectures/nomic_family.h"

namespace pozor {
namespace {

void UseExperts(size_t index, const ExpertsSpec& sizes, LayerSpec* layer) {
  const std::string stem = "encoder.layers." + std::to_string(index) + ".mlp.";
  layer->experts = sizes;
  layer->experts.router = DenseWith(stem + "router.layer", false);
  layer->experts.bias.name = stem + "experts.bias";
  layer->ffn_up = layer->ffn_down = {};
  layer->ffn_up.weight.name = stem + "experts.mlp.w1";  // [experts * inner, hidden], both
  layer->ffn_down.weight.name = stem + "experts.mlp.w2";
  layer->ffn_up.stack = layer->ffn_down.stack = sizes.count;
  layer->ffn_down.transposed = true;
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  NomicForm form;
  EncoderSpec spec = NomicHubKeys(config, &form);
  ExpertsSpec sizes;
  const size_t every = config.Size("moe_every_n_layers", kMostLayers,
                                   "layers 1, 1 + n, 1 + 2n, ... have experts, counted from 0");
  sizes.count = config.Size("num_experts", kMostExperts, "experts of such a layer");
  sizes.chosen = config.Size("moe_top_k", kMostExperts, "experts that each token goes to");
  if (sizes.chosen > sizes.count) {
    config.Fail(Unsupported(config.name() + ": moe_top_k " + std::to_string(sizes.chosen) +
                            " is more than num_experts " + std::to_string(sizes.count) +
                            "; check the configuration"));
  }
  if (form.gated) {
    config.Fail(Unsupported(config.name() + ": activation_function with a gate is not supported " +
                            "for experts; use a model with gelu"));
  }
  config.Refuse("moe_normalize_expert_weights", "shares that add up to 1");
  config.Refuse("expert_choice_router", "experts that choose tokens");
  config.Refuse("num_shared_experts", "experts that every token goes to", {"0"});
  config.Refuse("ffn_div", "smaller experts", {"1"});
  ReadNomicEmbeddings(config, "emb_ln", &spec);
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = NomicHubLayer(i, spec.hidden, form);
    if (i % every == 1) UseExperts(i, sizes, &spec.layers[i]);
  }
  constexpr std::string_view kTraining[] = {"moe_impl", "moe_resid_pdrop", "router_aux_loss_coef",
                                            "moe_jitter_eps", "pad_vocab_size_to_multiple"};
  config.Ignore(kTraining, "without effect on hidden states");
  return spec;
}

// The published folder says nomic_bert.
bool Claims(const JsonValue& config) {
  const JsonValue* type = config.Find("model_type");
  if (type == nullptr || !type->is_string() || type->as_string() != "nomic_bert") return false;
  for (const char* key : {"moe_every_n_layers", "num_experts"}) {
    const JsonValue* value = config.Find(key);
    if (value != nullptr && value->is_number() && value->as_double() != 0) return true;
  }
  return false;
}

}  // namespace

extern const Architecture kNomicMoe;
const Architecture kNomicMoe = {
    .model_type = "nomic_bert_moe",
    .class_name = "NomicBertMoe",
    .description = "NomicBERT v2-MoE",
    .make_spec = MakeSpec,
    .claims = Claims,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kNomicPassengers,
};

}  // namespace pozor
