// What the versions of DeBERTa share (He et al. 2020, 2021): transformers' configuration keys,
// embeddings, and the table of relative positions.
#ifndef POZOR_MODELS_ARCHITECTURES_DEBERTA_FAMILY_H_
#define POZOR_MODELS_ARCHITECTURES_DEBERTA_FAMILY_H_

#include "models/architectures/architecture.h"

namespace pozor {

inline constexpr std::string_view kDebertaPassengers[] = {
    "embeddings.position_ids",
    "embeddings.position_embeddings.weight",  // of models without position_biased_input
    "pooler.*",
    "classifier.*",
    "cls.*",
    "lm_predictions.*",
    "mask_predictions.*",
    "qa_outputs.*",
};

// Which scores there are besides those of content against content.
struct DebertaScores {
  bool query_positions = false;  // c2p
  bool key_positions = false;    // p2c
};

// Sizes, activation, embeddings, the scale of scores, and the table of relative positions: one row
// for each distance. The layers are as BERT's; their attention is the version's own.
EncoderSpec DebertaSpec(Config& config, const SizeKeys& keys, DebertaScores* scores);

}  // namespace pozor

#endif  // POZOR_MODELS_ARCHITECTURES_DEBERTA_FAMILY_H_
