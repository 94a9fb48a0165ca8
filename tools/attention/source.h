// Where attention comes from: a model that runs a text, or a dump of such a run.
#ifndef POZOR_TOOLS_ATTENTION_SOURCE_H_
#define POZOR_TOOLS_ATTENTION_SOURCE_H_

#include <memory>
#include <optional>
#include <string>

#include "tools/attention/record.h"
#include "tools/attention/selection.h"

namespace pozor::tools {

struct StreamOptions {
  size_t query_begin = 0, query_end = SIZE_MAX;
  // For each block of rows the heads of a layer, instead of for each head its blocks.
  bool heads_together = false;
};

class AttentionSource {
 public:
  virtual ~AttentionSource() = default;

  // One run. Its self-check is complete when Stream() has come to its end.
  const AttentionRecord& record() const { return record_; }

  // The rows of every head of the record, layer by layer.
  virtual Status Stream(const StreamOptions& options, const AttentionSink& sink) = 0;
  virtual Status StreamHidden(const HiddenSink& sink) = 0;
  virtual size_t hidden_size() const = 0;  // 0: it has no hidden states

 protected:
  AttentionRecord record_;
};

struct ModelSourceOptions {
  HeadChoice heads;
  EncodeOptions encode;
  std::string model_name;    // as asked for
  std::string weights_hash;  // HashWeights
  bool position_panel = false;
  // Also take the text's vector on the fast path, and compare.
  bool self_check = true;
};

// `model` must outlive it.
Result<std::unique_ptr<AttentionSource>> OpenModelSource(const Model& model, std::string text,
                                                         std::optional<std::string> pair,
                                                         const ModelSourceOptions& options);

// True if the name ends as a dump's does: .npz, .safetensors, .npy.
bool IsDumpName(const std::string& path);

// A dump of whole matrices (all rows, no words merged, nothing reduced).
Result<std::unique_ptr<AttentionSource>> OpenDump(const std::string& path);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_SOURCE_H_
