// Tensors of weight files, read whole and in pieces, and hostile files with what refuses them.
#ifndef POZOR_TESTS_MODELS_FORMATS_H_
#define POZOR_TESTS_MODELS_FORMATS_H_

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/formats/weights.h"
#include "tests/models/golden.h"
#include "tests/support/cpu_time.h"

namespace pozor::test {

inline std::span<const uint8_t> AsBytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

inline const TensorInfo* Find(const TensorSource& source, std::string_view name) {
  for (const TensorInfo& tensor : source.tensors()) {
    if (tensor.name == name) return &tensor;
  }
  return nullptr;
}

inline std::vector<float> ReadAll(const TensorSource& source, std::string_view name) {
  const TensorInfo* tensor = Find(source, name);
  if (tensor == nullptr) FAIL("no tensor " << std::string(name));
  std::vector<float> values(tensor->elements());
  const Status status = source.Read(*tensor, 0, values.size(), values.data());
  if (!status.ok()) FAIL(status.message());
  return values;
}

// The same by pieces of odd sizes from odd places.
inline std::vector<float> ReadInPieces(const TensorSource& source, std::string_view name) {
  const TensorInfo& tensor = *Find(source, name);
  std::vector<float> values(tensor.elements());
  size_t piece = 1;
  for (size_t at = 0; at < values.size(); piece = piece * 2 + 1) {
    const size_t count = std::min(piece, values.size() - at);
    REQUIRE(source.Read(tensor, at, count, values.data() + at).ok());
    at += count;
  }
  return values;
}

struct Hostile {
  const char* file;
  const char* first;   // parts of the message
  const char* second;  // or ""
};

// Refused by name, in a line, soon.
template <class Open>
void CheckRefused(const std::string& folder, std::span<const Hostile> files, Open open) {
  const std::string path = DataPath("malformed/" + folder + "/");
  for (const Hostile& hostile : files) {
    const std::string name = hostile.file;
    CAPTURE(name);
    const CpuStopwatch watch;
    const Status status = open(path + name).status();
    CHECK(watch.Seconds() < kFewCpuSeconds);
    CHECK_FALSE(status.ok());
    const std::string& message = status.message();
    CAPTURE(message);
    CHECK(message.find(hostile.first) != std::string::npos);
    CHECK(message.find(hostile.second) != std::string::npos);
    CHECK(message.find("; ") != std::string::npos);
    CHECK(message.find('\n') == std::string::npos);
  }
}

inline constexpr const char* kWord = "embeddings.word_embeddings.weight";

}  // namespace pozor::test

#endif  // POZOR_TESTS_MODELS_FORMATS_H_
