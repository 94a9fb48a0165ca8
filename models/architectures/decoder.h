// What decoders used as embedders share: Llama's layers, in transformers' names.
#ifndef POZOR_MODELS_ARCHITECTURES_DECODER_H_
#define POZOR_MODELS_ARCHITECTURES_DECODER_H_

#include <functional>
#include <string>
#include <vector>

#include "models/architectures/architecture.h"

namespace pozor {

// Heads and buffers in checkpoints of this family.
inline constexpr std::string_view kDecoderPassengers[] = {
    "lm_head.*", "score.*", "classifier.*", "dense.*", "layers.*.self_attn.rotary_emb.inv_freq",
};

struct DecoderDefaults {
  std::string_view activation_key = "hidden_act";
  std::string_view activation = "silu";
  double norm_epsilon = 1e-6;
  size_t head_dim = 0;      // 0: hidden / heads
  bool head_norms = false;  // RMSNorm of every head of queries and keys
  bool qkv_biases = false;  // of queries, keys and values only; else attention_bias says
};

// Sizes, grouped heads, gated feed-forward, RMSNorm before sublayers, word rows without positions.
// Rotation, masks and windows are the architecture's own.
EncoderSpec DecoderSpec(Config& config, const DecoderDefaults& defaults = {});

// is_causal, the one rotation of all layers, and no code of the model's own.
void ReadCausalAndRotation(Config& config, EncoderSpec* spec);

// Qwen's keys of windows: a causal window on the last layers, or where layer_types says so.
void ReadQwenWindows(Config& config, EncoderSpec* spec);

// For each layer whether layer_types says "sliding_attention"; without that key `absent(layer)`
// decides. Refuses other types than that and "full_attention".
std::vector<bool> ReadSliding(Config& config, size_t layers,
                              const std::function<bool(size_t)>& absent);

}  // namespace pozor

#endif  // POZOR_MODELS_ARCHITECTURES_DECODER_H_
