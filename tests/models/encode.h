// Vectors of texts for tests that take an error for a failure.
#ifndef POZOR_TESTS_MODELS_ENCODE_H_
#define POZOR_TESTS_MODELS_ENCODE_H_

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <vector>

#include "pozor/pozor.hpp"

namespace pozor::test {

// One row a text, one after another.
inline std::vector<float> Encode(const Model& model, const std::vector<std::string>& texts,
                                 const EncodeOptions& options = {}) {
  const auto vectors = model.Encode(std::span<const std::string>(texts), options);
  if (!vectors.ok()) FAIL(vectors.status().message());
  return std::vector<float>(vectors->data(),
                            vectors->data() + vectors->rows() * vectors->dimensions());
}

}  // namespace pozor::test

#endif  // POZOR_TESTS_MODELS_ENCODE_H_
