// Llama (Touvron et al. 2023) and Mistral (Jiang et al. 2023), the same with a window, as
// embedders; EuroBERT (Boizard et al. 2025), the same without a causal mask.
#include "models/architectures/decoder.h"
#include "models/architectures/rotary.h"

namespace pozor {
namespace {

EncoderSpec MakeLlama(Config& config, const WeightReader&) {
  EncoderSpec spec = DecoderSpec(config);
  ReadCausalAndRotation(config, &spec);
  return spec;
}

// A window of w tokens ends with the token itself.
EncoderSpec MakeMistral(Config& config, const WeightReader&) {
  EncoderSpec spec = DecoderSpec(config);
  ReadCausalAndRotation(config, &spec);
  const size_t window = config.SizeOr("sliding_window", 0, kMostPositions,
                                      "tokens that a token sees; none: all before it");
  if (window == 0) return spec;
  for (LayerSpec& layer : spec.layers) layer.window = window - 1;
  if (!spec.causal) {
    config.Fail(Unsupported(config.name() + ": sliding_window without a causal mask is not "
                                            "supported; use another model"));
  }
  return spec;
}

EncoderSpec MakeEuroBert(Config& config, const WeightReader&) {
  DecoderDefaults defaults;
  defaults.norm_epsilon = 1e-5;
  EncoderSpec spec = DecoderSpec(config, defaults);
  spec.rotaries = {ReadRotary(config, spec.head_dim)};
  for (LayerSpec& layer : spec.layers) layer.rotary = 0;
  constexpr std::string_view kNoEffect[] = {"is_causal", "classifier_pooling", "auto_map"};
  config.Ignore(kNoEffect,
                "of a task head, of a mask that this model has not, or where its code was first");
  return spec;
}

}  // namespace

extern const Architecture kLlama, kMistral, kEuroBert;
const Architecture kLlama = {
    .model_type = "llama",
    .class_name = "Llama",
    .description = "Llama as an embedder",
    .make_spec = MakeLlama,
    .anchor = "embed_tokens.weight",
    .passengers = kDecoderPassengers,
};
const Architecture kMistral = {
    .model_type = "mistral",
    .class_name = "Mistral",
    .description = "Mistral as an embedder",
    .make_spec = MakeMistral,
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
