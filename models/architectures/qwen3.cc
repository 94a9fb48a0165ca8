// Qwen3 (Zhang et al. 2025, Qwen3 Embedding): Llama's layers with norms of every head of queries
// and keys, causal, last layers through a window on request.
#include "models/architectures/decoder.h"
#include "models/architectures/rotary.h"

namespace pozor {
namespace {

// The window looks back from a token, which is in it.
void ReadWindows(Config& config, EncoderSpec* spec) {
  const bool uses = config.FlagOr("use_sliding_window", false, "true: some layers have a window");
  const size_t window =
      config.SizeOr("sliding_window", 4096, kMostPositions, "tokens that a sliding layer sees");
  const size_t first = config.SizeOr("max_window_layers", 28, kMostPositions,
                                     "the first layer with a window, without layer_types");
  const std::vector<bool> sliding =
      ReadSliding(config, spec->layers.size(), [&](size_t i) { return uses && i >= first; });
  for (size_t i = 0; i < sliding.size(); ++i) {
    if (!sliding[i]) continue;
    if (uses && window > 0 && spec->causal) {
      spec->layers[i].window = window - 1;
      continue;
    }
    config.Fail(Unsupported(config.name() +
                            ": layer_types has \"sliding_attention\", such a layer "
                            "without a sliding_window or without a causal mask is not supported; "
                            "use another model"));
  }
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  DecoderDefaults defaults;
  defaults.head_dim = 128;
  defaults.head_norms = true;
  EncoderSpec spec = DecoderSpec(config, defaults);
  spec.causal = config.FlagOr("is_causal", true, "true: a token sees only those before it");
  spec.rotaries = {ReadRotary(config, spec.head_dim)};
  for (LayerSpec& layer : spec.layers) layer.rotary = 0;
  ReadWindows(config, &spec);
  return spec;
}

}  // namespace

extern const Architecture kQwen3;
const Architecture kQwen3 = {
    .model_type = "qwen3",
    .class_name = "Qwen3",
    .description = "Qwen3 as an embedder",
    .make_spec = MakeSpec,
    .anchor = "embed_tokens.weight",
    .passengers = kDecoderPassengers,
};

}  // namespace pozor
