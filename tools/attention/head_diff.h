// How far two runs lie apart, head by head.
#ifndef POZOR_TOOLS_ATTENTION_HEAD_DIFF_H_
#define POZOR_TOOLS_ATTENTION_HEAD_DIFF_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/attention/source.h"

namespace pozor::tools {

enum class DiffMetric : uint8_t {
  kDivergence,  // Jensen-Shannon, mean over rows, base 2: 0 alike, 1 nothing in common
  kMean,        // mean |a - b| over all weights
  kMax,         // max |a - b|
  kOverlap,     // share of the largest k of a row that both have, mean over rows
};
inline constexpr size_t kDiffMetrics = 4;
std::string_view DiffMetricName(DiffMetric metric);  // "js", "mean", "max", "overlap"

class HeadDiff {
 public:
  HeadDiff(const HeadSet& heads, size_t top_k)
      : heads_(heads), top_k_(top_k), sums_(heads.Count()) {}

  void Add(const AttentionRows& a, const AttentionRows& b);

  double Value(size_t slot, DiffMetric metric) const;
  const HeadSet& heads() const { return heads_; }
  // Sum and number of rows so far, to tell texts apart.
  double divergence_sum() const { return divergence_; }
  uint64_t rows() const { return rows_; }

 private:
  struct Sums {
    double divergence = 0, difference = 0, largest = 0, overlap = 0;
    uint64_t rows = 0, weights = 0;
  };
  double Overlap(const float* a, const float* b, size_t keys);

  HeadSet heads_;
  const size_t top_k_;
  std::vector<Sums> sums_;
  double divergence_ = 0;
  uint64_t rows_ = 0;
  std::vector<size_t> best_a_, best_b_;
};

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_HEAD_DIFF_H_
