#include "models/formats/safetensors.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "models/formats/file.h"
#include "models/formats/float_formats.h"
#include "models/formats/safetensors_header.h"

namespace pozor {
namespace {

// Bytes of a tensor, for those who want integers.
class RawTensors {
 public:
  virtual ~RawTensors() = default;
  virtual const uint8_t* Bytes(const TensorInfo& tensor) const = 0;
};

template <class Stored, class Convert>
void ReadAs(const uint8_t* bytes, size_t count, float* out, Convert convert) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = convert(LoadUnaligned<Stored>(bytes + i * sizeof(Stored)));
  }
}

class SafetensorsFile final : public TensorSource, public RawTensors {
 public:
  SafetensorsFile(MappedFile file, SafetensorsHeader header)
      : file_(std::move(file)), header_(std::move(header)) {}

  std::span<const TensorInfo> tensors() const override { return header_.tensors; }
  const std::string& description() const override { return file_.path(); }

  const uint8_t* Bytes(const TensorInfo& tensor) const override {
    return file_.data() + header_.data_begin + header_.offsets[tensor.source_index];
  }

  Status Read(const TensorInfo& tensor, size_t begin, size_t count, float* out) const override {
    const uint8_t* bytes = Bytes(tensor) + begin * SizeOf(tensor.dtype);
    switch (tensor.dtype) {
      case DType::kF32:
        std::memcpy(out, bytes, count * sizeof(float));
        return Status();
      case DType::kF64:
        ReadAs<double>(bytes, count, out, [](double v) { return static_cast<float>(v); });
        return Status();
      case DType::kF16:
        ReadAs<uint16_t>(bytes, count, out, F16ToFloat);
        return Status();
      case DType::kBF16:
        ReadAs<uint16_t>(bytes, count, out, Bf16ToFloat);
        return Status();
      default:
        return Corrupt(file_.path() + ": " + tensor.name + " has dtype " +
                       SafetensorsTypeName(tensor.dtype) +
                       ", floating point is needed; convert the weights");
    }
  }

  const float* Map(const TensorInfo& tensor) const override {
    const uint8_t* bytes = Bytes(tensor);
    const bool aligned = reinterpret_cast<uintptr_t>(bytes) % alignof(float) == 0;
    return tensor.dtype == DType::kF32 && aligned ? reinterpret_cast<const float*>(bytes) : nullptr;
  }

  void Release(const TensorInfo& tensor) const override {
    file_.Release(header_.data_begin + header_.offsets[tensor.source_index],
                  tensor.elements() * SizeOf(tensor.dtype));
  }

 private:
  MappedFile file_;
  SafetensorsHeader header_;
};

class ShardedSafetensors final : public TensorSource, public RawTensors {
 public:
  explicit ShardedSafetensors(std::string description) : description_(std::move(description)) {}

  Status Add(std::shared_ptr<const SafetensorsFile> shard) {
    for (const TensorInfo& tensor : shard->tensors()) {
      const auto [it, fresh] = by_name_.emplace(tensor.name, tensors_.size());
      if (!fresh) {
        return Corrupt(shard->description() + ": " + tensor.name + " is also in " +
                       places_[it->second].first->description() + "; download the model again");
      }
      tensors_.push_back(tensor);
      tensors_.back().source_index = places_.size();
      places_.emplace_back(shard.get(), &tensor);
    }
    shards_.push_back(std::move(shard));
    return Status();
  }

  bool Has(std::string_view name) const { return by_name_.contains(name); }

  std::span<const TensorInfo> tensors() const override { return tensors_; }
  const std::string& description() const override { return description_; }
  const uint8_t* Bytes(const TensorInfo& tensor) const override {
    return Shard(tensor).Bytes(Original(tensor));
  }
  Status Read(const TensorInfo& tensor, size_t begin, size_t count, float* out) const override {
    return Shard(tensor).Read(Original(tensor), begin, count, out);
  }
  const float* Map(const TensorInfo& tensor) const override {
    return Shard(tensor).Map(Original(tensor));
  }
  void Release(const TensorInfo& tensor) const override { Shard(tensor).Release(Original(tensor)); }

 private:
  const SafetensorsFile& Shard(const TensorInfo& tensor) const {
    return *places_[tensor.source_index].first;
  }
  const TensorInfo& Original(const TensorInfo& tensor) const {
    return *places_[tensor.source_index].second;
  }

  std::string description_;
  std::vector<std::shared_ptr<const SafetensorsFile>> shards_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::pair<const SafetensorsFile*, const TensorInfo*>> places_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

Result<std::shared_ptr<const SafetensorsFile>> OpenFile(const std::string& path) {
  POZOR_TRY(MappedFile file, MappedFile::Open(path));
  POZOR_TRY(SafetensorsHeader header, ParseSafetensorsHeader({file.data(), file.size()}, path));
  return std::make_shared<const SafetensorsFile>(std::move(file), std::move(header));
}

// The file of an entry of the weight_map: a plain name.
Result<std::string> ShardName(const JsonMember& member, const std::string& where) {
  if (!member.value.is_string()) {
    return Corrupt(where + ": weight_map gives " + member.value.Describe() + " for " +
                   std::string(member.key) + ", a file name is needed; download it again");
  }
  std::string name(member.value.as_string());
  if (name.find('/') == std::string::npos) return name;
  const std::string bad = BadRelativePath(name);
  return InvalidArgument(where + ": the file name \"" + name + "\" " +
                         (bad.empty() ? "is not a plain name" : bad) +
                         "; only files inside the model folder are read");
}

std::string BrokenPromise(const JsonMember& member, const std::string& where) {
  return where + ": promises " + std::string(member.key) + ", which " +
         std::string(member.value.as_string()) + " does not hold";
}

}  // namespace

Result<std::shared_ptr<const TensorSource>> OpenSafetensors(const std::string& path) {
  POZOR_TRY(std::shared_ptr<const TensorSource> file, OpenFile(path));
  return file;
}

Result<std::shared_ptr<const TensorSource>> OpenSafetensorsIndex(
    const ModelFolder& folder, const std::string& index, std::vector<std::string>* warnings) {
  POZOR_TRY(const JsonDocument document, folder.ReadJsonObject(index));
  const std::string where = JoinPath(folder.path(), index);
  const JsonValue* map = document->Find("weight_map");
  if (map == nullptr || !map->is_object()) {
    return Corrupt(where + ": weight_map is missing or no object; download the file again");
  }
  auto source = std::make_shared<ShardedSafetensors>(where);
  std::set<std::string> opened;
  for (const JsonMember& member : map->members()) {
    POZOR_TRY(const std::string name, ShardName(member, where));
    if (!opened.insert(name).second) continue;
    POZOR_TRY(const std::string path, folder.Resolve(name));
    POZOR_TRY(auto shard, OpenFile(path));
    POZOR_RETURN_IF_ERROR(source->Add(std::move(shard)));
  }
  for (const JsonMember& member : map->members()) {
    if (source->Has(member.key) || warnings == nullptr) continue;
    warnings->push_back(BrokenPromise(member, where));
  }
  return std::shared_ptr<const TensorSource>(std::move(source));
}

Result<std::vector<int32_t>> ReadInt32(const TensorSource& source, const TensorInfo& tensor) {
  const auto* raw = dynamic_cast<const RawTensors*>(&source);
  if (raw == nullptr || (tensor.dtype != DType::kI32 && tensor.dtype != DType::kI64)) {
    return InvalidArgument(source.description() + ": " + tensor.name + " has dtype " +
                           SafetensorsTypeName(tensor.dtype) + ", integers are needed");
  }
  const uint8_t* bytes = raw->Bytes(tensor);
  std::vector<int32_t> out(tensor.elements());
  for (size_t i = 0; i < out.size(); ++i) {
    const int64_t value = tensor.dtype == DType::kI32 ? LoadUnaligned<int32_t>(bytes + 4 * i)
                                                      : LoadUnaligned<int64_t>(bytes + 8 * i);
    if (value < std::numeric_limits<int32_t>::min() ||
        value > std::numeric_limits<int32_t>::max()) {
      return Corrupt(source.description() + ": " + tensor.name + " holds " + std::to_string(value) +
                     ", more than 32 bits; check the file");
    }
    out[i] = static_cast<int32_t>(value);
  }
  return out;
}

}  // namespace pozor
