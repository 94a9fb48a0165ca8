#include "models/formats/onnx.h"

#include <charconv>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "models/formats/elements.h"
#include "models/formats/file.h"
#include "models/formats/float_formats.h"
#include "models/formats/onnx_graph.h"
#include "models/formats/onnx_roles.h"

namespace pozor {
namespace {

using Bytes = std::span<const uint8_t>;

std::optional<DType> TypeOf(OnnxType type) {
  switch (type) {
    case OnnxType::kFloat:
      return DType::kF32;
    case OnnxType::kFloat16:
      return DType::kF16;
    case OnnxType::kBfloat16:
      return DType::kBF16;
    case OnnxType::kDouble:
      return DType::kF64;
    case OnnxType::kInt8:
      return DType::kI8;
    case OnnxType::kUint8:
      return DType::kU8;
    case OnnxType::kInt32:
      return DType::kI32;
    case OnnxType::kInt64:
      return DType::kI64;
    case OnnxType::kBool:
      return DType::kBool;
  }
  return std::nullopt;
}

Bytes AsBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// The values of int32_data or int64_data in the width of the type.
std::vector<uint8_t> PackInts(const std::vector<int64_t>& values, DType type) {
  const size_t size = SizeOf(type);
  std::vector<uint8_t> bytes(values.size() * size);
  for (size_t i = 0; i < values.size(); ++i) std::memcpy(&bytes[i * size], &values[i], size);
  return bytes;
}

class OnnxReader {
 public:
  // `folder` is null if external data cannot be read.
  OnnxReader(const OnnxGraph& graph, const ModelFolder* folder, std::string directory,
             StoredTensors* out)
      : graph_(graph), folder_(folder), directory_(std::move(directory)), out_(*out) {
    for (size_t i = 0; i < graph.tensors.size(); ++i) by_name_.emplace(graph.tensors[i].name, i);
  }

  Status Run() {
    POZOR_TRY(const std::vector<OnnxWeight> weights, FindOnnxWeights(graph_, out_.description()));
    for (const OnnxWeight& weight : weights) POZOR_RETURN_IF_ERROR(Add(weight));
    return out_.CheckTotal();
  }

 private:
  Status Bad(const OnnxTensor& tensor, const std::string& why) const {
    return Corrupt(out_.description() + ": tensor '" + std::string(tensor.name.substr(0, 200)) +
                   "' has " + why + "; export the model again");
  }

  Status Add(const OnnxWeight& weight) {
    const OnnxTensor& tensor = graph_.tensors[weight.tensor];
    StoredTensor stored;
    stored.info.name = weight.name;
    POZOR_TRY(const Bytes bytes, BytesOf(tensor, &stored.info));
    stored.bytes = bytes.data();
    if (!weight.scale.empty() || !weight.zero.empty()) {
      POZOR_RETURN_IF_ERROR(ReadScale(weight, &stored));
    }
    std::vector<size_t>& shape = stored.info.shape;
    if (weight.transposed && shape.size() == 2 && stored.info.elements() > 0) {
      stored.strides = {1, shape[1]};
      std::swap(shape[0], shape[1]);
      if (stored.scale.has_value()) stored.scale->axis = 1 - stored.scale->axis;
    }
    return out_.Add(std::move(stored));
  }

  // The bytes of a tensor, as many as its shape needs; fills in type and shape.
  Result<Bytes> BytesOf(const OnnxTensor& tensor, TensorInfo* info) {
    const std::optional<DType> type = TypeOf(tensor.type);
    if (!type.has_value()) {
      return Bad(tensor, "data type " + std::to_string(static_cast<int64_t>(tensor.type)) +
                             ", which is not supported");
    }
    info->dtype = *type;
    for (const int64_t dim : tensor.dims) {
      if (dim < 0) return Bad(tensor, "a shape with a negative size");
      info->shape.push_back(static_cast<size_t>(dim));
    }
    const std::optional<size_t> count = ElementCount(info->shape);
    if (!count.has_value()) return Bad(tensor, "a shape whose size overflows");
    const size_t needed = *count * SizeOf(*type);
    if (tensor.external) return External(tensor, needed);
    Bytes bytes = AsBytes(tensor.raw);
    if (bytes.empty() && *type == DType::kF32) bytes = AsBytes(tensor.floats);
    if (bytes.empty() && *type == DType::kF64) bytes = AsBytes(tensor.doubles);
    if (bytes.empty() && !tensor.ints.empty()) {
      std::vector<uint8_t> packed = PackInts(tensor.ints, *type);
      const size_t size = packed.size();
      bytes = {out_.Keep(std::move(packed)), size};
    }
    if (bytes.size() == needed) return bytes;
    return Bad(tensor, std::to_string(bytes.size()) + " bytes, its shape and type need " +
                           std::to_string(needed));
  }

  Result<Bytes> External(const OnnxTensor& tensor, size_t needed) {
    std::string location;
    int64_t offset = 0, length = -1;
    for (const auto& [key, value] : tensor.location) {
      if (key == "location") location = std::string(value);
      int64_t* number = key == "offset" ? &offset : key == "length" ? &length : nullptr;
      if (number == nullptr) continue;
      const char *begin = value.data(), *end = begin + value.size();
      const auto [at, error] = std::from_chars(begin, end, *number);
      if (error != std::errc() || at != end || *number < 0) {
        return Bad(tensor, "the external " + std::string(key) + " " +
                               std::string(value.substr(0, 40)) + ", which is negative or none");
      }
    }
    POZOR_TRY(const MappedFile* file, Open(location));
    if (length >= 0 && static_cast<size_t>(length) != needed) {
      return Bad(tensor, "the external length " + std::to_string(length) + ", " +
                             std::to_string(needed) + " needed");
    }
    const size_t begin = static_cast<size_t>(offset);
    if (begin > file->size() || needed > file->size() - begin) {
      return Bad(tensor, "the external offset " + std::to_string(offset) + " and " +
                             std::to_string(needed) + " bytes, outside the file " + location +
                             " of " + std::to_string(file->size()));
    }
    return Bytes(file->data() + begin, needed);
  }

  Result<const MappedFile*> Open(const std::string& location) {
    const auto known = files_.find(location);
    if (known != files_.end()) return known->second;
    const std::string bad = BadRelativePath(location);
    if (folder_ == nullptr || !bad.empty()) {
      return InvalidArgument(out_.description() + ": the location \"" +
                             location.substr(0, location.find('\0')) + "\" of external data " +
                             (bad.empty() ? "cannot be read" : bad) +
                             "; only files inside the model folder are read");
    }
    POZOR_TRY(const std::string path, folder_->Resolve(directory_ + location));
    POZOR_TRY(MappedFile file, MappedFile::Open(path));
    const MappedFile* kept = &out_.Keep(std::move(file));
    files_.emplace(location, kept);
    return kept;
  }

  // One scale and zero point for the tensor, or one for each step of a dimension.
  Status ReadScale(const OnnxWeight& weight, StoredTensor* stored) {
    const OnnxTensor& tensor = graph_.tensors[weight.tensor];
    const auto scale = by_name_.find(weight.scale);
    const auto zero = by_name_.find(weight.zero);
    if (scale == by_name_.end() || zero == by_name_.end()) {
      return Bad(tensor, "no scale or no zero point beside it");
    }
    TensorInfo scale_info, zero_info;
    POZOR_TRY(const Bytes scales, BytesOf(graph_.tensors[scale->second], &scale_info));
    POZOR_TRY(const Bytes zeros, BytesOf(graph_.tensors[zero->second], &zero_info));
    const size_t count = scale_info.elements();
    const bool integers = stored->info.dtype == DType::kI8 || stored->info.dtype == DType::kU8;
    const std::vector<size_t>& shape = stored->info.shape;
    const bool channels = weight.scale_axis.has_value() && *weight.scale_axis < shape.size() &&
                          count == shape[*weight.scale_axis] && scale_info.shape.size() == 1;
    if (!integers || scale_info.dtype != DType::kF32 || zero_info.dtype != stored->info.dtype ||
        zero_info.elements() != count || (count != 1 && !channels)) {
      return Unsupported(
          out_.description() + ": tensor '" + std::string(tensor.name.substr(0, 200)) +
          "' is quantised in a way that is not supported (" + DTypeName(stored->info.dtype) + ", " +
          std::to_string(count) + " scales); use the export that is not quantised");
    }
    AffineScale out;
    out.axis = channels ? *weight.scale_axis : 0;
    for (size_t i = 0; i < count; ++i) {
      out.scales.push_back(LoadUnaligned<float>(scales.data() + i * sizeof(float)));
      const bool is_signed = zero_info.dtype == DType::kI8;
      out.zeros.push_back(is_signed ? static_cast<int8_t>(zeros[i]) : zeros[i]);
    }
    stored->scale = std::move(out);
    return Status();
  }

  const OnnxGraph& graph_;
  const ModelFolder* folder_;
  std::string directory_;  // of the file in the folder, with a slash, or empty
  StoredTensors& out_;
  std::map<std::string_view, size_t> by_name_;
  std::map<std::string, const MappedFile*> files_;
};

}  // namespace

Result<std::shared_ptr<const TensorSource>> OpenOnnx(const ModelFolder& folder,
                                                     const std::string& file) {
  POZOR_TRY(const std::string path, folder.Resolve(file));
  POZOR_TRY(MappedFile mapped, MappedFile::Open(path));
  auto source = std::make_shared<StoredTensors>(path);
  const MappedFile& kept = source->Keep(std::move(mapped));
  const std::string_view bytes(reinterpret_cast<const char*>(kept.data()), kept.size());
  POZOR_TRY(const OnnxGraph graph, ParseOnnx(bytes, path));
  const size_t slash = file.rfind('/');
  const std::string directory = slash == std::string::npos ? "" : file.substr(0, slash + 1);
  POZOR_RETURN_IF_ERROR(OnnxReader(graph, &folder, directory, source.get()).Run());
  return std::shared_ptr<const TensorSource>(std::move(source));
}

Result<std::shared_ptr<const TensorSource>> ReadOnnxBytes(Bytes bytes, const std::string& name) {
  auto source = std::make_shared<StoredTensors>(name);
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  POZOR_TRY(const OnnxGraph graph, ParseOnnx(text, name));
  POZOR_RETURN_IF_ERROR(OnnxReader(graph, nullptr, "", source.get()).Run());
  return std::shared_ptr<const TensorSource>(std::move(source));
}

}  // namespace pozor
