// GPT-2 (Radford et al. 2019) as an encoder: causal, pre-norm, weights stored [in, out].
#include "models/architectures/architecture.h"

namespace pozor {
namespace {

constexpr std::string_view kPassengers[] = {
    "h.*.attn.bias",  // the causal mask
    "h.*.attn.masked_bias", "lm_head.*", "score.*", "classifier.*", "multiple_choice_head.*",
};

LinearRef Conv1D(const std::string& stem) {
  LinearRef ref = Dense(stem);
  ref.transposed = true;
  return ref;
}

LayerSpec Layer(const std::string& stem, size_t hidden) {
  LayerSpec layer;
  const LinearRef fused = Conv1D(stem + "attn.c_attn");
  layer.query = PartOf(fused, 0, hidden, 3);
  layer.key = PartOf(fused, 1, hidden, 3);
  layer.value = PartOf(fused, 2, hidden, 3);
  layer.attention_output = Conv1D(stem + "attn.c_proj");
  layer.attention_norm = Norm(stem + "ln_1");
  layer.ffn_up = Conv1D(stem + "mlp.c_fc");
  layer.ffn_down = Conv1D(stem + "mlp.c_proj");
  layer.ffn_norm = Norm(stem + "ln_2");
  return layer;
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  SizeKeys keys;
  keys.hidden = "n_embd";
  keys.heads = "n_head";
  keys.layers = "n_layer";
  keys.intermediate = "";
  keys.positions = "n_positions";
  EncoderSpec spec = ReadSizes(config, keys);
  const size_t inner =
      config.SizeOr("n_inner", 0, kMostIntermediate, "columns of the feed-forward; none: 4 n_embd");
  spec.intermediate = inner == 0 ? 4 * spec.hidden : inner;
  spec.activation =
      config.ActivationOr("activation_function", "gelu_new", "activation of the feed-forward");
  spec.norm_epsilon = config.PositiveOr("layer_norm_epsilon", 1e-5, "epsilon of every LayerNorm");
  spec.norm_place = NormPlace::kPre;
  spec.causal = true;
  config.Demand("scale_attn_weights", "scores over sqrt(head size)");
  config.Refuse("scale_attn_by_inverse_layer_idx", "scores over the number of the layer");
  constexpr std::string_view kNoEffect[] = {"reorder_and_upcast_attn", "n_ctx"};
  config.Ignore(kNoEffect, "changes no f32 result");

  spec.embeddings.word.name = "wte.weight";
  spec.embeddings.position.name = "wpe.weight";
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = Layer("h." + std::to_string(i) + ".", spec.hidden);
  }
  spec.final_norm = Norm("ln_f");
  return spec;
}

}  // namespace

extern const Architecture kGpt2;
const Architecture kGpt2 = {
    .model_type = "gpt2",
    .class_name = "GPT2",
    .description = "GPT-2, causal",
    .make_spec = MakeSpec,
    .anchor = "wte.weight",
    .passengers = kPassengers,
};

}  // namespace pozor
