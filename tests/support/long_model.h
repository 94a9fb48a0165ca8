// The model of tests/data/bert with room for long texts, written by the test that needs it.
#ifndef POZOR_TESTS_SUPPORT_LONG_MODEL_H_
#define POZOR_TESTS_SUPPORT_LONG_MODEL_H_

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "models/formats/safetensors.h"
#include "models/json.h"

namespace pozor::testing {

inline std::string ReadWhole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

// All tensors as f32; the rows of the position table repeat until there are `positions`.
inline void WriteLongWeights(const std::string& from, const std::string& to, size_t positions) {
  const std::shared_ptr<const TensorSource> source = OpenSafetensors(from).value();
  std::string header = "{", body;
  for (const TensorInfo& tensor : source->tensors()) {
    std::vector<float> values(tensor.elements());
    REQUIRE(source->Read(tensor, 0, values.size(), values.data()).ok());
    std::vector<size_t> shape = tensor.shape;
    if (tensor.name.find("position_embeddings") != std::string::npos) {
      const size_t whole = values.size();
      shape[0] = positions;
      values.resize(positions * shape[1]);
      for (size_t i = whole; i < values.size(); ++i) values[i] = values[i - whole];
    }
    std::string sizes;
    for (const size_t size : shape) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    const size_t begin = body.size();
    body.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    header += (header.size() > 1 ? "," : "") + std::string("\"") + tensor.name +
              "\":{\"dtype\":\"F32\",\"shape\":[" + sizes + "],\"data_offsets\":[" +
              std::to_string(begin) + "," + std::to_string(body.size()) + "]}";
  }
  header += "}";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  const uint64_t length = header.size();
  std::ofstream file(to, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), 8);
  file << header << body;
}

// Writes the model into `folder`, which is made.
inline void WriteLongModel(const std::string& folder, size_t positions) {
  const std::string from = std::string(POZOR_TEST_DATA) + "/bert/";
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(from + "tokenizer.json", folder + "/tokenizer.json");
  const std::string number = std::to_string(positions);
  std::ofstream(folder + "/config.json")
      << Replaced(ReadWhole(from + "config.json"), "\"max_position_embeddings\": 40",
                  "\"max_position_embeddings\": " + number);
  std::ofstream(folder + "/tokenizer_config.json")
      << Replaced(ReadWhole(from + "tokenizer_config.json"), "\"model_max_length\": 19",
                  "\"model_max_length\": " + number);
  WriteLongWeights(from + "model.safetensors", folder + "/model.safetensors", positions);
}

}  // namespace pozor::testing

#endif  // POZOR_TESTS_SUPPORT_LONG_MODEL_H_
