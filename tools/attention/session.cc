#include "tools/attention/session.h"

#include <cstdio>
#include <future>

#include "models/locate.h"
#include "tools/bench/model_record.h"
#include "tools/cli/report.h"

namespace pozor::tools {

Result<TextQueue> TextQueue::Open(const AttentionRequest& request) {
  const int kinds =
      (request.text ? 1 : 0) + (request.pair.empty() ? 0 : 1) + (request.inputs.empty() ? 0 : 1);
  if (kinds != 1) {
    return InvalidArgument(std::string("attention: ") + (kinds == 0 ? "no text" : "several texts") +
                           " given; give one TEXT, or --pair A B, or -f FILE");
  }
  TextQueue queue;
  if (request.text) queue.given_ = InputText{*request.text, std::nullopt};
  if (!request.pair.empty()) queue.given_ = InputText{request.pair[0], request.pair[1]};
  if (!request.inputs.empty()) {
    POZOR_TRY(queue.files_, TextFiles::Open(request.inputs, request.input_options));
  }
  return queue;
}

Result<std::optional<InputText>> TextQueue::Next() {
  if (files_ == nullptr) return std::exchange(given_, std::nullopt);
  POZOR_TRY(std::optional<std::string> text, files_->Next());
  if (!text) return std::optional<InputText>();
  return std::optional<InputText>(InputText{std::move(*text), std::nullopt});
}

Result<InputText> OnlyText(const AttentionRequest& request, const char* verb) {
  POZOR_TRY(TextQueue texts, TextQueue::Open(request));
  POZOR_TRY(const std::optional<InputText> text, texts.Next());
  if (!text) {
    return InvalidArgument(std::string("attention ") + verb +
                           ": the input has no text; give one TEXT, or -f FILE with one");
  }
  POZOR_TRY(const std::optional<InputText> more, texts.Next());
  if (!more) return *text;
  return InvalidArgument(
      std::string("attention ") + verb +
      ": takes one text, the input has more; give one TEXT, or -f FILE with one");
}

Result<AttentionModel> AttentionModel::Load(const AttentionRequest& request) {
  AttentionModel loaded;
  // The hash reads all weights once more: beside loading, it costs no time.
  const Result<std::string> path = LocateModel(request.model);
  std::future<std::string> hash;
  if (path.ok()) {
    hash = std::async(std::launch::async | std::launch::deferred, HashWeights, *path);
  }
  Result<Model> model = Model::Load(request.model, request.load);
  if (!model.ok()) return AsFailure(model.status());
  loaded.model_ = std::make_unique<Model>(std::move(*model));
  for (const std::string& warning : loaded.model_->Info().warnings) {
    if (!request.quiet) PrintWarning(warning);
  }
  // Options that this model does not admit are used wrongly, whatever the text.
  POZOR_RETURN_IF_ERROR(loaded.model_->Tokenize("", request.encode).status());
  loaded.options_.heads = request.heads;
  loaded.options_.encode = request.encode;
  loaded.options_.encode.max_memory = request.load.max_memory;
  loaded.options_.model_name = request.model;
  if (hash.valid()) loaded.options_.weights_hash = hash.get();
  const ModelInfo& info = loaded.model_->Info();
  POZOR_RETURN_IF_ERROR(ChooseHeads(request.heads, info.layers, info.heads).status());
  return loaded;
}

Result<std::unique_ptr<AttentionSource>> AttentionModel::Open(const InputText& text,
                                                              bool position_panel,
                                                              bool self_check) const {
  ModelSourceOptions options = options_;
  options.position_panel = position_panel;
  options.self_check = self_check;
  Result<std::unique_ptr<AttentionSource>> source =
      OpenModelSource(*model_, text.text, text.pair, options);
  if (!source.ok()) return AsFailure(source.status());
  return source;
}

Result<std::unique_ptr<AttentionSource>> OpenOne(const AttentionRequest& request, const char* verb,
                                                 bool position_panel,
                                                 std::optional<AttentionModel>* model) {
  if (IsDumpName(request.model)) {
    const bool text = request.text || !request.pair.empty() || !request.inputs.empty();
    if (text) {
      return InvalidArgument(std::string("attention ") + verb + ": " + request.model +
                             " is a dump and has its text; leave the text out");
    }
    return OpenDump(request.model);
  }
  POZOR_TRY(const InputText text, OnlyText(request, verb));
  POZOR_TRY(*model, AttentionModel::Load(request));
  return (*model)->Open(text, position_panel);
}

std::string SelfCheckText(const RunRecord& run) {
  char text[128];
  std::snprintf(text, sizeof text, "max |1 - row sum| %.2g", run.max_row_sum_error);
  std::string line = text;
  if (!run.max_vector_difference) return line;
  std::snprintf(text, sizeof text, ", max |vector - fast path's| %.2g", *run.max_vector_difference);
  return line + text;
}

}  // namespace pozor::tools
