#include "tools/attention/head_stats.h"

#include <algorithm>
#include <cmath>

namespace pozor::tools {

std::string_view HeadMetricName(HeadMetric metric) {
  constexpr std::string_view kNames[kHeadMetrics] = {"entropy", "distance", "first", "special",
                                                     "self",    "previous", "next",  "largest"};
  return kNames[static_cast<size_t>(metric)];
}

void HeadStats::Add(const AttentionRows& rows, const TextRecord& text) {
  double* sums = sums_.data() + heads_.Slot(rows.layer, rows.head) * kHeadMetrics;
  const std::vector<uint8_t>& special = text.tokens.special;
  const auto add = [sums](HeadMetric metric, double value) {
    sums[static_cast<size_t>(metric)] += value;
  };
  for (size_t r = 0; r < rows.queries; ++r) {
    const float* row = rows.Row(r);
    const size_t i = rows.query_begin + r;
    double entropy = 0, distance = 0, others = 0, largest = 0;
    for (size_t j = 0; j < rows.keys; ++j) {
      const auto weight = static_cast<double>(row[j]);
      if (weight > 0) entropy -= weight * std::log(weight);
      distance += weight * static_cast<double>(i > j ? i - j : j - i);
      if (j > 0 && special[j] != 0) others += weight;
      largest = std::max(largest, weight);
    }
    add(HeadMetric::kEntropy, entropy);
    add(HeadMetric::kDistance, distance);
    add(HeadMetric::kFirst, special[0] != 0 ? static_cast<double>(row[0]) : 0);
    add(HeadMetric::kSpecial, others);
    add(HeadMetric::kSelf, static_cast<double>(row[i]));
    add(HeadMetric::kPrevious, i > 0 ? static_cast<double>(row[i - 1]) : 0);
    add(HeadMetric::kNext, i + 1 < rows.keys ? static_cast<double>(row[i + 1]) : 0);
    add(HeadMetric::kLargest, largest);
  }
  rows_ += rows.queries;
}

double HeadStats::Mean(size_t slot, HeadMetric metric) const {
  const double sum = sums_[slot * kHeadMetrics + static_cast<size_t>(metric)];
  return rows() == 0 ? 0 : sum / static_cast<double>(rows());
}

}  // namespace pozor::tools
