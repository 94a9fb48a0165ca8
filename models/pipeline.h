// A model folder as sentence-transformers reads it: modules, pooling, prompts, limits.
#ifndef POZOR_MODELS_PIPELINE_H_
#define POZOR_MODELS_PIPELINE_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/formats/folder.h"
#include "models/heads.h"
#include "pozor/status.h"

namespace pozor {

// A line of modules.json.
struct ModuleEntry {
  std::string type;  // the class's own name: "Pooling"
  std::string path;  // folder inside the model folder, "" for the folder itself
};

struct Pipeline {
  std::vector<ModuleEntry> modules;  // of modules.json; empty if there is none
  std::string transformer_path;      // "" or "0_Transformer"
  bool own_transformer = false;      // the Transformer module is a class of the folder's own code
  Head head;                         // filled by ReadHead
  std::string default_pooling;       // without modules.json; empty: mean
  bool include_prompt = true;        // false: the prompt's tokens are left out of the pooling
  bool lowercase = false;            // do_lower_case
  size_t max_seq_length = 0;         // tokens including specials; 0: not said
  std::vector<std::pair<std::string, std::string>> prompts;  // name, text
  std::string default_prompt;                                // name, or empty
  size_t truncate_dim = 0;
  std::string similarity = "cosine";
};

// modules.json, the Transformer module's small files, prompts. Refuses modules that are not known.
// Without modules.json the folder is a Transformer with mean pooling.
Result<Pipeline> ReadPipeline(const ModelFolder& folder, std::vector<std::string>* warnings);

// Pooling and what follows it, for hidden rows of `hidden` columns.
Status ReadHead(const ModelFolder& folder, size_t hidden, Pipeline* pipeline);

// The prompt's text under that name; InvalidArgument with the names there are otherwise.
Result<std::string> FindPrompt(const Pipeline& pipeline, std::string_view name);

}  // namespace pozor

#endif  // POZOR_MODELS_PIPELINE_H_
