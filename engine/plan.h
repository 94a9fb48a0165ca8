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

// Tokens of a micro-batch at which weights are read often enough for f32 products to run at full
// speed and rows still fit the second-level cache.
inline constexpr size_t kDefaultBatchTokens = 128;

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
