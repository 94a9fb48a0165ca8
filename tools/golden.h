// A golden folder: texts with their token ids (golden.json) and the tensors that a reference
// library computed for them (golden.safetensors).
#ifndef POZOR_TOOLS_GOLDEN_H_
#define POZOR_TOOLS_GOLDEN_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/weights.h"
#include "models/json.h"
#include "pozor/status.h"
#include "tools/verify_table.h"

namespace pozor::tools {

struct GoldenText {
  std::string text;
  std::optional<std::string> pair;
  bool has_ids = false;
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;  // or empty: not recorded
  // Choices of tokens with global attention by name ("global_cls"): their places.
  std::map<std::string, std::vector<int32_t>> globals;
};

class Golden {
 public:
  // `model_path` picks the variant of a folder that records several (by the name of the model's
  // folder). `same_as` is followed.
  static Result<Golden> Open(const std::string& folder, const std::string& model_path);

  // Tensors in the order of their names, numbers as numbers ("text.2" before "text.10").
  std::vector<TensorInfo> tensors() const;
  // Name without the variant's prefix.
  std::string ShortName(const TensorInfo& tensor) const;
  Result<std::vector<float>> ReadFloats(const TensorInfo& tensor) const;
  // The named tensor as int32 (f32 of whole numbers too); NotFound if there is none.
  Result<std::vector<int32_t>> ReadIntegers(const std::string& short_name) const;

  Tolerance ToleranceOf(const std::string& short_name) const;

  const std::map<size_t, GoldenText>& texts() const { return texts_; }
  const std::map<size_t, GoldenText>& pairs() const { return pairs_; }
  size_t max_length() const { return max_length_; }  // 0: the model's own
  // "embeddings" are those of a sentence-transformers model.
  bool sentence_vectors() const { return sentence_vectors_; }

 private:
  Golden() = default;
  Status ReadTexts(const JsonValue& root);
  Status ReadFlatIds();
  void ReadTolerance(const JsonValue& root);

  std::string path_;
  std::string prefix_;  // "safetensors-f32." or empty
  std::shared_ptr<const TensorSource> source_;
  std::map<size_t, GoldenText> texts_, pairs_;
  size_t max_length_ = 0;
  bool sentence_vectors_ = false;
  Tolerance tolerance_, hidden_tolerance_, attention_tolerance_;
};

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_GOLDEN_H_
