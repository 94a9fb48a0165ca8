// Qwen3 (Zhang et al. 2025, Qwen3 Embedding): Llama's layers with norms of every head of queries
// and keys. Qwen2 (Yang et al. 2024): biases of Q, K and V instead. On request the last layers look
// through a window.
#include "models/architectures/decoder.h"

namespace pozor {
namespace {

EncoderSpec Make(Config& config, const DecoderDefaults& defaults) {
  EncoderSpec spec = DecoderSpec(config, defaults);
  ReadCausalAndRotation(config, &spec);
  ReadQwenWindows(config, &spec);
  return spec;
}

EncoderSpec MakeQwen2(Config& config, const WeightReader&) {
  return Make(config, {.qkv_biases = true});
}

EncoderSpec MakeQwen3(Config& config, const WeightReader&) {
  return Make(config, {.head_dim = 128, .head_norms = true});
}

}  // namespace

extern const Architecture kQwen2, kQwen3;
const Architecture kQwen2 = {
    .model_type = "qwen2",
    .class_name = "Qwen2",
    .description = "Qwen2 as an embedder",
    .make_spec = MakeQwen2,
    .anchor = "embed_tokens.weight",
    .passengers = kDecoderPassengers,
};
const Architecture kQwen3 = {
    .model_type = "qwen3",
    .class_name = "Qwen3",
    .description = "Qwen3 as an embedder",
    .make_spec = MakeQwen3,
    .anchor = "embed_tokens.weight",
    .passengers = kDecoderPassengers,
};

}  // namespace pozor
