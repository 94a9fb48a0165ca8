#include "engine/flow_budget.h"

#include <algorithm>

#include "engine/machine.h"
#include "kernels/types.h"

namespace pozor {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;
constexpr size_t kBytesPerToken = 4;  // of text, on average
constexpr size_t kSmallestWindow = 4096;
constexpr size_t kSmallestBatch = 32;
constexpr size_t kWindowsInFlow = 4;

// Stacks, allocator slack and what estimates miss.
constexpr size_t kMargin = 6 * kMebibyte;

// What a byte of counted text holds at most: itself, ids and types, offsets while it is tokenised,
// and its share of the text's result.
size_t BytesPerTextByte(const FlowNeeds& needs) {
  return 24 + DivCeil(needs.bytes_per_text, kBytesCountedPerText);
}

}  // namespace

Result<FlowBudget> PlanFlow(
    const FlowNeeds& needs,
    const std::function<size_t(size_t tokens, size_t longest)>& workspace_bytes) {
  FlowBudget budget;
  budget.workers = needs.threads;
  budget.batch_tokens = needs.batch_tokens;
  budget.window_bytes =
      needs.batch_tokens * kBytesPerToken * std::max<size_t>(32, 8 * needs.threads);
  const auto total = [&] {
    const size_t tokens = std::max(budget.batch_tokens, needs.longest_text);
    const size_t workspace = RoundUp(workspace_bytes(tokens, needs.longest_text), 2 * kMebibyte);
    budget.flow_bytes = kWindowsInFlow * budget.window_bytes;
    return needs.resident + kMargin + budget.workers * workspace +
           budget.flow_bytes * BytesPerTextByte(needs);
  };
  if (needs.ceiling == 0) return total(), budget;
  while (total() > needs.ceiling) {
    if (budget.window_bytes > kSmallestWindow) {
      budget.window_bytes = std::max(kSmallestWindow, budget.window_bytes / 2);
    } else if (budget.batch_tokens > kSmallestBatch && budget.batch_tokens > needs.longest_text) {
      budget.batch_tokens = std::max(kSmallestBatch, budget.batch_tokens / 2);
    } else if (budget.workers > 1) {
      --budget.workers;
    } else {
      return CheckCeiling(
          "the model and one text of " + std::to_string(needs.longest_text) + " tokens",
          needs.ceiling, total());
    }
  }
  return budget;
}

}  // namespace pozor
