#include "models/architectures/architecture.h"

#include <algorithm>
#include <set>

namespace pozor {
namespace {

// "BertForMaskedLM" -> "Bert": the class name up to the task.
bool IsClassOf(std::string_view class_name, std::string_view stem) {
  if (!class_name.starts_with(stem)) return false;
  const std::string_view task = class_name.substr(stem.size());
  return task == "Model" || task == "EncoderModel" || task == "LMHeadModel" ||
         task.starts_with("For");
}

bool Matches(std::string_view pattern, std::string_view name) {
  const size_t star = pattern.find('*');
  if (star == std::string_view::npos) return pattern == name;
  const std::string_view head = pattern.substr(0, star);
  if (!name.starts_with(head)) return false;
  const std::string_view rest = pattern.substr(star + 1);
  if (rest.empty()) return true;
  for (size_t at = head.size(); at <= name.size(); ++at) {
    if (Matches(rest, name.substr(at))) return true;
  }
  return false;
}

// TensorFlow's names of LayerNorm parameters, kept by early PyTorch checkpoints.
std::string RenameOldNorms(std::string_view name) {
  if (name.ends_with("LayerNorm.gamma"))
    return std::string(name.substr(0, name.size() - 5)) + "weight";
  if (name.ends_with("LayerNorm.beta"))
    return std::string(name.substr(0, name.size() - 4)) + "bias";
  return std::string(name);
}

}  // namespace

Result<const Architecture*> FindArchitecture(std::string_view type, const std::string& config_name,
                                             const JsonValue* config) {
  std::string known;
  for (const Architecture* architecture : AllArchitectures()) {
    const bool claims =
        config != nullptr && architecture->claims != nullptr && architecture->claims(*config);
    if (claims) return architecture;
  }
  for (const Architecture* architecture : AllArchitectures()) {
    if (type == architecture->model_type || IsClassOf(type, architecture->class_name)) {
      return architecture;
    }
    known += (known.empty() ? "" : ", ") + std::string(architecture->model_type);
  }
  return Unsupported(config_name + ": model_type " + std::string(type.substr(0, 80)) +
                     " is not supported; use a model of one of these types: " + known);
}

Status NormalizeNames(const Architecture& architecture, WeightReader& weights) {
  const std::string_view anchor = architecture.anchor;
  std::set<std::string> prefixes;
  for (const TensorInfo& tensor : weights.source().tensors()) {
    if (!tensor.name.ends_with(anchor)) continue;
    const std::string prefix = tensor.name.substr(0, tensor.name.size() - anchor.size());
    if (prefix.empty() || prefix.back() == '.') prefixes.insert(prefix);
  }
  const std::string& where = weights.source().description();
  if (prefixes.empty()) {
    return NotFound(where + ": tensor '" + std::string(anchor) +
                    "' is missing; the file is incomplete or of another architecture");
  }
  if (prefixes.size() > 1 && !prefixes.contains("")) {
    return Unsupported(where + ": holds several models ('" + *prefixes.begin() + "' and '" +
                       *prefixes.rbegin() + "'); keep one of them");
  }
  weights.StripPrefix(*prefixes.begin());
  return weights.Rename(RenameOldNorms);
}

bool IsPassenger(const Architecture& architecture, std::string_view name) {
  return std::any_of(architecture.passengers.begin(), architecture.passengers.end(),
                     [&](std::string_view pattern) { return Matches(pattern, name); });
}

Result<std::vector<std::string>> ListPassengers(const Architecture& architecture,
                                                const WeightReader& weights) {
  std::vector<std::string> names = weights.Unused();
  for (const std::string& name : names) {
    const bool known =
        std::any_of(architecture.passengers.begin(), architecture.passengers.end(),
                    [&](std::string_view pattern) { return Matches(pattern, name); });
    if (known) continue;
    return Corrupt(weights.source().description() + ": tensor '" + name + "' has no place in " +
                   std::string(architecture.description) +
                   "; config and weights do not belong together");
  }
  return names;
}

}  // namespace pozor
