#include "tools/attention/dump.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "engine/machine.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/signals.h"
#include "tools/io/output_folder.h"

namespace pozor::tools {
namespace {

Result<DumpFormat> ChooseFormat(const DumpRequest& request) {
  if (request.format) return *request.format;
  const std::string& output = request.attention.output;
  if (output == "-") return DumpFormat::kJsonLines;
  for (const DumpFormat format : {DumpFormat::kNpy, DumpFormat::kNpz, DumpFormat::kSafetensors,
                                  DumpFormat::kJsonLines, DumpFormat::kCsv}) {
    if (output.ends_with(DumpEnding(format))) return format;
  }
  return InvalidArgument(output +
                         ": the ending names no format of attention; end it in .npy, .npz, "
                         ".safetensors, .jsonl or .csv, or give --format");
}

Status CheckOptions(const DumpRequest& request, DumpFormat format) {
  const bool text = format == DumpFormat::kJsonLines || format == DumpFormat::kCsv;
  if (text && request.weight_type_given) {
    return InvalidArgument("--dtype: jsonl and csv hold decimals; leave it out, or dump npz");
  }
  if (text && request.dump.hidden) {
    return InvalidArgument(
        "--hidden: jsonl and csv hold attention only; dump npz, npy or "
        "safetensors");
  }
  if (!text && request.text_options_given) {
    return InvalidArgument(
        "--top-k, --min-weight: arrays hold every weight; leave it out, or dump "
        "jsonl or csv");
  }
  return Status();
}

struct Totals {
  uint64_t texts = 0, tokens = 0, truncated = 0;
  RunRecord worst;

  void Add(const AttentionRecord& record) {
    const RunRecord& run = record.runs[0];
    ++texts;
    tokens += record.text.size();
    truncated += record.text.tokens.truncated ? 1 : 0;
    worst.max_row_sum_error = std::max(worst.max_row_sum_error, run.max_row_sum_error);
    if (!run.max_vector_difference) return;
    worst.max_vector_difference =
        std::max(worst.max_vector_difference.value_or(0), *run.max_vector_difference);
  }
};

class Dumper {
 public:
  Dumper(const DumpRequest& request, DumpFormat format, const AttentionModel& model)
      : request_(request), format_(format), model_(model) {}

  Status Run(TextQueue& texts);
  const Totals& totals() const { return totals_; }

 private:
  Status DumpOne(const InputText& input, DumpWriter& writer);
  Status DumpEach(TextQueue& texts);

  const DumpRequest& request_;
  const DumpFormat format_;
  const AttentionModel& model_;
  Totals totals_;
};

Status Dumper::DumpOne(const InputText& input, DumpWriter& writer) {
  const auto where = [&](const Status& status) {
    return status.WithContext("text " + std::to_string(totals_.texts + 1));
  };
  auto source = model_.Open(input, false);
  if (!source.ok()) return where(source.status());
  Result<TransformShape> shape = ShapeOf((*source)->record(), request_.dump.transform);
  if (!shape.ok()) return where(shape.status());
  DumpText text = {**source, std::move(*shape), totals_.texts};
  const Status status = writer.Write(text);
  if (!status.ok()) return where(AsFailure(status));
  totals_.Add((*source)->record());
  return Status();
}

// A file a text, by its number.
Status Dumper::DumpEach(TextQueue& texts) {
  while (true) {
    POZOR_TRY(const std::optional<InputText> text, texts.Next());
    if (!text) return Status();
    const std::string path =
        NumberedFile(request_.attention.output, totals_.texts, DumpEnding(format_));
    POZOR_TRY(const auto writer,
              MakeDumpWriter(format_, path, request_.dump, request_.attention.encode.cancel));
    POZOR_RETURN_IF_ERROR(DumpOne(*text, *writer));
    POZOR_RETURN_IF_ERROR(writer->Finish());
  }
}

Status Dumper::Run(TextQueue& texts) {
  if (IsOutputFolder(request_.attention.output)) {
    POZOR_RETURN_IF_ERROR(MakeFolder(request_.attention.output));
    return DumpEach(texts);
  }
  POZOR_TRY(const auto writer, MakeDumpWriter(format_, request_.attention.output, request_.dump,
                                              request_.attention.encode.cancel));
  while (true) {
    POZOR_TRY(const std::optional<InputText> text, texts.Next());
    if (!text && totals_.texts == 0 && HoldsOneText(format_)) {
      return InvalidArgument("attention dump: the input has no text; give one");
    }
    if (!text) return writer->Finish();
    if (totals_.texts == 1 && HoldsOneText(format_)) {
      return InvalidArgument(request_.attention.output +
                             ": one file holds one text, the input has more; name a folder "
                             "('DIR/'), or dump jsonl or csv");
    }
    POZOR_RETURN_IF_ERROR(DumpOne(*text, *writer));
  }
}

}  // namespace

Status RunAttentionDump(DumpRequest request) {
  if (request.attention.output.empty()) request.attention.output = "-";
  POZOR_TRY(const DumpFormat format, ChooseFormat(request));
  POZOR_RETURN_IF_ERROR(CheckOptions(request, format));
  request.attention.encode.cancel = CancelOnSignals();
  request.attention.input_options.cancel = request.attention.encode.cancel;
  request.dump.transform.max_memory = request.attention.load.max_memory;
  request.dump.one_thread = request.attention.encode.threads == 1;
  POZOR_TRY(TextQueue texts, TextQueue::Open(request.attention));
  POZOR_TRY(const AttentionModel model, AttentionModel::Load(request.attention));
  Dumper dumper(request, format, model);
  POZOR_RETURN_IF_ERROR(dumper.Run(texts));
  if (request.attention.quiet) return Status();
  const Totals& totals = dumper.totals();
  std::fprintf(stderr,
               "pozor: %s text%s, %s tokens, %s truncated; self-check: %s; peak memory %s\n",
               Grouped(totals.texts).c_str(), totals.texts == 1 ? "" : "s",
               Grouped(totals.tokens).c_str(), Grouped(totals.truncated).c_str(),
               SelfCheckText(totals.worst).c_str(), Megabytes(PeakResidentBytes()).c_str());
  return Status();
}

}  // namespace pozor::tools
