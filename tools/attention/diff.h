// pozor attention diff: two models, two precisions or tasks of one, or two dumps, head by head.
#ifndef POZOR_TOOLS_ATTENTION_DIFF_H_
#define POZOR_TOOLS_ATTENTION_DIFF_H_

#include <optional>

#include "tools/attention/head_diff.h"
#include "tools/attention/query.h"

namespace pozor::tools {

struct DiffRequest {
  AttentionRequest attention;  // model: A
  std::string other;           // B: a model or a dump; the same model for two precisions or tasks
  Precision other_precision = Precision::kAuto;  // as each model's files have it
  std::string other_task;
  DiffMetric by = DiffMetric::kDivergence;
  size_t top = 10;    // heads of the table
  size_t top_k = 10;  // of the overlap
  std::optional<double> fail_above;
  TableFormat format = TableFormat::kText;
  bool exact = false;  // of a page
};

// 0, or 1 if a head lies above --fail-above.
Result<int> RunAttentionDiff(DiffRequest request);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_DIFF_H_
