#include "tools/cli/options.h"
#include "tools/cli/report.h"
#include "tools/cli/verbs.h"
#include "tools/info.h"

namespace pozor::tools {

int InfoVerb(std::span<char* const> arguments) {
  VerbParser parser("info", "This machine as Pozor sees it, and a model as it is understood.",
                    "pozor info all-MiniLM-L6-v2");
  InfoRequest request;
  parser.AddModelAndInputs(false, 0);
  AddLoadOptions(parser, &request.load);
  parser.app().add_flag("--json", request.json, "one JSON object");
  if (const auto code = parser.Parse(arguments)) return *code;
  request.model = parser.model();
  const int code = ExitCodeOf(RunInfo(request));
  return code == 0 ? FinishStandardOutput(0) : code;
}

}  // namespace pozor::tools
