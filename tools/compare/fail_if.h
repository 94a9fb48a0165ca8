// `--fail-if`: when a comparison makes the command fail.
#ifndef POZOR_TOOLS_COMPARE_FAIL_IF_H_
#define POZOR_TOOLS_COMPARE_FAIL_IF_H_

#include <string>
#include <vector>

#include "pozor/status.h"
#include "tools/compare/compare_rows.h"

namespace pozor::tools {

// One condition on a row: its verdict, and by how much it must be off.
struct FailCondition {
  Verdict verdict = Verdict::kSlower;
  double margin = 0;  // 0.05: time grew (slower) or speed grew (faster) by more than 5 %
};

// "slower>5%", "slower", "faster>2.5%", "not-comparable"; several after commas.
Result<std::vector<FailCondition>> ParseFailIf(const std::string& text);

bool Fails(const RowComparison& row, const std::vector<FailCondition>& conditions);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_COMPARE_FAIL_IF_H_
