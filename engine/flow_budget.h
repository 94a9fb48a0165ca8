// How much of the input is in memory at once: windows, micro-batches and threads under a ceiling.
#ifndef POZOR_ENGINE_FLOW_BUDGET_H_
#define POZOR_ENGINE_FLOW_BUDGET_H_

#include <cstddef>
#include <functional>

#include "pozor/status.h"

namespace pozor {

// What a plan starts from; bytes are those of the process.
struct FlowNeeds {
  size_t threads = 1;
  size_t batch_tokens = 0;
  size_t longest_text = 0;    // tokens of the longest text that may come
  size_t ceiling = 0;         // 0: none
  size_t resident = 0;        // what is there before the first window
  size_t bytes_per_text = 0;  // of a text's result
};

struct FlowBudget {
  size_t workers = 1;       // micro-batches being encoded at once
  size_t batch_tokens = 0;  // tokens of a micro-batch
  size_t window_bytes = 0;  // text that one Read takes in
  size_t flow_bytes = 0;    // text in all windows between Read and the end of Write
};

// A text counts as its bytes and this many more, so that windows of tiny texts are bounded too.
inline constexpr size_t kBytesCountedPerText = 32;

// Under a ceiling windows shrink first, then micro-batches, then the number of workers.
// ResourceExhausted, with the number needed, if one worker with one text at a time is too much.
// `workspace_bytes(tokens, longest)`: memory of one forward pass.
Result<FlowBudget> PlanFlow(
    const FlowNeeds& needs,
    const std::function<size_t(size_t tokens, size_t longest)>& workspace_bytes);

}  // namespace pozor

#endif  // POZOR_ENGINE_FLOW_BUDGET_H_
