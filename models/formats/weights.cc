#include "models/formats/weights.h"

#include "models/formats/safetensors.h"

namespace pozor {
namespace {

constexpr const char* kWeights = "model.safetensors";
constexpr const char* kIndex = "model.safetensors.index.json";
constexpr const char* kOthers[] = {"pytorch_model.bin", "pytorch_model.bin.index.json",
                                   "tf_model.h5", "flax_model.msgpack", "model.onnx"};

}  // namespace

Result<std::shared_ptr<const TensorSource>> OpenWeights(const ModelFolder& folder,
                                                        std::vector<std::string>* warnings) {
  if (folder.Has(kWeights)) {
    POZOR_TRY(const std::string path, folder.Resolve(kWeights));
    return OpenSafetensors(path);
  }
  if (folder.Has(kIndex)) return OpenSafetensorsIndex(folder, kIndex, warnings);
  for (const char* other : kOthers) {
    if (!folder.Has(other)) continue;
    return Unsupported(folder.path() + ": the weights are in " + other +
                       ", which Pozor does not read; convert them to " + kWeights);
  }
  return NotFound(folder.path() + ": " + kWeights + " is missing; complete the model folder");
}

}  // namespace pozor
