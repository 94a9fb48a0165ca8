// Vectors of texts for tests that take an error for a failure.
#ifndef POZOR_TESTS_MODELS_ENCODE_H_
#define POZOR_TESTS_MODELS_ENCODE_H_

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pozor/pozor.hpp"
#include "tests/support/random.h"

namespace pozor::test {

// One row a text, one after another.
inline std::vector<float> Encode(const Model& model, const std::vector<std::string>& texts,
                                 const EncodeOptions& options = {}) {
  const auto vectors = model.Encode(std::span<const std::string>(texts), options);
  if (!vectors.ok()) FAIL(vectors.status().message());
  return std::vector<float>(vectors->data(),
                            vectors->data() + vectors->rows() * vectors->dimensions());
}

// Texts of 1 to `most` words in no order.
inline std::vector<std::string> WordTexts(size_t count, size_t most, uint64_t seed) {
  const char* words[] = {"ferry", "guitar", "plays", "man", "zebra", "over", "kitchen", "1958"};
  Random random(seed);
  std::vector<std::string> texts(count);
  for (std::string& text : texts) {
    const size_t length = 1 + random.Index(most);
    for (size_t w = 0; w < length; ++w)
      text += std::string(w == 0 ? "" : " ") + words[random.Index(8)];
  }
  return texts;
}

}  // namespace pozor::test

#endif  // POZOR_TESTS_MODELS_ENCODE_H_
