// A benchmark result as Markdown tables.
#ifndef POZOR_TOOLS_BENCH_MARKDOWN_H_
#define POZOR_TOOLS_BENCH_MARKDOWN_H_

#include <string>
#include <vector>

#include "tools/bench/result.h"

namespace pozor::tools {

// | head | ... with the columns aligned for reading as plain text.
std::string MarkdownTable(const std::vector<std::string>& head,
                          const std::vector<std::vector<std::string>>& rows);

std::string ToMarkdown(const BenchResult& result);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_BENCH_MARKDOWN_H_
