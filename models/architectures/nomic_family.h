// What NomicBERT's versions share: the keys and names of nomic-ai's own code, which are GPT-2's.
#ifndef POZOR_MODELS_ARCHITECTURES_NOMIC_FAMILY_H_
#define POZOR_MODELS_ARCHITECTURES_NOMIC_FAMILY_H_

#include <string>

#include "models/architectures/architecture.h"

namespace pozor {

inline constexpr std::string_view kNomicPassengers[] = {
    "cls.*", "pooler.*", "classifier.*", "*.rotary_emb.inv_freq", "embeddings.position_ids",
};

// What the feed-forwards and products of a NomicBERT look like.
struct NomicForm {
  bool gated = true;
  bool qkv_bias = false, up_bias = false, down_bias = false;
};

// Sizes, activation, epsilon, biases and rotation.
EncoderSpec NomicHubKeys(Config& config, NomicForm* form);

// Word and segment table, their norm, the keys without effect.
void ReadNomicEmbeddings(Config& config, const std::string& norm, EncoderSpec* spec);

LayerSpec NomicHubLayer(size_t index, size_t hidden, const NomicForm& form);

}  // namespace pozor

#endif  // POZOR_MODELS_ARCHITECTURES_NOMIC_FAMILY_H_
