// pozor attention serve: the page over HTTP, each matrix sent when it is looked at.
#ifndef POZOR_TOOLS_ATTENTION_SERVE_H_
#define POZOR_TOOLS_ATTENTION_SERVE_H_

#include <cstdint>

#include "tools/attention/session.h"

namespace pozor::tools {

struct ServeRequest {
  AttentionRequest attention;
  uint16_t port = 0;
  bool exact = false;
};

Status RunAttentionServe(ServeRequest request);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_SERVE_H_
