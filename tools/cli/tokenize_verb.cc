#include "tools/cli/options.h"
#include "tools/cli/report.h"
#include "tools/cli/verbs.h"
#include "tools/tokenize.h"

namespace pozor::tools {

int TokenizeVerb(std::span<char* const> arguments) {
  VerbParser parser("tokenize", "The ids, tokens and offsets that a model sees of each text.",
                    "pozor tokenize all-MiniLM-L6-v2 --text 'Tokens, please!' --json");
  TokenizeRequest request;
  parser.AddModelAndInputs(true, kAnyNumberOfInputs);
  AddInputFormat(parser, &request.input_format, &request.text_field, &request.header);
  parser.app().add_option("--text", request.text, "this text instead of a file")->type_name("T");
  parser.app().add_option("--pair", request.pair, "second text of a pair")->type_name("T");
  parser.AddCount("--max-length", &request.max_length, "tokens of a text, specials included");
  parser.app().add_flag("--plain-specials", request.plain_specials,
                        "\"[SEP]\" in a text is plain text");
  parser.app().add_flag("--json", request.json,
                        "JSON lines: ids, tokens, offsets (code points), byte_offsets, type_ids, "
                        "truncated; otherwise ids, a tab, tokens");
  if (const auto code = parser.Parse(arguments)) return *code;
  request.model = parser.model();
  if (!parser.inputs().empty()) request.inputs = parser.inputs();
  if (request.text.has_value() && !parser.inputs().empty()) {
    return UsedWrongly("tokenize: --text and a file; give one of the two");
  }
  const int code = ExitCodeOf(RunTokenize(request));
  return code == 0 ? FinishStandardOutput(0) : code;
}

}  // namespace pozor::tools
