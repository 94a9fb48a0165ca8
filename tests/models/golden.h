// Reads the golden folders of tests/data: a model, golden.json and golden.safetensors.
#ifndef POZOR_TESTS_MODELS_GOLDEN_H_
#define POZOR_TESTS_MODELS_GOLDEN_H_

#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "models/formats/safetensors.h"
#include "models/json.h"
#include "pozor/pozor.hpp"

namespace pozor::test {

inline std::string DataPath(const std::string& name) {
  return std::string(POZOR_TEST_DATA) + "/" + name;
}

inline Model LoadOrFail(const std::string& path, Precision precision = Precision::kAuto) {
  LoadOptions options;
  options.precision = precision;
  Result<Model> model = Model::Load(path, options);
  if (!model.ok()) FAIL(model.status().message());
  return std::move(*model);
}

class Golden {
 public:
  explicit Golden(const std::string& folder)
      : json_(ReadJsonFile(folder + "/golden.json").value()),
        tensors_(OpenSafetensors(folder + "/golden.safetensors").value()) {
    const JsonValue* tolerance = json_->Find("tolerance");
    abs_ = tolerance->Find("abs")->as_double();
    if (const JsonValue* rel = tolerance->Find("rel")) rel_ = rel->as_double();
  }

  const JsonValue& json() const { return json_.root(); }

  const TensorInfo* Find(const std::string& name) const {
    for (const TensorInfo& tensor : tensors_->tensors()) {
      if (tensor.name == name) return &tensor;
    }
    return nullptr;
  }

  std::vector<float> Read(const std::string& name) const {
    const TensorInfo* tensor = Find(name);
    if (tensor == nullptr) FAIL("no golden tensor " << name);
    std::vector<float> values(tensor->elements());
    REQUIRE(tensors_->Read(*tensor, 0, values.size(), values.data()).ok());
    return values;
  }

  std::vector<int32_t> ReadInts(const std::string& name) const {
    return ReadInt32(*tensors_, *Find(name)).value();
  }

  // Largest excess over the tolerance, in units of the tolerance: at most 1 is right.
  double Excess(std::span<const float> got, std::span<const float> expected) const {
    if (got.size() != expected.size()) return HUGE_VAL;
    double worst = 0;
    for (size_t i = 0; i < got.size(); ++i) {
      const double allowed = abs_ + rel_ * std::abs(static_cast<double>(expected[i]));
      const double difference = std::abs(static_cast<double>(got[i]) - expected[i]);
      worst = std::isnan(difference) ? HUGE_VAL : std::max(worst, difference / allowed);
    }
    return worst;
  }

 private:
  JsonDocument json_;
  std::shared_ptr<const TensorSource> tensors_;
  double abs_ = 0, rel_ = 0;
};

inline std::vector<int32_t> ToInts(const JsonValue& array) {
  std::vector<int32_t> values;
  for (const JsonValue& item : array.items()) values.push_back(static_cast<int32_t>(item.as_int()));
  return values;
}

inline std::vector<float> ToFloats(const JsonValue& array) {
  std::vector<float> values;
  for (const JsonValue& item : array.items())
    values.push_back(static_cast<float>(item.as_double()));
  return values;
}

// Texts of a golden.json: strings, or objects with "text".
inline std::vector<std::string> GoldenTexts(const JsonValue& json) {
  std::vector<std::string> texts;
  for (const JsonValue& item : json.Find("texts")->items()) {
    const JsonValue& text = item.is_object() ? *item.Find("text") : item;
    texts.emplace_back(text.as_string());
  }
  return texts;
}

}  // namespace pozor::test

#endif  // POZOR_TESTS_MODELS_GOLDEN_H_
