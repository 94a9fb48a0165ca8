// pozor attention view: a text's attention as one HTML page.
#ifndef POZOR_TOOLS_ATTENTION_VIEW_H_
#define POZOR_TOOLS_ATTENTION_VIEW_H_

#include "tools/attention/session.h"

namespace pozor::tools {

struct ViewRequest {
  AttentionRequest attention;
  bool exact = false;  // half precision instead of bytes
};

Status RunAttentionView(ViewRequest request);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_VIEW_H_
