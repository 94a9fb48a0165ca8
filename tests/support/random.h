// Random numbers for tests: the same on every machine and every run.
#ifndef POZOR_TESTS_SUPPORT_RANDOM_H_
#define POZOR_TESTS_SUPPORT_RANDOM_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace pozor::test {

// splitmix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15ull);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    return z ^ (z >> 31);
  }

  // In [0, n); n > 0.
  size_t Index(size_t n) { return static_cast<size_t>(Next() % n); }

  // In [low, high), on a grid of 2^-24 of the range.
  float Uniform(float low = -1.0f, float high = 1.0f) {
    const float unit = static_cast<float>(Next() >> 40) * 0x1p-24f;
    return low + (high - low) * unit;
  }

  // About normal with mean 0 and variance 1: a sum of twelve uniform numbers.
  float Normal() {
    float sum = -6.0f;
    for (int i = 0; i < 12; ++i) sum += Uniform(0.0f, 1.0f);
    return sum;
  }

 private:
  uint64_t state_;
};

inline std::vector<float> RandomFloats(size_t n, uint64_t seed, float low = -1.0f,
                                       float high = 1.0f) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values) value = random.Uniform(low, high);
  return values;
}

inline std::vector<float> NormalFloats(size_t n, uint64_t seed, float deviation = 1.0f) {
  Random random(seed);
  std::vector<float> values(n);
  for (float& value : values) value = deviation * random.Normal();
  return values;
}

}  // namespace pozor::test

#endif  // POZOR_TESTS_SUPPORT_RANDOM_H_
