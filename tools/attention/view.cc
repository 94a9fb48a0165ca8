#include "tools/attention/view.h"

#include <cstdio>

#include "tools/attention/page.h"
#include "tools/cli/report.h"
#include "tools/cli/signals.h"
#include "tools/io/output_folder.h"

namespace pozor::tools {
namespace {

Status WriteOne(AttentionSource& source, const ViewRequest& request, const std::string& path) {
  POZOR_TRY(const std::unique_ptr<OutputFile> file,
            OutputFile::Create(path, request.attention.encode.cancel));
  AttentionSource* const sources[] = {&source};
  const PageOptions options = {request.exact ? WeightType::kF16 : WeightType::kSqrtU8,
                               request.attention.encode.threads == 1};
  POZOR_RETURN_IF_ERROR(WritePage(sources, options, *file));
  POZOR_RETURN_IF_ERROR(file->Commit());
  if (request.attention.quiet) return Status();
  const AttentionRecord& record = source.record();
  std::fprintf(stderr, "pozor: %s: %zu tokens, %zu heads; self-check: %s\n", file->name().c_str(),
               record.text.size(), record.heads.Count(), SelfCheckText(record.runs[0]).c_str());
  if (!record.text.tokens.truncated) return Status();
  PrintWarning("text: was cut after " + std::to_string(record.text.size()) +
               " tokens; the page shows no more");
  return Status();
}

// A page a text.
Status WriteEach(const ViewRequest& request) {
  const std::string& folder = request.attention.output;
  POZOR_RETURN_IF_ERROR(MakeFolder(folder));
  POZOR_TRY(TextQueue texts, TextQueue::Open(request.attention));
  POZOR_TRY(const AttentionModel model, AttentionModel::Load(request.attention));
  for (uint64_t number = 0;; ++number) {
    POZOR_TRY(const std::optional<InputText> text, texts.Next());
    if (!text) return Status();
    POZOR_TRY(const auto source, model.Open(*text, true));
    POZOR_RETURN_IF_ERROR(WriteOne(*source, request, NumberedFile(folder, number, ".html")));
  }
}

}  // namespace

Status RunAttentionView(ViewRequest request) {
  request.attention.encode.cancel = CancelOnSignals();
  request.attention.input_options.cancel = request.attention.encode.cancel;
  if (request.attention.output.empty()) request.attention.output = "attention.html";
  if (IsOutputFolder(request.attention.output)) return WriteEach(request);
  std::optional<AttentionModel> model;
  POZOR_TRY(const auto source, OpenOne(request.attention, "view", true, &model));
  return AsFailure(WriteOne(*source, request, request.attention.output));
}

}  // namespace pozor::tools
