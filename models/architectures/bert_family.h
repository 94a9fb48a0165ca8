// What BERT and its many relatives share: transformers' names of tensors and configuration keys.
#ifndef POZOR_MODELS_ARCHITECTURES_BERT_FAMILY_H_
#define POZOR_MODELS_ARCHITECTURES_BERT_FAMILY_H_

#include <string>

#include "models/architectures/architecture.h"

namespace pozor {

// Tensors of heads, buffers and bookkeeping in checkpoints of this family.
inline constexpr std::string_view kBertPassengers[] = {
    "embeddings.position_ids",
    "embeddings.token_type_ids",
    "embeddings.position_embeddings.weight",  // of models with relative positions
    "pooler.*",
    "cls.*",
    "lm_head.*",
    "classifier.*",
    "dropout.*",
    "qa_outputs.*",
    "discriminator_predictions.*",
    "generator_predictions.*",
    "generator_lm_head.*",
};

// Learned positions or distances as position_embedding_type says, or something else entirely.
enum class BertPositions : uint8_t { kLearned, kOwn };

// Sizes, activation, epsilon, decoder masks, embeddings and layers, all as BertModel has them.
EncoderSpec BertSpec(Config& config, BertPositions positions = BertPositions::kLearned);

// A layer whose tensors start with `stem`.
LayerSpec BertLayer(const std::string& stem);

// Positions as RoBERTa counts them: from pad_token_id + 1 on, a pad token in the text has position
// pad_token_id and does not count.
void CountPositionsFromPad(Config& config, EncoderSpec* spec);

}  // namespace pozor

#endif  // POZOR_MODELS_ARCHITECTURES_BERT_FAMILY_H_
