// The weights of a folder, whatever their format.
#ifndef POZOR_MODELS_FORMATS_WEIGHTS_H_
#define POZOR_MODELS_FORMATS_WEIGHTS_H_

#include <memory>
#include <string>
#include <vector>

#include "engine/weights.h"
#include "models/formats/folder.h"
#include "pozor/status.h"

namespace pozor {

enum class WeightFormat : uint8_t {
  kNone,
  kSafetensors,
  kSafetensorsIndex,
  kTorch,
  kTorchIndex,
  kOnnx,
  kGguf,
  kOther  // known by name, not read
};

struct WeightFile {
  WeightFormat format = WeightFormat::kNone;
  std::string name;  // in the folder
};

// The format that the ending of a file name tells; kNone for all others.
WeightFormat FormatOf(const std::string& name);

// The file `named`, or if that is empty the first there is of: model.safetensors,
// pytorch_model.bin (or their shards), an ONNX export (plain before f16 before quantised, in the
// folder or in onnx/), the only .gguf. kNone if there is nothing; InvalidArgument if two .gguf
// files leave a choice.
Result<WeightFile> FindWeights(const ModelFolder& folder, const std::string& named);

// Opens what FindWeights found. NotFound for kNone; Unsupported, by name, for kOther.
Result<std::shared_ptr<const TensorSource>> OpenWeights(const ModelFolder& folder,
                                                        const WeightFile& file,
                                                        std::vector<std::string>* warnings);

// Both steps, with no file named.
Result<std::shared_ptr<const TensorSource>> OpenWeights(const ModelFolder& folder,
                                                        std::vector<std::string>* warnings);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_WEIGHTS_H_
