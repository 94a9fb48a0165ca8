// A model folder as sentence-transformers reads it: modules, pooling, prompts, limits.
#ifndef POZOR_MODELS_PIPELINE_H_
#define POZOR_MODELS_PIPELINE_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/formats/folder.h"
#include "models/heads.h"
#include "pozor/status.h"

namespace pozor {

struct Pipeline {
  std::string transformer_path;  // of the Transformer module in the folder: "" or "0_Transformer"
  Head head;
  bool include_prompt = true;  // false: the prompt's tokens are left out of the pooling
  bool lowercase = false;      // do_lower_case
  size_t max_seq_length = 0;   // tokens including specials; 0: not said
  std::vector<std::pair<std::string, std::string>> prompts;  // name, text
  std::string default_prompt;                                // name, or empty
  size_t truncate_dim = 0;
  std::string similarity = "cosine";
};

// Where the Transformer module lies, and what belongs to it. Reads modules.json and small files
// only; without modules.json the folder is a Transformer with mean pooling.
Result<Pipeline> ReadPipeline(const ModelFolder& folder, std::vector<std::string>* warnings);

// Pooling and what follows it, for hidden rows of `hidden` columns.
Status ReadHead(const ModelFolder& folder, size_t hidden, Pipeline* pipeline);

// The prompt's text under that name; InvalidArgument with the names there are otherwise.
Result<std::string> FindPrompt(const Pipeline& pipeline, std::string_view name);

}  // namespace pozor

#endif  // POZOR_MODELS_PIPELINE_H_
