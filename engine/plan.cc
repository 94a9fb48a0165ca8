#include "engine/plan.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <queue>
#include <utility>

#include "kernels/types.h"

namespace pozor {
namespace {

// Micro-batches to begin with: enough for the budget, few enough that each is worth having, and if
// there are only a few rounds of them, full rounds.
size_t FirstCount(size_t tokens, size_t batch_tokens, size_t workers) {
  size_t count = DivCeil(tokens, batch_tokens);
  if (count < 4 * workers) count = RoundUp(count, workers);
  return std::clamp<size_t>(count, 1, std::max<size_t>(1, tokens / kSmallestShare));
}

}  // namespace

size_t DefaultBatchTokens(uint64_t weight_bytes, size_t last_level_cache, bool amx) {
  constexpr size_t kLeastCache = size_t{8} << 20;  // of machines that do not tell
  const bool from_memory = weight_bytes > 2 * std::max(last_level_cache, kLeastCache);
  return amx || from_memory ? 2 * kDefaultBatchTokens : kDefaultBatchTokens;
}

std::vector<MicroBatch> PlanMicroBatches(const RaggedBatch& batch, size_t batch_tokens,
                                         size_t workers) {
  std::vector<uint32_t> order(batch.texts());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return std::pair(batch.length(b), a) < std::pair(batch.length(a), b);
  });
  if (order.empty()) return {};

  // (tokens, index), fewest tokens first, then lowest index.
  using Load = std::pair<size_t, size_t>;
  std::priority_queue<Load, std::vector<Load>, std::greater<>> emptiest;
  const auto with_tokens = static_cast<size_t>(std::count_if(
      order.begin(), order.end(), [&](uint32_t text) { return batch.length(text) > 0; }));
  const size_t count = FirstCount(batch.tokens(), std::max<size_t>(1, batch_tokens), workers);
  std::vector<MicroBatch> plan(std::clamp<size_t>(with_tokens, 1, count));
  for (size_t i = 0; i < plan.size(); ++i) emptiest.push({0, i});

  for (const uint32_t text : order) {
    const size_t length = batch.length(text);
    auto [load, index] = emptiest.top();
    if (load == 0 || load + length <= batch_tokens) {
      emptiest.pop();
    } else {
      index = plan.size();
      plan.emplace_back();
    }
    MicroBatch& micro_batch = plan[index];
    micro_batch.texts.push_back(text);
    micro_batch.tokens += length;
    micro_batch.longest = std::max(micro_batch.longest, length);
    emptiest.push({micro_batch.tokens, index});
  }
  return plan;
}

void Gather(const RaggedBatch& batch, const MicroBatch& micro_batch, TokenBatch* out) {
  out->Clear();
  out->ids.reserve(micro_batch.tokens);
  for (const uint32_t text : micro_batch.texts) {
    const auto begin = static_cast<size_t>(batch.starts[text]);
    const size_t length = batch.length(text);
    const auto ids = batch.ids.subspan(begin, length);
    out->ids.insert(out->ids.end(), ids.begin(), ids.end());
    if (!batch.types.empty()) {
      const auto types = batch.types.subspan(begin, length);
      out->types.insert(out->types.end(), types.begin(), types.end());
    }
    if (!batch.globals.empty()) {
      const auto globals = batch.globals.subspan(begin, length);
      out->globals.insert(out->globals.end(), globals.begin(), globals.end());
    }
    out->EndText();
  }
}

}  // namespace pozor
