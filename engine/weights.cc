#include "engine/weights.h"

#include <algorithm>
#include <utility>

namespace pozor {
namespace {

std::string ShapeText(std::span<const size_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + "]";
}

}  // namespace

WeightReader::WeightReader(std::shared_ptr<const TensorSource> source)
    : source_(std::move(source)) {
  for (const TensorInfo& tensor : source_->tensors()) {
    entries_.emplace(tensor.name, Entry{&tensor});
  }
}

void WeightReader::StripPrefix(std::string_view prefix) {
  if (prefix.empty()) return;
  std::map<std::string, Entry, std::less<>> renamed;
  for (auto& [name, entry] : entries_) {
    const bool has_prefix = name.size() > prefix.size() && name.starts_with(prefix);
    const std::string shorter = has_prefix ? name.substr(prefix.size()) : name;
    // A name that is taken already keeps its owner; the other tensor keeps its long name.
    if (has_prefix && (entries_.contains(shorter) || renamed.contains(shorter))) {
      renamed.emplace(name, entry);
    } else {
      renamed.emplace(shorter, entry);
    }
  }
  entries_ = std::move(renamed);
}

Status WeightReader::Rename(std::string (*rename)(std::string_view)) {
  std::map<std::string, Entry, std::less<>> renamed;
  for (auto& [name, entry] : entries_) {
    std::string new_name = rename(name);
    const auto [existing, inserted] = renamed.emplace(new_name, entry);
    if (!inserted) {
      return Corrupt(source_->description() + ": tensors '" + existing->second.tensor->name +
                     "' and '" + entry.tensor->name + "' both stand for '" + new_name +
                     "'; keep one of them");
    }
  }
  entries_ = std::move(renamed);
  return {};
}

bool WeightReader::Has(std::string_view name) const { return entries_.contains(name); }

const TensorInfo* WeightReader::Find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : found->second.tensor;
}

Result<const TensorInfo*> WeightReader::Take(std::string_view name, std::span<const size_t> shape) {
  const auto found = entries_.find(name);
  if (found == entries_.end()) {
    return NotFound(source_->description() + ": tensor '" + std::string(name) +
                    "' is missing; the file is incomplete or of another architecture");
  }
  const TensorInfo& tensor = *found->second.tensor;
  if (!std::equal(shape.begin(), shape.end(), tensor.shape.begin(), tensor.shape.end())) {
    return Corrupt(source_->description() + ": tensor '" + std::string(name) + "' has shape " +
                   ShapeText(tensor.shape) + ", expected " + ShapeText(shape) +
                   "; config and weights do not belong together");
  }
  found->second.taken = true;
  return &tensor;
}

std::vector<std::string> WeightReader::Unused() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) {
    if (!entry.taken) names.push_back(name);
  }
  return names;
}

}  // namespace pozor
