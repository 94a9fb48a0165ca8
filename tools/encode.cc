#include "tools/encode.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "engine/machine.h"
#include "kernels/cpu.h"
#include "tools/bench/json_writer.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/signals.h"
#include "tools/io/text_files.h"

namespace pozor::tools {
namespace {

Result<OutputFormat> ChooseFormat(const EncodeRequest& request) {
  if (request.format.has_value()) return *request.format;
  if (request.output == "-") return OutputFormat::kJsonLines;
  if (const auto format = OutputFormatOf(request.output)) return *format;
  std::error_code error;
  const auto kind = std::filesystem::status(request.output, error).type();
  using std::filesystem::file_type;
  if (kind == file_type::character || kind == file_type::fifo || kind == file_type::socket) {
    return OutputFormat::kJsonLines;
  }
  return InvalidArgument(request.output +
                         ": the ending names no format of vectors; end it in .npy, .jsonl or .f32, "
                         "or give --format");
}

Result<std::unique_ptr<VectorWriter>> OpenWriter(const EncodeRequest& request, OutputFormat format,
                                                 size_t dimensions) {
  VectorWriterOptions options;
  options.format = format;
  options.dimensions = dimensions;
  options.type = request.output_type;
  if (request.output_type == OutputType::kInt8) {
    if (request.ranges.empty()) {
      return InvalidArgument(
          "--output-type int8: needs the range of each dimension, which one "
          "input cannot tell; give --ranges FILE");
    }
    POZOR_TRY(options.ranges, ReadInt8Ranges(request.ranges));
    POZOR_RETURN_IF_ERROR(ExpandRanges(dimensions, request.ranges, &options.ranges));
  }
  POZOR_TRY(std::unique_ptr<OutputFile> file,
            OutputFile::Create(request.output, request.options.cancel));
  return MakeVectorWriter(std::move(file), std::move(options));
}

double TokensPerSecond(const EncodeStats& stats) {
  return stats.seconds > 0 ? static_cast<double>(stats.tokens) / stats.seconds : 0;
}

void PrintSummary(const EncodeStats& stats, size_t dimensions) {
  const std::string tier(CpuTierName(ActiveCpuTier()));
  std::fprintf(stderr,
               "pozor: %s text%s, %s tokens, %s truncated, %zu dimensions; %.2f s, %s tokens/s; "
               "tier %s, %zu thread%s, peak memory %s\n",
               Grouped(stats.texts).c_str(), stats.texts == 1 ? "" : "s",
               Grouped(stats.tokens).c_str(), Grouped(stats.truncated).c_str(), dimensions,
               stats.seconds, Grouped(static_cast<uint64_t>(TokensPerSecond(stats))).c_str(),
               tier.c_str(), stats.threads, stats.threads == 1 ? "" : "s",
               Megabytes(PeakResidentBytes()).c_str());
}

void PrintJsonSummary(const EncodeStats& stats, size_t dimensions, const EncodeRequest& request) {
  JsonWriter json;
  json.BeginObject()
      .Field("texts", stats.texts)
      .Field("tokens", stats.tokens)
      .Field("truncated", stats.truncated)
      .Field("dimensions", dimensions)
      .Field("seconds", stats.seconds)
      .Field("tokens_per_second", TokensPerSecond(stats))
      .Field("tier", CpuTierName(ActiveCpuTier()))
      .Field("threads", stats.threads)
      .Field("peak_memory_bytes", PeakResidentBytes())
      .Field("output", request.output)
      .EndObject();
  std::fprintf(stderr, "%s\n", json.text().c_str());
}

void TellWhoReadsATerminal(const EncodeRequest& request) {
  const bool reads_input = request.inputs == std::vector<std::string>{"-"};
  if (request.quiet || !reads_input || ::isatty(STDIN_FILENO) != 1) return;
  std::fprintf(stderr, "pozor: one text a line, please; Ctrl-D ends the input\n");
}

}  // namespace

Status RunEncode(EncodeRequest request) {
  POZOR_TRY(const OutputFormat format, ChooseFormat(request));
  request.options.cancel = CancelOnSignals();
  EncodeOptions options = request.options;

  TextFilesOptions source_options;
  source_options.format = request.input_format;
  source_options.text_field = request.text_field;
  source_options.header = request.header;
  source_options.cancel = options.cancel;
  POZOR_TRY(const std::unique_ptr<TextFiles> texts,
            TextFiles::Open(request.inputs, source_options));

  const Result<Model> model = Model::Load(request.model, request.load);
  if (!model.ok()) return AsFailure(model.status());
  for (const std::string& warning : model->Info().warnings) {
    if (!request.quiet) PrintWarning(warning);
  }
  // Options that this model does not admit are found before an output file is made.
  POZOR_RETURN_IF_ERROR(model->Tokenize("", options).status());
  const size_t dimensions = model->Dimensions(options);
  POZOR_TRY(const std::unique_ptr<VectorWriter> writer, OpenWriter(request, format, dimensions));

  ProgressBar bar(!request.quiet);
  if (bar.enabled()) {
    options.progress = [&](const Progress& now) { bar.Show(now, texts->ShareOf(now.texts)); };
  }
  std::string profile;
  if (request.profile) options.profile = &profile;
  TellWhoReadsATerminal(request);

  const Result<EncodeStats> stats = model->EncodeStream(*texts, *writer, options);
  bar.Clear();
  if (!stats.ok()) return AsFailure(stats.status());
  POZOR_RETURN_IF_ERROR(writer->Finish());
  if (request.profile) std::fprintf(stderr, "%s", profile.c_str());
  if (request.json) {
    PrintJsonSummary(*stats, dimensions, request);
  } else if (!request.quiet) {
    PrintSummary(*stats, dimensions);
  }
  return Status();
}

}  // namespace pozor::tools
