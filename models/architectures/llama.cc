// Llama (Touvron et al. 2023) as an embedder, and EuroBERT (Boizard et al. 2025), which is its
// layers without a causal mask.
#include "models/architectures/decoder.h"
#include "models/architectures/rotary.h"

namespace pozor {
namespace {

EncoderSpec MakeLlama(Config& config, const WeightReader&) {
  EncoderSpec spec = DecoderSpec(config);
  spec.causal = config.FlagOr("is_causal", true, "true: a token sees only those before it");
  spec.rotaries = {ReadRotary(config, spec.head_dim)};
  for (LayerSpec& layer : spec.layers) layer.rotary = 0;
  return spec;
}

EncoderSpec MakeEuroBert(Config& config, const WeightReader&) {
  DecoderDefaults defaults;
  defaults.norm_epsilon = 1e-5;
  EncoderSpec spec = DecoderSpec(config, defaults);
  spec.rotaries = {ReadRotary(config, spec.head_dim)};
  for (LayerSpec& layer : spec.layers) layer.rotary = 0;
  constexpr std::string_view kNoEffect[] = {"is_causal", "classifier_pooling"};
  config.Ignore(kNoEffect, "of a task head, or of a mask that this model does not have");
  return spec;
}

}  // namespace

extern const Architecture kLlama, kEuroBert;
const Architecture kLlama = {
    .model_type = "llama",
    .class_name = "Llama",
    .description = "Llama as an embedder",
    .make_spec = MakeLlama,
    .anchor = "embed_tokens.weight",
    .passengers = kDecoderPassengers,
};
const Architecture kEuroBert = {
    .model_type = "eurobert",
    .class_name = "EuroBert",
    .description = "EuroBERT",
    .make_spec = MakeEuroBert,
    .anchor = "embed_tokens.weight",
    .passengers = kDecoderPassengers,
};

}  // namespace pozor
