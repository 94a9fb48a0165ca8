// A loaded model from the inside, for the API and for the tools that look at hidden states.
#ifndef POZOR_MODELS_MODEL_IMPL_H_
#define POZOR_MODELS_MODEL_IMPL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/encoder.h"
#include "models/formats/folder.h"
#include "models/heads.h"
#include "models/pipeline.h"
#include "models/prepared.h"
#include "models/scratch_pool.h"
#include "models/text/tokenizer.h"
#include "pozor/pozor.hpp"

namespace pozor {

class GgufFile;

struct Model::Impl {
  std::string folder;
  LoadOptions options;
  Pipeline pipeline;                     // pipeline.head makes vectors from hidden rows
  std::unique_ptr<Tokenizer> tokenizer;  // null if it was not required and cannot be read
  std::string tokenizer_error;           // why it is null
  std::unique_ptr<Encoder> encoder;
  std::optional<Linear> pooler;  // tanh(W h[0] + b), if asked for and present
  ModelInfo info;
  PreparedFacts facts;            // what a prepared file of it says; precision left out
  bool has_config_file = true;    // false: the configuration is inside a GGUF file
  mutable ScratchPool scratches;  // of the tokenizer
};

struct PartOptions {
  bool requires_tokenizer = true;
  bool with_pooler = false;
};

// The tokenizer of a folder: tokenizer.json or the older files, or, without tokenizer.json, that of
// the GGUF file the weights are in (null: they are in another format).
Result<std::unique_ptr<Tokenizer>> LoadTokenizer(const ModelFolder& folder, const GgufFile* gguf,
                                                 std::vector<std::string>* warnings);

// What Model::Load does, with a choice of the parts. `name` as there.
Result<std::unique_ptr<Model::Impl>> LoadModelParts(const std::string& name,
                                                    const LoadOptions& options,
                                                    const PartOptions& parts);

// Options of the head under the caller's options; InvalidArgument if truncate_dim is out of range.
Result<VectorOptions> ResolveVectorOptions(const Model::Impl& model, const EncodeOptions& options);

// Text in front of every text under the caller's options.
Result<std::string> ResolvePrompt(const Model::Impl& model, const EncodeOptions& options);

}  // namespace pozor

#endif  // POZOR_MODELS_MODEL_IMPL_H_
