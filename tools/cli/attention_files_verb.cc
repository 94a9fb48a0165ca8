// pozor attention dump and view: what goes into files.
#include "tools/attention/dump.h"
#include "tools/attention/view.h"
#include "tools/cli/attention_options.h"
#include "tools/cli/report.h"

namespace pozor::tools {
namespace {

void AddDumpOptions(VerbParser& parser, DumpRequest* request, std::optional<WeightType>* type,
                    std::string* rows, size_t* top_k) {
  CLI::App& app = parser.app();
  parser.AddChoice<DumpFormat>("--format", &request->format,
                               {{"npy", DumpFormat::kNpy},
                                {"npz", DumpFormat::kNpz},
                                {"safetensors", DumpFormat::kSafetensors},
                                {"jsonl", DumpFormat::kJsonLines},
                                {"csv", DumpFormat::kCsv}},
                               "by the ending of the output (standard output: jsonl)");
  parser.AddChoice<WeightType>(
      "--dtype", type,
      {{"f32", WeightType::kF32}, {"f16", WeightType::kF16}, {"u8", WeightType::kSqrtU8}},
      "of arrays (f32); u8 is round(255 sqrt(w))");
  app.add_option("--rows", *rows, "only what these tokens look at: 5, or 3-7")->type_name("A-B");
  app.add_flag("--hidden", request->dump.hidden, "hidden states too (npy: instead)");
  parser.AddCount("--top-k", top_k, "jsonl, csv: largest weights of each row (jsonl 8, csv all)");
  app.add_option("--min-weight", request->dump.min_weight, "jsonl, csv: leave out what is below")
      ->type_name("W");
}

Status ReadRows(const std::string& text, TransformOptions* options) {
  if (text.empty()) return Status();
  POZOR_TRY(const auto ranges, ParseRanges(text, "--rows"));
  if (ranges.size() != 1) return InvalidArgument("--rows: more than one range; give one, as 3-7");
  options->row_begin = ranges[0].first;
  options->row_end = ranges[0].second + 1;
  return Status();
}

}  // namespace

int AttentionDumpVerb(std::span<char* const> arguments) {
  VerbParser parser(
      "attention dump", "Attention weights of texts into files.",
      "pozor attention dump all-MiniLM-L6-v2 'The bank of the river' -o bank.npz\n"
      "  pozor attention dump all-MiniLM-L6-v2 -f texts.jsonl --layers 5 --words mean "
      "-o dumps/ --format npz");
  DumpRequest request;
  std::optional<WeightType> type;
  std::optional<Reduction> reduction;
  std::string rows;
  size_t top_k = 0;
  parser.AddModelAndWords("MODEL [TEXT]", 1);
  AddAttentionOptions(parser, &request.attention);
  AddDumpOptions(parser, &request, &type, &rows, &top_k);
  AddUnitOptions(parser, &request.dump.transform);
  AddReduction(parser, &reduction);
  AddLoadOptions(parser, &request.attention.load);
  if (const auto code = parser.Parse(arguments)) return *code;
  TakeWords(parser, &request.attention);
  request.weight_type_given = type.has_value();
  request.text_options_given = top_k > 0 || request.dump.min_weight > 0;
  request.dump.type = type.value_or(WeightType::kF32);
  request.dump.transform.reduction = reduction.value_or(Reduction::kNone);
  const bool csv = request.format == DumpFormat::kCsv ||
                   (!request.format && request.attention.output.ends_with(".csv"));
  request.dump.top_k = top_k > 0 ? top_k : csv ? SIZE_MAX : 8;
  const Status status = ReadRows(rows, &request.dump.transform);
  return EndOfVerb(status.ok() ? RunAttentionDump(std::move(request)) : status);
}

int AttentionViewVerb(std::span<char* const> arguments) {
  VerbParser parser(
      "attention view",
      "A text's attention as one HTML page that needs no network: pick a word and see "
      "where every head looks. Without -o it is written to attention.html in this folder.",
      "pozor attention view all-MiniLM-L6-v2 'The bank of the river' -o bank.html\n"
      "  pozor attention view bank.npz -o bank.html");
  ViewRequest request;
  std::optional<int> format;
  parser.AddModelAndWords("MODEL|DUMP [TEXT]", 1);
  AddAttentionOptions(parser, &request.attention);
  parser.AddChoice<int>("--format", &format, {{"html", 0}}, "of the output");
  parser.app().add_flag("--exact", request.exact,
                        "weights in half precision instead of a byte of their square root");
  AddLoadOptions(parser, &request.attention.load);
  if (const auto code = parser.Parse(arguments)) return *code;
  TakeWords(parser, &request.attention);
  return EndOfVerb(RunAttentionView(std::move(request)));
}

}  // namespace pozor::tools
