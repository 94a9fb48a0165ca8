// pozor attention stats: what each head does over many texts.
#ifndef POZOR_TOOLS_ATTENTION_ATTENTION_STATS_H_
#define POZOR_TOOLS_ATTENTION_ATTENTION_STATS_H_

#include <optional>

#include "tools/attention/head_stats.h"
#include "tools/attention/query.h"

namespace pozor::tools {

struct StatsRequest {
  AttentionRequest attention;
  TableFormat format = TableFormat::kText;
  std::optional<HeadMetric> map;  // layers x heads of one number, instead of the table
};

Status RunAttentionStats(StatsRequest request);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_ATTENTION_STATS_H_
