#include "models/formats/sharded.h"

#include <map>
#include <set>
#include <span>
#include <string_view>
#include <utility>

#include "models/formats/file.h"

namespace pozor {
namespace {

class ShardedSource final : public TensorSource {
 public:
  explicit ShardedSource(std::string description) : description_(std::move(description)) {}

  Status Add(std::shared_ptr<const TensorSource> shard) {
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
  Status Read(const TensorInfo& tensor, size_t begin, size_t count, float* out) const override {
    return Shard(tensor).Read(Original(tensor), begin, count, out);
  }
  const float* Map(const TensorInfo& tensor) const override {
    return Shard(tensor).Map(Original(tensor));
  }
  void Release(const TensorInfo& tensor) const override { Shard(tensor).Release(Original(tensor)); }

 private:
  const TensorSource& Shard(const TensorInfo& tensor) const {
    return *places_[tensor.source_index].first;
  }
  const TensorInfo& Original(const TensorInfo& tensor) const {
    return *places_[tensor.source_index].second;
  }

  std::string description_;
  std::vector<std::shared_ptr<const TensorSource>> shards_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::pair<const TensorSource*, const TensorInfo*>> places_;
  std::map<std::string, size_t, std::less<>> by_name_;
};

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

Result<std::shared_ptr<const TensorSource>> OpenShards(const ModelFolder& folder,
                                                       const std::string& index, OpenShard open,
                                                       std::vector<std::string>* warnings) {
  POZOR_TRY(const JsonDocument document, folder.ReadJsonObject(index));
  const std::string where = JoinPath(folder.path(), index);
  const JsonValue* map = document->Find("weight_map");
  if (map == nullptr || !map->is_object()) {
    return Corrupt(where + ": weight_map is missing or no object; download the file again");
  }
  auto source = std::make_shared<ShardedSource>(where);
  std::set<std::string> opened;
  for (const JsonMember& member : map->members()) {
    POZOR_TRY(const std::string name, ShardName(member, where));
    if (!opened.insert(name).second) continue;
    POZOR_TRY(const std::string path, folder.Resolve(name));
    POZOR_TRY(auto shard, open(path));
    POZOR_RETURN_IF_ERROR(source->Add(std::move(shard)));
  }
  for (const JsonMember& member : map->members()) {
    if (source->Has(member.key) || warnings == nullptr) continue;
    warnings->push_back(BrokenPromise(member, where));
  }
  return std::shared_ptr<const TensorSource>(std::move(source));
}

}  // namespace pozor
