// A comparison as one self-contained HTML page: no script, nothing loaded, light and dark.
#ifndef POZOR_TOOLS_COMPARE_HTML_H_
#define POZOR_TOOLS_COMPARE_HTML_H_

#include <string>
#include <vector>

#include "tools/compare/report.h"

namespace pozor::tools {

std::string ToHtml(const std::vector<LoadedResult>& results,
                   const std::vector<Comparison>& comparisons);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_COMPARE_HTML_H_
