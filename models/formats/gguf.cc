#include "models/formats/gguf.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "models/formats/file.h"
#include "models/formats/ggml_blocks.h"
#include "models/formats/gguf_names.h"

namespace pozor {
namespace {

class GgufSource final : public GgufFile {
 public:
  // The bytes belong to `file`, or to somebody else if that is empty.
  GgufSource(std::span<const uint8_t> bytes, std::optional<MappedFile> file, std::string name)
      : bytes_(bytes), file_(std::move(file)), name_(std::move(name)) {}

  Status Init() {
    POZOR_TRY(header_, ParseGgufHeader(bytes_, name_));
    POZOR_RETURN_IF_ERROR(CheckWhole());
    POZOR_TRY(architecture_, FindGgufArchitecture(header_.metadata, name_));
    std::map<std::string, std::string> names;
    for (size_t i = 0; i < header_.tensors.size(); ++i) {
      const GgufTensor& tensor = header_.tensors[i];
      TensorInfo info;
      info.name = GgufTensorName(*architecture_, tensor.name);
      info.shape = tensor.shape;
      info.source_index = i;
      const auto [known, fresh] = names.emplace(info.name, tensor.name);
      if (!fresh) {
        return Corrupt(name_ + ": tensors " + known->second + " and " + tensor.name +
                       " stand for the same weight; convert the model again");
      }
      infos_.push_back(std::move(info));
    }
    return Status();
  }

  std::span<const TensorInfo> tensors() const override { return infos_; }
  const std::string& description() const override { return name_; }
  const GgufMetadata& metadata() const override { return header_.metadata; }

  Status Read(const TensorInfo& info, size_t begin, size_t count, float* out) const override {
    const GgufTensor& tensor = header_.tensors[info.source_index];
    const GgmlBlock block = BlockOf(tensor.type);
    const uint8_t* data = bytes_.data() + tensor.offset;
    size_t at = begin;
    const size_t end = begin + count;
    float buffer[kMostBlockWeights];
    while (at < end) {
      const size_t index = at / block.weights, inside = at % block.weights;
      const uint8_t* bytes = data + index * block.bytes;
      if (inside == 0 && end - at >= block.weights) {
        const size_t blocks = (end - at) / block.weights;
        DecodeBlocks(tensor.type, bytes, blocks, out);
        out += blocks * block.weights;
        at += blocks * block.weights;
        continue;
      }
      const size_t part = std::min(block.weights - inside, end - at);
      DecodeBlocks(tensor.type, bytes, 1, buffer);
      out = std::copy_n(buffer + inside, part, out);
      at += part;
    }
    return Status();
  }

  const float* Map(const TensorInfo& info) const override {
    const GgufTensor& tensor = header_.tensors[info.source_index];
    const uint8_t* data = bytes_.data() + tensor.offset;
    const bool aligned = reinterpret_cast<uintptr_t>(data) % alignof(float) == 0;
    if (tensor.type != GgmlType::kF32 || !aligned) return nullptr;
    return reinterpret_cast<const float*>(data);
  }

  void Release(const TensorInfo& info) const override {
    const GgufTensor& tensor = header_.tensors[info.source_index];
    const GgmlBlock block = BlockOf(tensor.type);
    if (!file_.has_value()) return;
    file_->Release(tensor.offset, info.elements() / block.weights * block.bytes);
  }

  Result<std::string> ConfigJson() const override {
    return GgufConfigJson(*architecture_, header_, name_);
  }

  std::string PoolingMode() const override {
    const std::string key = std::string(metadata().Text("general.architecture")) + ".pooling_type";
    switch (metadata().Int(key).value_or(0)) {
      case 1:
        return "mean";
      case 2:
        return "cls";
      case 3:
        return "lasttoken";
      default:
        return {};
    }
  }

 private:
  // Not one part of several, nor an adapter for another model.
  Status CheckWhole() const {
    if (metadata().Int("split.count").value_or(1) > 1) {
      return Unsupported(name_ + ": a GGUF file in several parts is not supported; merge them");
    }
    const std::string_view type = metadata().Text("general.type");
    if (type.empty() || type == "model") return Status();
    return Unsupported(name_ + ": general.type " + std::string(type.substr(0, 80)) +
                       " is not supported; use a file that holds a model");
  }

  std::span<const uint8_t> bytes_;
  std::optional<MappedFile> file_;
  std::string name_;
  GgufHeader header_;
  const GgufArchitecture* architecture_ = nullptr;
  std::vector<TensorInfo> infos_;
};

}  // namespace

Result<std::shared_ptr<const GgufFile>> OpenGguf(const std::string& path) {
  POZOR_TRY(MappedFile file, MappedFile::Open(path));
  const std::span<const uint8_t> bytes(file.data(), file.size());
  auto source = std::make_shared<GgufSource>(bytes, std::move(file), path);
  POZOR_RETURN_IF_ERROR(source->Init());
  return std::shared_ptr<const GgufFile>(std::move(source));
}

Result<std::shared_ptr<const GgufFile>> ReadGgufBytes(std::span<const uint8_t> bytes,
                                                      const std::string& name) {
  auto source = std::make_shared<GgufSource>(bytes, std::nullopt, name);
  POZOR_RETURN_IF_ERROR(source->Init());
  return std::shared_ptr<const GgufFile>(std::move(source));
}

}  // namespace pozor
