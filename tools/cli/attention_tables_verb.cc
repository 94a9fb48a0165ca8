// pozor attention show, query and stats: what goes to the terminal.
#include "tools/attention/attention_stats.h"
#include "tools/attention/query.h"
#include "tools/attention/show.h"
#include "tools/cli/attention_options.h"
#include "tools/cli/report.h"

namespace pozor::tools {

int AttentionShowVerb(std::span<char* const> arguments) {
  VerbParser parser("attention show",
                    "Attention in shades on the terminal: a matrix a layer, or with --token what "
                    "every head does with a word.",
                    "pozor attention show all-MiniLM-L6-v2 'The bank of the river' --layers 5\n"
                    "  pozor attention show all-MiniLM-L6-v2 'The bank of the river' --token bank");
  ShowRequest request;
  std::optional<Reduction> reduction;
  bool pieces = false;
  parser.AddModelAndWords("MODEL|DUMP [TEXT]", 1);
  AddAttentionOptions(parser, &request.attention);
  CLI::App& app = parser.app();
  app.add_option("--token,--word", request.token, "a word of the text, or @ and its number")
      ->type_name("WORD");
  app.add_flag("--to", request.to, "who looks at the word, instead of where it looks");
  app.add_flag("--numbers", request.numbers, "decimals instead of shades");
  app.add_flag("--pieces", pieces, "word pieces instead of words");
  AddUnitOptions(parser, &request.transform);
  AddReduction(parser, &reduction);
  AddLoadOptions(parser, &request.attention.load);
  if (const auto code = parser.Parse(arguments)) return *code;
  TakeWords(parser, &request.attention);
  request.transform.reduction = reduction.value_or(Reduction::kNone);
  if (!pieces && !request.transform.words) request.transform.words = WordRows::kMean;
  return EndOfVerb(RunAttentionShow(std::move(request)));
}

int AttentionQueryVerb(std::span<char* const> arguments) {
  VerbParser parser(
      "attention query",
      "A word to a table of every layer and head: where it looks, who looks at it, or "
      "the weight between two words.",
      "pozor attention query all-MiniLM-L6-v2 'The bank of the river' --from bank "
      "--top 3\n"
      "  pozor attention query all-MiniLM-L6-v2 'The bank of the river' --from bank "
      "--to river --csv");
  QueryRequest request;
  std::optional<bool> sort;
  std::optional<TableFormat> format;
  bool pieces = false, json = false, csv = false;
  parser.AddModelAndWords("MODEL|DUMP [TEXT]", 1);
  AddAttentionOptions(parser, &request.attention);
  CLI::App& app = parser.app();
  app.add_option("--from", request.from, "the word that looks, or @ and its number")
      ->type_name("WORD");
  app.add_option("--to", request.to, "the word that is looked at")->type_name("WORD");
  parser.AddCount("--top", &request.top, "largest weights of each head (5)");
  parser.AddChoice<bool>("--sort", &sort, {{"layer", false}, {"weight", true}},
                         "order of the heads (layer; of two words: weight)");
  parser.AddChoice<TableFormat>(
      "--format", &format,
      {{"table", TableFormat::kText}, {"csv", TableFormat::kCsv}, {"json", TableFormat::kJson}},
      "of the output");
  app.add_flag("--json", json, "the same as --format json");
  app.add_flag("--csv", csv, "the same as --format csv");
  app.add_flag("--pieces", pieces, "word pieces instead of words");
  AddUnitOptions(parser, &request.transform);
  AddLoadOptions(parser, &request.attention.load);
  if (const auto code = parser.Parse(arguments)) return *code;
  TakeWords(parser, &request.attention);
  request.format = format.value_or(json  ? TableFormat::kJson
                                   : csv ? TableFormat::kCsv
                                         : TableFormat::kText);
  request.by_weight = sort.value_or(!request.from.empty() && !request.to.empty());
  if (!pieces && !request.transform.words) request.transform.words = WordRows::kMean;
  return EndOfVerb(RunAttentionQuery(std::move(request)));
}

int AttentionStatsVerb(std::span<char* const> arguments) {
  VerbParser parser("attention stats",
                    "What each head does, as means over all tokens of many texts: entropy (nats), "
                    "distance (tokens), and the weight of the first token, the other special "
                    "tokens, the token itself, its neighbours, and the largest.",
                    "pozor attention stats all-MiniLM-L6-v2 -f texts.txt --map entropy");
  StatsRequest request;
  bool json = false, csv = false;
  std::vector<std::pair<std::string, HeadMetric>> metrics;
  for (size_t i = 0; i < kHeadMetrics; ++i) {
    const auto metric = static_cast<HeadMetric>(i);
    metrics.emplace_back(HeadMetricName(metric), metric);
  }
  parser.AddModelAndWords("MODEL [TEXT]", 1);
  AddAttentionOptions(parser, &request.attention);
  parser.AddChoice<HeadMetric>("--map", &request.map, metrics,
                               "layers x heads of one number, instead of the table");
  parser.app().add_flag("--json", json, "one JSON object");
  parser.app().add_flag("--csv", csv, "a line a head");
  AddLoadOptions(parser, &request.attention.load);
  if (const auto code = parser.Parse(arguments)) return *code;
  TakeWords(parser, &request.attention);
  request.format = json ? TableFormat::kJson : csv ? TableFormat::kCsv : TableFormat::kText;
  return EndOfVerb(RunAttentionStats(std::move(request)));
}

}  // namespace pozor::tools
