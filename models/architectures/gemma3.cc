// Gemma 3 (Gemma Team 2025) and EmbeddingGemma (Schechter Vera et al. 2025): norms before and after
// every sublayer, with gains stored less one; layers that look through a window and layers that
// see all, which turn by frequencies of their own.
#include <cmath>

#include "models/architectures/decoder.h"
#include "models/architectures/rotary.h"

namespace pozor {
namespace {

constexpr size_t kGlobal = 0, kLocal = 1;  // places in EncoderSpec::rotaries

// Every sixth layer sees all unless layer_types says otherwise. A window of w tokens reaches w / 2
// either side, or, with a causal mask, w - 1 back.
void ReadWindows(Config& config, bool both_sides, EncoderSpec* spec) {
  const size_t window =
      config.SizeOr("sliding_window", 4096, kMostPositions, "tokens that a local layer sees");
  size_t every = 6;
  for (const char* key : {"_sliding_window_pattern", "sliding_window_pattern"}) {
    every = config.SizeOr(key, every, kMostLayers,
                          "without layer_types, every so many layers one sees all");
  }
  if (window == 0 || every == 0) {
    config.Fail(Corrupt(config.name() +
                        ": sliding_window and its pattern must not be 0; check the configuration"));
    return;
  }
  const std::vector<bool> sliding =
      ReadSliding(config, spec->layers.size(), [&](size_t i) { return (i + 1) % every != 0; });
  for (size_t i = 0; i < sliding.size(); ++i) {
    spec->layers[i].rotary = sliding[i] ? kLocal : kGlobal;
    if (sliding[i]) spec->layers[i].window = both_sides ? window / 2 : window - 1;
  }
}

// The names of the four norms: Llama's name for the third is here that of the second.
void NameNorms(EncoderSpec* spec) {
  for (size_t i = 0; i < spec->layers.size(); ++i) {
    const std::string stem = "layers." + std::to_string(i) + ".";
    LayerSpec& layer = spec->layers[i];
    layer.attention_output_norm.gamma.name = stem + "post_attention_layernorm.weight";
    layer.ffn_norm.gamma.name = stem + "pre_feedforward_layernorm.weight";
    layer.ffn_output_norm.gamma.name = stem + "post_feedforward_layernorm.weight";
  }
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  DecoderDefaults defaults;
  defaults.activation_key = "hidden_activation";
  defaults.activation = "gelu_pytorch_tanh";
  defaults.head_dim = 256;
  defaults.head_norms = true;
  EncoderSpec spec = DecoderSpec(config, defaults);
  spec.gain_offset = 1;
  spec.embeddings.word_scale = std::sqrt(static_cast<float>(spec.hidden));
  spec.score_scale = 1 / std::sqrt(config.PositiveOr("query_pre_attn_scalar", 256,
                                                     "scores are divided by its square root"));
  const bool both_sides = config.FlagOr("use_bidirectional_attention", false,
                                        "true: a token sees those after it as well");
  spec.causal = !both_sides;
  NameNorms(&spec);
  RotaryKeys global, local;
  global.absent_theta = 1000000;
  local = {.layer_type = "sliding_attention", .theta = "rope_local_base_freq", .scaling = ""};
  spec.rotaries = {ReadRotary(config, spec.head_dim, global),
                   ReadRotary(config, spec.head_dim, local)};
  ReadWindows(config, both_sides, &spec);
  config.Refuse("attn_logit_softcapping", "a cap of scores");
  constexpr std::string_view kHead[] = {"final_logit_softcapping"};
  config.Ignore(kHead, "of the language model head");
  return spec;
}

}  // namespace

extern const Architecture kGemma3;
const Architecture kGemma3 = {
    .model_type = "gemma3_text",
    .class_name = "Gemma3Text",
    .description = "Gemma 3 as an embedder",
    .make_spec = MakeSpec,
    .anchor = "embed_tokens.weight",
    .passengers = kDecoderPassengers,
};

}  // namespace pozor
