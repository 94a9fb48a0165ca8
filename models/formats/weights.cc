#include "models/formats/weights.h"

#include "models/formats/file.h"
#include "models/formats/gguf.h"
#include "models/formats/onnx.h"
#include "models/formats/safetensors.h"
#include "models/formats/sharded.h"
#include "models/formats/torch_file.h"

namespace pozor {
namespace {

constexpr const char* kWeights = "model.safetensors";
struct KnownFile {
  const char* name;
  WeightFormat format;
};
// In the order of preference.
constexpr KnownFile kFiles[] = {
    {kWeights, WeightFormat::kSafetensors},
    {"model.safetensors.index.json", WeightFormat::kSafetensorsIndex},
    {"pytorch_model.bin", WeightFormat::kTorch},
    {"pytorch_model.bin.index.json", WeightFormat::kTorchIndex},
    {"model.onnx", WeightFormat::kOnnx},
    {"onnx/model.onnx", WeightFormat::kOnnx},
    {"model_fp16.onnx", WeightFormat::kOnnx},
    {"onnx/model_fp16.onnx", WeightFormat::kOnnx},
    {"model_quantized.onnx", WeightFormat::kOnnx},
    {"onnx/model_quantized.onnx", WeightFormat::kOnnx},
};
constexpr const char* kOthers[] = {"tf_model.h5", "flax_model.msgpack", "rust_model.ot",
                                   "openvino_model.xml"};

}  // namespace

WeightFormat FormatOf(const std::string& name) {
  if (name.ends_with(".safetensors")) return WeightFormat::kSafetensors;
  if (name.ends_with(".safetensors.index.json")) return WeightFormat::kSafetensorsIndex;
  if (name.ends_with(".bin.index.json")) return WeightFormat::kTorchIndex;
  if (name.ends_with(".onnx")) return WeightFormat::kOnnx;
  if (name.ends_with(".gguf")) return WeightFormat::kGguf;
  for (const char* ending : {".bin", ".pt", ".pth"}) {
    if (name.ends_with(ending)) return WeightFormat::kTorch;
  }
  return WeightFormat::kNone;
}

Result<WeightFile> FindWeights(const ModelFolder& folder, const std::string& named) {
  if (!named.empty()) return WeightFile{FormatOf(named), named};
  for (const KnownFile& known : kFiles) {
    if (folder.Has(known.name)) return WeightFile{known.format, known.name};
  }
  WeightFile found;
  for (const std::string& name : ListFolder(folder.path())) {
    if (FormatOf(name) != WeightFormat::kGguf) continue;
    if (found.format == WeightFormat::kGguf) {
      return InvalidArgument(folder.path() + ": there are " + found.name + " and " + name +
                             "; give the path of one of them");
    }
    found = {WeightFormat::kGguf, name};
  }
  if (found.format != WeightFormat::kNone) return found;
  for (const char* other : kOthers) {
    if (folder.Has(other)) return WeightFile{WeightFormat::kOther, other};
  }
  return found;
}

Result<std::shared_ptr<const TensorSource>> OpenWeights(const ModelFolder& folder,
                                                        const WeightFile& file,
                                                        std::vector<std::string>* warnings) {
  switch (file.format) {
    case WeightFormat::kSafetensorsIndex:
      return OpenShards(folder, file.name, OpenSafetensors, warnings);
    case WeightFormat::kTorchIndex:
      return OpenShards(folder, file.name, OpenTorchFile, warnings);
    case WeightFormat::kOnnx:
      return OpenOnnx(folder, file.name);
    case WeightFormat::kNone:
      return NotFound(folder.path() + ": " + kWeights + " is missing; complete the model folder");
    case WeightFormat::kOther:
      return Unsupported(folder.path() + ": the weights are in " + file.name +
                         ", which Pozor does not read; convert them to " + kWeights);
    default:
      break;
  }
  POZOR_TRY(const std::string path, folder.Resolve(file.name));
  if (file.format == WeightFormat::kSafetensors) return OpenSafetensors(path);
  if (file.format == WeightFormat::kTorch) return OpenTorchFile(path);
  POZOR_TRY(std::shared_ptr<const TensorSource> gguf, OpenGguf(path));
  return gguf;
}

Result<std::shared_ptr<const TensorSource>> OpenWeights(const ModelFolder& folder,
                                                        std::vector<std::string>* warnings) {
  POZOR_TRY(const WeightFile file, FindWeights(folder, ""));
  return OpenWeights(folder, file, warnings);
}

}  // namespace pozor
