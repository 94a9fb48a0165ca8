#include "models/tasks.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>

#include "engine/low_rank.h"

namespace pozor {
namespace {

constexpr size_t kMostTasks = 1 << 10;
constexpr std::string_view kOriginal = ".parametrizations.weight.original";

Result<double> PositiveNumber(const JsonValue& config, std::string_view key, double absent,
                              const std::string& where) {
  const JsonValue* value = config.Find(key);
  if (value == nullptr || value->is_null()) return absent;
  const double number = value->as_double();
  if (value->is_number() && std::isfinite(number) && number > 0) return number;
  return Corrupt(where + ": " + std::string(key) + " is " + value->Describe() +
                 ", a positive number is needed; check the configuration");
}

std::map<std::string_view, const TensorInfo*> ByName(const TensorSource& weights) {
  std::map<std::string_view, const TensorInfo*> named;
  for (const TensorInfo& tensor : weights.tensors()) named[tensor.name] = &tensor;
  return named;
}

// A table or matrix of the encoder; every one of them has an adapter or none has.
bool IsEncoderWeight(const TensorInfo& tensor) {
  const bool part = tensor.name.find("encoder.layers.") != std::string::npos ||
                    tensor.name.find("embeddings.") != std::string::npos;
  return part && tensor.shape.size() == 2 && tensor.name.ends_with(".weight");
}

}  // namespace

Result<TaskAdapters> ReadTaskAdapters(const JsonValue& config, const std::string& where) {
  TaskAdapters adapters;
  const JsonValue* tasks = config.Find("lora_adaptations");
  if (tasks == nullptr || tasks->is_null()) return adapters;
  if (!tasks->is_array() || tasks->size() > kMostTasks) {
    return Corrupt(where + ": lora_adaptations is " + tasks->Describe() +
                   ", a list of tasks is needed; check the configuration");
  }
  for (const JsonValue& task : tasks->items()) adapters.tasks.emplace_back(task.as_string());
  POZOR_TRY(const double rank, PositiveNumber(config, "lora_rank", 4, where));
  POZOR_TRY(const double alpha, PositiveNumber(config, "lora_alpha", 1, where));
  adapters.rank = rank;
  adapters.scale = alpha / rank;
  const JsonValue* instructions = config.Find("task_instructions");
  if (instructions == nullptr || instructions->is_null()) return adapters;
  if (!instructions->is_object()) {
    return Corrupt(where + ": task_instructions is " + instructions->Describe() +
                   ", an object of texts is needed; check the configuration");
  }
  for (const JsonMember& member : instructions->members()) {
    if (!member.value.is_string()) {
      return Corrupt(where + ": task_instructions of " + std::string(member.key) + " is " +
                     member.value.Describe() + ", a text is needed; check the configuration");
    }
    adapters.instructions.emplace_back(member.key, member.value.as_string());
  }
  return adapters;
}

Result<size_t> FindTask(const TaskAdapters& adapters, const std::string& task) {
  std::string names;
  for (size_t i = 0; i < adapters.tasks.size(); ++i) {
    if (adapters.tasks[i] == task) return i;
    names += (names.empty() ? "" : ", ") + adapters.tasks[i];
  }
  return InvalidArgument("task " + task + ": the model has no such task; " +
                         (names.empty() ? "it has none at all" : "use one of " + names));
}

Result<std::shared_ptr<const TensorSource>> MergeTask(std::shared_ptr<const TensorSource> weights,
                                                      const TaskAdapters& adapters, size_t task) {
  const std::map<std::string_view, const TensorInfo*> named = ByName(*weights);
  std::map<const TensorInfo*, LowRankUpdate> updates;
  std::vector<const TensorInfo*> parts;
  for (const auto& [name, tensor] : named) {
    if (!name.ends_with(kOriginal)) {
      if (!IsEncoderWeight(*tensor)) continue;
      return Corrupt("tensor '" + tensor->name + "': has no adapter for task " +
                     adapters.tasks[task] + "; download the weights again, or name no task");
    }
    const std::string stem(name.substr(0, name.size() - kOriginal.size()));
    const TensorInfo* pair[2];
    for (const int i : {0, 1}) {
      const std::string part =
          stem + ".parametrizations.weight.0." + (i == 0 ? "lora_A" : "lora_B");
      const auto found = named.find(part);
      if (found == named.end()) {
        return Corrupt("tensor '" + part + "': is missing, task " + adapters.tasks[task] +
                       " needs it; download the weights again");
      }
      pair[i] = found->second;
      const std::vector<size_t>& shape = pair[i]->shape;
      if (shape.size() == 3 && shape[0] == adapters.tasks.size()) continue;
      return Corrupt("tensor '" + part + "': " + std::to_string(adapters.tasks.size()) +
                     " adapters are needed, one for each of lora_adaptations; " +
                     "check the configuration");
    }
    // Tables are x (W + A B), layers x (W + B A)^T.
    if (!stem.ends_with("_embeddings")) std::swap(pair[0], pair[1]);
    const size_t rank = pair[1]->shape[1];
    if (static_cast<double>(rank) != adapters.rank) {
      return Corrupt("tensor '" + pair[1]->name + "': has rank " + std::to_string(rank) +
                     ", lora_rank says another; check the configuration");
    }
    updates[tensor] = {pair[0], pair[1], task, adapters.scale};
    parts.insert(parts.end(), pair, pair + 2);
  }
  if (updates.empty()) {
    return Corrupt(weights->description() + ": has no adapters, task " + adapters.tasks[task] +
                   " needs them; download the weights again, or name no task");
  }
  return LowRankSource::Create(std::move(weights), updates, parts);
}

void UseInstruction(const TaskAdapters& adapters, const std::string& task, Pipeline* pipeline) {
  if (!pipeline->default_prompt.empty()) return;
  for (const auto& [name, text] : adapters.instructions) {
    if (name != task) continue;
    if (!FindPrompt(*pipeline, task).ok()) pipeline->prompts.emplace_back(task, text);
    pipeline->default_prompt = task;
  }
}

}  // namespace pozor
