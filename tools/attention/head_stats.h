// What a head does over many texts: sums of a few numbers a row, in constant memory.
#ifndef POZOR_TOOLS_ATTENTION_HEAD_STATS_H_
#define POZOR_TOOLS_ATTENTION_HEAD_STATS_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "tools/attention/source.h"

namespace pozor::tools {

// Means over the rows of a head, as Clark et al. (2019) look at them.
enum class HeadMetric : uint8_t {
  kEntropy,   // of a row, in nats: 0 one token, ln(tokens) all alike
  kDistance,  // sum of weight x |from - to|, in tokens
  kFirst,     // weight of the first token, if the tokenizer added it ([CLS])
  kSpecial,   // weight of the other tokens it added ([SEP])
  kSelf,      // weight of the token itself
  kPrevious,  // of the one before
  kNext,      // of the one behind
  kLargest,   // the largest weight of a row
};
inline constexpr size_t kHeadMetrics = 8;
std::string_view HeadMetricName(HeadMetric metric);

class HeadStats {
 public:
  explicit HeadStats(const HeadSet& heads) : heads_(heads), sums_(heads.Count() * kHeadMetrics) {}

  void Add(const AttentionRows& rows, const TextRecord& text);
  void EndText() { ++texts_; }

  double Mean(size_t slot, HeadMetric metric) const;
  uint64_t texts() const { return texts_; }
  uint64_t rows() const { return heads_.Count() == 0 ? 0 : rows_ / heads_.Count(); }
  const HeadSet& heads() const { return heads_; }

 private:
  HeadSet heads_;
  std::vector<double> sums_;  // [heads, kHeadMetrics]
  uint64_t rows_ = 0, texts_ = 0;
};

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_HEAD_STATS_H_
