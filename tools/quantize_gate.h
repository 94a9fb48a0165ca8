// The quality gate of pozor quantize: vectors of a candidate against those of the f32 model.
#ifndef POZOR_TOOLS_QUANTIZE_GATE_H_
#define POZOR_TOOLS_QUANTIZE_GATE_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace pozor::tools {

// Texts that the gate looks at: short ones as they are, long ones joined from consecutive ones.
struct GateTexts {
  std::vector<std::string> texts;  // the short ones first
  size_t short_texts = 0;

  size_t long_texts() const { return texts.size() - short_texts; }
  std::vector<std::string_view> Views() const { return {texts.begin(), texts.end()}; }
};
GateTexts MakeGateTexts(std::span<const std::string_view> texts);

// What the texts are too few for, with what to give instead, a line each; empty: enough.
std::vector<std::string> TooFew(const GateTexts& texts);

// The least that passes.
struct GateLimits {
  double mean, p1, long_mean, rank, top10;
};
inline constexpr GateLimits kInt8Limits = {0.999, 0.997, 0.998, 0.995, 0.9};
inline constexpr GateLimits kBf16Limits = {0.9999, 0.9997, 0.9998, 0.999, 0.97};

// A figure that the texts do not admit passes as 1, and Text() leaves it out.
struct GateResult {
  size_t short_texts = 0, long_texts = 0;
  double mean = 1, p1 = 1, least = 1;    // cosine of short texts: mean, first percentile, smallest
  double long_mean = 1, long_least = 1;  // of the long ones
  double rank = 1;   // Spearman's correlation of the pairs' cosines, short texts
  double top10 = 1;  // share of the ten nearest short texts that stay

  bool HasLong() const { return long_texts > 0; }
  bool HasRank() const { return short_texts > 2; }    // of at least three pairs
  bool HasTop10() const { return short_texts > 11; }  // fewer: all others are nearest
  // Names what is below its limit, with both numbers; empty: passed.
  std::string Failures(const GateLimits& limits) const;
  std::string Text() const;
};

GateResult Compare(std::span<const float> reference, std::span<const float> vectors,
                   const GateTexts& texts);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_QUANTIZE_GATE_H_
