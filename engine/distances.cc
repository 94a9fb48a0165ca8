#include "engine/distances.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <vector>

namespace pozor {
namespace {

// Frequencies of the pairs, in the precision in which the reference has them.
std::vector<double> Frequencies(const RotarySpec& spec) {
  std::vector<double> frequencies;
  const double columns = static_cast<double>(spec.columns);
  for (size_t i = 0; i < spec.columns / 2; ++i) {
    const double exponent = 2.0 * static_cast<double>(i) / columns;
    if (spec.exact) {
      frequencies.push_back(spec.frequency_scale / std::pow(spec.theta, exponent));
      continue;
    }
    const auto power =
        static_cast<float>(std::pow(spec.theta, static_cast<double>(static_cast<float>(exponent))));
    const float frequency = 1.0f / power;
    frequencies.push_back(
        static_cast<double>(frequency * static_cast<float>(spec.frequency_scale)));
  }
  return frequencies;
}

double Angle(const RotarySpec& spec, double position, double frequency) {
  const double angle = position * frequency;
  return spec.exact ? angle : static_cast<double>(static_cast<float>(angle));
}

}  // namespace

void FillRotaryTable(const RotarySpec& spec, size_t positions, float* table) {
  const std::vector<double> frequencies = Frequencies(spec);
  const size_t half = spec.columns / 2;
  const bool halves = spec.pairs == RotaryPairs::kHalves;
  for (size_t p = 0; p < positions; ++p) {
    float* row = table + p * spec.columns;
    for (size_t i = 0; i < half; ++i) {
      const double angle = Angle(spec, static_cast<double>(p), frequencies[i]);
      row[halves ? i : 2 * i] = static_cast<float>(std::cos(angle));
      row[halves ? half + i : 2 * i + 1] = static_cast<float>(std::sin(angle));
    }
  }
}

size_t DistanceBucket(ptrdiff_t distance, const ScoreBiasSpec& spec) {
  const size_t half = spec.buckets / 2, exact = half / 2;
  const size_t first = distance > 0 ? half : 0;
  const auto n = static_cast<size_t>(std::abs(distance));
  if (n < exact) return first + n;
  const double steps =
      std::log(static_cast<double>(spec.max_distance) / static_cast<double>(exact));
  const float ratio = static_cast<float>(n) / static_cast<float>(exact);
  const float position =
      std::log(ratio) / static_cast<float>(steps) * static_cast<float>(half - exact);
  return first + std::min(half - 1, exact + static_cast<size_t>(position));
}

size_t RelativePositionRow(ptrdiff_t distance, const RelativePositionSpec& spec) {
  const size_t middle = spec.span / 2;
  auto n = static_cast<size_t>(std::abs(distance));
  if (spec.rows == DistanceRows::kLogarithmic && n > middle) {
    const double whole = static_cast<double>(spec.max_distance - 1) / static_cast<double>(middle);
    const float ratio = static_cast<float>(n) / static_cast<float>(middle);
    const float steps =
        std::log(ratio) / std::log(static_cast<float>(whole)) * static_cast<float>(middle - 1);
    n = middle + static_cast<size_t>(std::ceil(steps));
  }
  if (distance < 0) return spec.span - std::min(n, spec.span);
  return spec.span + std::min(n, spec.span - 1);
}

double HeadSlope(size_t head, size_t heads) {
  const size_t power = std::bit_floor(heads);
  const bool beyond = head >= power;
  const size_t of = beyond ? 2 * power : power;
  const size_t step = beyond ? 2 * (head - power) + 1 : head + 1;
  return std::exp2(-8.0 * static_cast<double>(step) / static_cast<double>(of));
}

void FillScoreBias(const ScoreBiasSpec& spec, std::span<const float> learned, size_t heads,
                   size_t tokens, float* bias) {
  const auto last = static_cast<ptrdiff_t>(tokens) - 1;
  const size_t width = 2 * tokens - 1;
  for (ptrdiff_t distance = -last; distance <= last; ++distance) {
    const auto at = static_cast<size_t>(distance + last);
    const size_t bucket = spec.kind == ScoreBias::kBuckets ? DistanceBucket(distance, spec) : 0;
    for (size_t head = 0; head < heads; ++head) {
      bias[head * width + at] = spec.kind == ScoreBias::kBuckets
                                    ? learned[bucket * heads + head]
                                    : 0.0f - static_cast<float>(HeadSlope(head, heads)) *
                                                 static_cast<float>(std::abs(distance));
    }
  }
}

}  // namespace pozor
