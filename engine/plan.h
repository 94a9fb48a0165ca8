// Which texts travel together. The plan looks at lengths and options only, never at the clock, and
// no result depends on it.
#ifndef POZOR_ENGINE_PLAN_H_
#define POZOR_ENGINE_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/batch.h"

namespace pozor {

// Tokens of a micro-batch: many enough to share the reading of the weights, few enough for their
// rows to stay in the second-level cache. Twice as many where reading costs more: weights of more
// than twice the last-level cache come from memory in every pass, and AMX outruns that cache.
inline constexpr size_t kDefaultBatchTokens = 128;
size_t DefaultBatchTokens(uint64_t weight_bytes, size_t last_level_cache, bool amx);

// Fewer tokens than this are not worth a micro-batch of their own.
inline constexpr size_t kSmallestShare = 32;

struct MicroBatch {
  std::vector<uint32_t> texts;  // indices, in order of falling length
  size_t tokens = 0;
  size_t longest = 0;
};

// Packs whole texts into micro-batches of at most `batch_tokens` tokens (a longer text is one of
// its own), longest text first, each into the emptiest micro-batch; so many micro-batches that
// `workers` find equal shares. Every text is in exactly one; those without tokens too.
std::vector<MicroBatch> PlanMicroBatches(const RaggedBatch& batch, size_t batch_tokens,
                                         size_t workers);

// The tokens of one micro-batch, text after text.
void Gather(const RaggedBatch& batch, const MicroBatch& micro_batch, TokenBatch* out);

}  // namespace pozor

#endif  // POZOR_ENGINE_PLAN_H_
