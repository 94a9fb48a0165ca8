// pozor attention dump: attention into files.
#ifndef POZOR_TOOLS_ATTENTION_DUMP_H_
#define POZOR_TOOLS_ATTENTION_DUMP_H_

#include <optional>

#include "tools/attention/dump_writer.h"
#include "tools/attention/session.h"

namespace pozor::tools {

struct DumpRequest {
  AttentionRequest attention;
  std::optional<DumpFormat> format;  // else by the ending of the output
  DumpOptions dump;
  bool weight_type_given = false, text_options_given = false;
};

Status RunAttentionDump(DumpRequest request);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_DUMP_H_
