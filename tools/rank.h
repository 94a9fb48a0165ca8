// Spearman's rank correlation.
#ifndef POZOR_TOOLS_RANK_H_
#define POZOR_TOOLS_RANK_H_

#include <vector>

namespace pozor::tools {

// Equal values share the mean of their ranks. NaN where there is no order to compare: a value is
// NaN, or all of one side are equal.
double SpearmanCorrelation(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_RANK_H_
