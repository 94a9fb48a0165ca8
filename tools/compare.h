// `pozor compare`: results side by side, the first against each of the others.
#ifndef POZOR_TOOLS_COMPARE_H_
#define POZOR_TOOLS_COMPARE_H_

#include <string>
#include <vector>

#include "pozor/status.h"
#include "tools/compare/compare_rows.h"

namespace pozor::tools {

struct CompareRequest {
  std::vector<std::string> files;  // the first is the base; one alone: its engines are compared
  std::string base;                // engine of a file alone that the others are compared with
  CompareOptions options;
  std::string fail_if;  // empty: never
  std::string html;     // report to write; empty: none
  bool json = false;
};

// *failed: a --fail-if condition holds.
Status RunCompare(const CompareRequest& request, bool* failed);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_COMPARE_H_
