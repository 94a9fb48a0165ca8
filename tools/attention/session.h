// What the sub-verbs of `pozor attention` share: the model, the texts, the sources made of them.
#ifndef POZOR_TOOLS_ATTENTION_SESSION_H_
#define POZOR_TOOLS_ATTENTION_SESSION_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/attention/source.h"
#include "tools/io/text_files.h"

namespace pozor::tools {

struct AttentionRequest {
  std::string model;  // or a dump, where a verb takes one
  LoadOptions load;
  EncodeOptions encode;
  HeadChoice heads;
  std::optional<std::string> text;
  std::vector<std::string> pair;    // two texts, or none
  std::vector<std::string> inputs;  // files of texts
  TextFilesOptions input_options;
  std::string output;  // empty: the verb's default
  bool quiet = false;
};

struct InputText {
  std::string text;
  std::optional<std::string> pair;
};

// The texts of a request, one after another.
class TextQueue {
 public:
  // InvalidArgument if the request names none, or more than one kind.
  static Result<TextQueue> Open(const AttentionRequest& request);
  Result<std::optional<InputText>> Next();

 private:
  std::optional<InputText> given_;
  std::unique_ptr<TextFiles> files_;
};

// The only text of a request; InvalidArgument if there are more.
Result<InputText> OnlyText(const AttentionRequest& request, const char* verb);

// A model that is ready to be looked into.
class AttentionModel {
 public:
  static Result<AttentionModel> Load(const AttentionRequest& request);

  Result<std::unique_ptr<AttentionSource>> Open(const InputText& text, bool position_panel,
                                                bool self_check = true) const;
  const Model& model() const { return *model_; }

 private:
  std::unique_ptr<Model> model_;
  ModelSourceOptions options_;
};

// The dump that the request names, or its model over its only text. `*model` keeps a model alive.
Result<std::unique_ptr<AttentionSource>> OpenOne(const AttentionRequest& request, const char* verb,
                                                 bool position_panel,
                                                 std::optional<AttentionModel>* model);

// "max |1 - row sum| 2.4e-07, max |vector - fast path's| 0"
std::string SelfCheckText(const RunRecord& run);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_SESSION_H_
