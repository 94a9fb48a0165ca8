// A comparison as Markdown.
#ifndef POZOR_TOOLS_COMPARE_REPORT_H_
#define POZOR_TOOLS_COMPARE_REPORT_H_

#include <string>
#include <vector>

#include "tools/compare/compare_rows.h"

namespace pozor::tools {

struct Comparison {
  const LoadedResult* base = nullptr;
  const LoadedResult* other = nullptr;
  std::vector<Difference> differences;
  std::vector<RowComparison> rows;
};

struct VerdictCounts {
  size_t faster = 0, slower = 0, same = 0, not_comparable = 0;
};
VerdictCounts CountVerdicts(const std::vector<RowComparison>& rows);

// "2 faster, 1 slower, 20 no difference, 0 not comparable; all rows together: speed x 1.004 (0.993
// – 1.015), no difference"
std::string DescribeTogether(const std::vector<RowComparison>& rows);

// "0.951 (0.944 – 0.958)"
std::string DescribeEstimate(const Estimate& estimate);

std::string ToMarkdown(const Comparison& comparison);

// What the files themselves warn of, each under its label; empty: nothing.
std::string WarningsToMarkdown(const std::vector<LoadedResult>& results);

// The rows of a result that has nothing to be compared with.
std::string ToMarkdown(const LoadedResult& loaded);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_COMPARE_REPORT_H_
