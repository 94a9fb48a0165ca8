// pozor attention show: shades on the terminal.
#ifndef POZOR_TOOLS_ATTENTION_SHOW_H_
#define POZOR_TOOLS_ATTENTION_SHOW_H_

#include "tools/attention/session.h"
#include "tools/attention/transform.h"

namespace pozor::tools {

struct ShowRequest {
  AttentionRequest attention;
  TransformOptions transform;  // without a word: one matrix a layer unless heads are chosen
  std::string token;           // a word: its row (or column) of every head
  bool to = false;             // who looks at it, instead of where it looks
  bool numbers = false;        // decimals instead of shades
};

Status RunAttentionShow(ShowRequest request);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_SHOW_H_
