// pozor attention diff and serve.
#include <filesystem>

#include "tools/attention/diff.h"
#include "tools/attention/serve.h"
#include "tools/cli/attention_options.h"
#include "tools/cli/report.h"

namespace pozor::tools {
namespace {

constexpr unsigned kMostPort = 65535;

// "int8,f32": of A, then of B; one name: of both.
Status ReadPrecisions(const std::string& text, DiffRequest* request, bool* two) {
  if (text.empty()) return Status();
  const size_t comma = text.find(',');
  *two = comma != std::string::npos;
  const auto read = [&](const std::string& name, Precision* precision) {
    for (const auto& [known, value] :
         {std::pair("f32", Precision::kF32), std::pair("bf16", Precision::kBF16),
          std::pair("int8", Precision::kInt8), std::pair("bf16x3", Precision::kBF16x3)}) {
      if (name == known) *precision = value;
      if (name == known) return Status();
    }
    return InvalidArgument("--precision: '" + name +
                           "' is none of f32|bf16|int8|bf16x3; write int8,f32");
  };
  POZOR_RETURN_IF_ERROR(read(text.substr(0, comma), &request->attention.load.precision));
  return read(*two ? text.substr(comma + 1) : text, &request->other_precision);
}

// "separation,classification": of A, then of B; one name: of both. A side of "" has no adapter.
void ReadTasks(const std::string& text, DiffRequest* request, bool* two) {
  const size_t comma = text.find(',');
  request->attention.load.task = request->other_task = text.substr(0, comma);
  if (comma == std::string::npos) return;
  request->other_task = text.substr(comma + 1);
  *two = true;
}

void AddDiffOptions(VerbParser& parser, DiffRequest* request, std::optional<DiffMetric>* by,
                    std::string* precisions, std::string* tasks) {
  CLI::App& app = parser.app();
  app.add_option("--precision", *precisions, "of both, or of A and B: int8,f32")->type_name("P,P");
  app.add_option("--task", *tasks, "whose adapter both use, or A and B: separation,classification")
      ->type_name("T,T");
  const auto read_memory = [request](const std::string& text) {
    if (ParseSize(text, &request->attention.load.max_memory)) return;
    throw CLI::ValidationError("--max-memory",
                               "'" + text + "' is no size; give bytes, or 160M, 2G");
  };
  app.add_option_function<std::string>("--max-memory", read_memory,
                                       "ceiling for the whole process, e.g. 160M")
      ->type_name("SIZE");
  AddCpuOption(parser);
  parser.AddChoice<DiffMetric>(
      "--by", by,
      {{"js", DiffMetric::kDivergence}, {"mean", DiffMetric::kMean}, {"max", DiffMetric::kMax}},
      "what heads are ranked and judged by (js)");
  parser.AddCount("--top", &request->top, "heads in the table (10)");
  parser.AddCount("--top-k", &request->top_k, "largest weights of a row whose overlap counts (10)");
  app.add_option("--fail-above", request->fail_above, "exit code 1 if a head lies above, by --by")
      ->type_name("X");
  app.add_flag("--exact", request->exact, "of a page: weights in half precision");
}

// Whether the first of the words after A names B. Two precisions or tasks make do with A alone, so
// then a word is B only where the text stands beside it: as a second word or in another option.
bool NamesB(const std::vector<std::string>& words, const AttentionRequest& attention, bool two) {
  if (!two) return true;
  if (words.empty()) return false;
  return words.size() > 1 || !attention.inputs.empty() || !attention.pair.empty();
}

// A text that is the path of a model's folder: B without a text beside it.
bool IsModelFolder(const std::string& text) {
  std::error_code none;
  return !text.empty() &&
         std::filesystem::exists(std::filesystem::path(text) / "config.json", none);
}

}  // namespace

int AttentionDiffVerb(std::span<char* const> arguments) {
  VerbParser parser(
      "attention diff",
      "How far the heads of two runs lie apart: two models, two precisions or tasks of one, or two "
      "dumps. "
      "With -o PAGE.html also a page that shows A, B and B - A.",
      "pozor attention diff all-MiniLM-L6-v2 --precision int8,f32 -f texts.txt --fail-above 0.01\n"
      "  pozor attention diff a.npz b.npz -o difference.html");
  DiffRequest request;
  std::optional<DiffMetric> by;
  std::string precisions, tasks;
  bool json = false, csv = false, two = false;
  parser.AddModelAndWords("A [B] [TEXT]", 2);
  AddAttentionOptions(parser, &request.attention);
  AddDiffOptions(parser, &request, &by, &precisions, &tasks);
  parser.app().add_flag("--json", json, "every head as one JSON object");
  parser.app().add_flag("--csv", csv, "a line a head");
  if (const auto code = parser.Parse(arguments)) return *code;
  const Status status = ReadPrecisions(precisions, &request, &two);
  if (!status.ok()) return ExitCodeOf(status);
  ReadTasks(tasks, &request, &two);
  request.attention.model = request.other = parser.model();
  std::vector<std::string> words = parser.words();
  if (NamesB(words, request.attention, two)) {
    if (words.empty()) {
      return UsedWrongly(
          "attention diff: nothing to compare with; give A and B, --precision P,P or --task T,T");
    }
    request.other = words[0];
    words.erase(words.begin());
  }
  if (words.size() > 1)
    return UsedWrongly("attention diff: " + words[1] +
                       ": one word too many; "
                       "'pozor attention diff --help' lists the options");
  if (!words.empty() && IsModelFolder(words[0])) {
    return UsedWrongly("attention diff: " + words[0] +
                       ": is a model's folder and stands for the text; give the text after it, or "
                       "with -f");
  }
  if (!words.empty()) request.attention.text = words[0];
  request.by = by.value_or(DiffMetric::kDivergence);
  request.format = json ? TableFormat::kJson : csv ? TableFormat::kCsv : TableFormat::kText;
  const Result<int> code = RunAttentionDiff(std::move(request));
  return code.ok() ? FinishStandardOutput(*code) : ExitCodeOf(code.status());
}

int AttentionServeVerb(std::span<char* const> arguments) {
  VerbParser parser("attention serve",
                    "The page of a text over HTTP on 127.0.0.1, for texts whose page would be too "
                    "large: each matrix is sent when it is looked at. Ctrl-C ends it.",
                    "pozor attention serve all-MiniLM-L6-v2 -f chapter.txt --max-length 512 "
                    "--port 8765");
  ServeRequest request;
  unsigned port = 0;
  parser.AddModelAndWords("MODEL|DUMP [TEXT]", 1);
  AddAttentionOptions(parser, &request.attention);
  parser.app()
      .add_option("--port", port, "on 127.0.0.1 (any free one)")
      ->type_name("N")
      ->check(CLI::Range(0u, kMostPort));
  parser.app().add_flag("--exact", request.exact, "weights in half precision");
  AddLoadOptions(parser, &request.attention.load);
  if (const auto code = parser.Parse(arguments)) return *code;
  TakeWords(parser, &request.attention);
  request.port = static_cast<uint16_t>(port);
  return EndOfVerb(RunAttentionServe(std::move(request)));
}

}  // namespace pozor::tools
