// pozor attention query: a word to a table of every layer and head.
#ifndef POZOR_TOOLS_ATTENTION_QUERY_H_
#define POZOR_TOOLS_ATTENTION_QUERY_H_

#include "tools/attention/session.h"
#include "tools/attention/transform.h"

namespace pozor::tools {

enum class TableFormat : uint8_t { kText, kCsv, kJson };

struct QueryRequest {
  AttentionRequest attention;
  TransformOptions transform;
  std::string from, to;  // a word, or both of a pair
  size_t top = 5;        // of each head
  bool by_weight = false;
  TableFormat format = TableFormat::kText;
};

Status RunAttentionQuery(QueryRequest request);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_QUERY_H_
