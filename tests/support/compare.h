// Distances between computed and expected values.
#ifndef POZOR_TESTS_SUPPORT_COMPARE_H_
#define POZOR_TESTS_SUPPORT_COMPARE_H_

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>

namespace pozor::test {

// True if both hold the same bit patterns: -0 differs from 0, a NaN equals itself.
inline bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

// Index of the first element whose bits differ, or a.size().
inline size_t FirstDifference(std::span<const float> a, std::span<const float> b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return i;
  }
  return a.size();
}

// max |a_i - b_i|; infinite if a NaN stands on one side only.
template <class A, class B>
double MaxAbsDifference(const A& a, const B& b) {
  double largest = a.size() == b.size() ? 0.0 : std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < std::min<size_t>(a.size(), b.size()); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    if (std::isnan(x) && std::isnan(y)) continue;
    const double difference = std::abs(x - y);
    largest = std::isnan(difference) ? std::numeric_limits<double>::infinity()
                                     : std::max(largest, difference);
  }
  return largest;
}

// Steps of the float grid between a and the exact value, in units of the last place of `exact`.
inline double UlpError(float a, double exact) {
  const float rounded = static_cast<float>(exact);
  if (std::isnan(rounded) || std::isnan(a)) return std::isnan(rounded) && std::isnan(a) ? 0 : 1e30;
  if (std::isinf(rounded) || std::isinf(a)) return rounded == a ? 0 : 1e30;
  const float magnitude = std::max(std::abs(rounded), std::numeric_limits<float>::min());
  const double ulp = static_cast<double>(std::nextafter(magnitude, 2 * magnitude)) - magnitude;
  return std::abs(static_cast<double>(a) - exact) / ulp;
}

// 64-bit FNV-1a over the bytes: a short name for exact results.
inline uint64_t HashBits(std::span<const float> values) {
  uint64_t hash = 0xCBF29CE484222325ull;
  const auto* bytes = reinterpret_cast<const unsigned char*>(values.data());
  for (size_t i = 0; i < values.size_bytes(); ++i) hash = (hash ^ bytes[i]) * 0x100000001B3ull;
  return hash;
}

}  // namespace pozor::test

#endif  // POZOR_TESTS_SUPPORT_COMPARE_H_
