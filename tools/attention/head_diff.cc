#include "tools/attention/head_diff.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace pozor::tools {
namespace {

// w log2(w / m), 0 for w = 0
double Term(double w, double m) { return w > 0 ? w * std::log2(w / m) : 0; }

void Largest(const float* row, size_t keys, size_t count, std::vector<size_t>* best) {
  best->resize(keys);
  std::iota(best->begin(), best->end(), size_t{0});
  const auto end = best->begin() + static_cast<std::ptrdiff_t>(count);
  std::partial_sort(best->begin(), end, best->end(), [row](size_t a, size_t b) {
    return row[a] != row[b] ? row[a] > row[b] : a < b;
  });
  best->resize(count);
  std::sort(best->begin(), best->end());
}

}  // namespace

std::string_view DiffMetricName(DiffMetric metric) {
  constexpr std::string_view kNames[kDiffMetrics] = {"js", "mean", "max", "overlap"};
  return kNames[static_cast<size_t>(metric)];
}

double HeadDiff::Overlap(const float* a, const float* b, size_t keys) {
  const size_t count = std::min(top_k_, keys);
  Largest(a, keys, count, &best_a_);
  Largest(b, keys, count, &best_b_);
  size_t common = 0;
  for (const size_t key : best_a_) {
    common += std::binary_search(best_b_.begin(), best_b_.end(), key) ? 1 : 0;
  }
  return static_cast<double>(common) / static_cast<double>(count);
}

void HeadDiff::Add(const AttentionRows& a, const AttentionRows& b) {
  Sums& sums = sums_[heads_.Slot(a.layer, a.head)];
  for (size_t i = 0; i < a.queries; ++i) {
    double divergence = 0;
    for (size_t j = 0; j < a.keys; ++j) {
      const auto p = static_cast<double>(a.Row(i)[j]), q = static_cast<double>(b.Row(i)[j]);
      const double middle = (p + q) / 2, difference = std::abs(p - q);
      divergence += (Term(p, middle) + Term(q, middle)) / 2;
      sums.difference += difference;
      sums.largest = std::max(sums.largest, difference);
    }
    divergence = std::max(0.0, divergence);
    sums.divergence += divergence;
    divergence_ += divergence;
    sums.overlap += Overlap(a.Row(i), b.Row(i), a.keys);
  }
  sums.rows += a.queries;
  sums.weights += a.queries * a.keys;
  rows_ += a.queries;
}

double HeadDiff::Value(size_t slot, DiffMetric metric) const {
  const Sums& sums = sums_[slot];
  const double rows = std::max(1.0, static_cast<double>(sums.rows));
  switch (metric) {
    case DiffMetric::kDivergence:
      return sums.divergence / rows;
    case DiffMetric::kMean:
      return sums.difference / std::max(1.0, static_cast<double>(sums.weights));
    case DiffMetric::kMax:
      return sums.largest;
    case DiffMetric::kOverlap:
      break;
  }
  return sums.rows == 0 ? 1 : sums.overlap / rows;
}

}  // namespace pozor::tools
