#include "tools/cli/options.h"
#include "tools/cli/report.h"
#include "tools/cli/verbs.h"
#include "tools/encode.h"

namespace pozor::tools {
namespace {

void AddOutput(VerbParser& parser, EncodeRequest* request, std::optional<OutputType>* output_type) {
  parser.app()
      .add_option("-o,--output", request->output, "file to write; '-' is standard output")
      ->type_name("OUT");
  parser.AddChoice<OutputFormat>("--format", &request->format,
                                 {{"npy", OutputFormat::kNpy},
                                  {"jsonl", OutputFormat::kJsonLines},
                                  {"f32", OutputFormat::kF32}},
                                 "of the output (by the ending; standard output: jsonl)");
  parser.AddChoice<OutputType>("--output-type", output_type,
                               {{"f32", OutputType::kF32},
                                {"int8", OutputType::kInt8},
                                {"binary", OutputType::kBinary},
                                {"ubinary", OutputType::kUbinary}},
                               "of the numbers; int8 needs --ranges");
  parser.app()
      .add_option("--ranges", request->ranges, "JSON file {\"min\": ..., \"max\": ...} for int8")
      ->type_name("FILE");
}

void AddVectorOptions(VerbParser& parser, EncodeOptions* options, std::optional<Overflow>* overflow,
                      size_t* truncate_dim) {
  CLI::App& app = parser.app();
  parser.AddCount("--threads", &options->threads, "what the machine grants this process");
  parser.AddCount("--batch-tokens", &options->batch_tokens,
                  "tokens computed at once; changes speed and memory, never a bit of a vector");
  parser.AddCount("--max-length", &options->max_length, "tokens of a text, specials included");
  app.add_option("--prompt", options->prompt_name, "name of one of the model's prompts")
      ->type_name("NAME");
  app.add_option("--prompt-text", options->prompt, "text to put in front of every text")
      ->type_name("T");
  parser.AddCount("--truncate-dim", truncate_dim, "keep the first N numbers of each vector");
  app.add_flag_callback(
      "--normalize", [options] { options->normalize = true; }, "vectors of length 1");
  app.add_flag_callback(
      "--no-normalize", [options] { options->normalize = false; },
      "vectors as they are pooled (neither: as the model says)");
  parser.AddChoice<Overflow>("--overflow", overflow,
                             {{"truncate", Overflow::kTruncate}, {"error", Overflow::kError}},
                             "what to do with a text that is too long");
  app.add_flag("--plain-specials", options->plain_specials, "\"[SEP]\" in a text is plain text");
}

}  // namespace

int EncodeVerb(std::span<char* const> arguments) {
  VerbParser parser("encode", "Texts to vectors, one vector a text, in the order of the input.",
                    "pozor encode all-MiniLM-L6-v2 sentences.txt -o vectors.npy\n"
                    "  echo 'A man is eating.' | pozor encode all-MiniLM-L6-v2");
  EncodeRequest request;
  std::optional<OutputType> output_type;
  std::optional<Overflow> overflow;
  size_t truncate_dim = 0;
  parser.AddModelAndInputs(true, kAnyNumberOfInputs);
  AddOutput(parser, &request, &output_type);
  AddInputFormat(parser, &request.input_format, &request.text_field, &request.header);
  AddVectorOptions(parser, &request.options, &overflow, &truncate_dim);
  AddLoadOptions(parser, &request.load);
  parser.app().add_flag("--profile", request.profile, "print where the time went");
  parser.app().add_flag("--json", request.json,
                        "the summary as JSON, the last line on standard error");
  parser.app().add_flag("--quiet", request.quiet, "no warnings, progress or summary");
  if (const auto code = parser.Parse(arguments)) return *code;

  request.model = parser.model();
  if (!parser.inputs().empty()) request.inputs = parser.inputs();
  request.output_type = output_type.value_or(OutputType::kF32);
  request.options.overflow = overflow.value_or(Overflow::kTruncate);
  request.options.max_memory = request.load.max_memory;
  if (truncate_dim > 0) request.options.truncate_dim = truncate_dim;
  if (request.options.prompt_name.has_value() && request.options.prompt.has_value()) {
    return UsedWrongly("encode: --prompt and --prompt-text; give one of the two");
  }
  return ExitCodeOf(RunEncode(request));
}

}  // namespace pozor::tools
