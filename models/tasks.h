// Adapters of a checkpoint, one a task, of which at most one is in use (Sturua et al. 2024,
// jina-embeddings-v3).
#ifndef POZOR_MODELS_TASKS_H_
#define POZOR_MODELS_TASKS_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/weights.h"
#include "models/json.h"
#include "models/pipeline.h"
#include "pozor/status.h"

namespace pozor {

// What config.json says of them.
struct TaskAdapters {
  std::vector<std::string> tasks;
  std::vector<std::pair<std::string, std::string>> instructions;  // task, text in front of texts
  double rank = 4;                                                // lora_rank
  double scale = 1;                                               // lora_alpha / lora_rank
};

// No tasks if the configuration names none.
Result<TaskAdapters> ReadTaskAdapters(const JsonValue& config, const std::string& where);

// The place of a task; InvalidArgument with the tasks there are otherwise.
Result<size_t> FindTask(const TaskAdapters& adapters, const std::string& task);

// The weights as they are for a task. Corrupt, with a name, if a part of the adapter is missing or
// has another rank.
Result<std::shared_ptr<const TensorSource>> MergeTask(std::shared_ptr<const TensorSource> weights,
                                                      const TaskAdapters& adapters, size_t task);

// Makes the task's instruction the prompt of those who ask for none, unless the folder has a
// default.
void UseInstruction(const TaskAdapters& adapters, const std::string& task, Pipeline* pipeline);

}  // namespace pozor

#endif  // POZOR_MODELS_TASKS_H_
