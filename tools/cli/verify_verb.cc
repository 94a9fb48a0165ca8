#include <string>

#include "tools/cli/command.h"
#include "tools/cli/options.h"
#include "tools/cli/report.h"
#include "tools/cli/verbs.h"
#include "tools/verify.h"

namespace pozor::tools {
namespace {

// What is wrong with the options that name the results to compare with; empty: nothing.
std::string MissingOrTooMuch(const VerifyRequest& request) {
  if (!request.golden.empty()) {
    const bool one = request.reference.empty() && request.texts.empty();
    return one ? ""
               : "two kinds of results to compare with; give --golden DIR, or --reference V.npy "
                 "and --texts FILE, not both";
  }
  if (request.texts.empty()) {
    return "--reference " + request.reference +
           ": its texts are missing; give --texts FILE with a text for each of its vectors";
  }
  if (request.reference.empty()) {
    return "--texts " + request.texts +
           ": the vectors to compare with are missing; give --reference V.npy";
  }
  return "";
}

}  // namespace

int VerifyVerb(std::span<char* const> arguments) {
  VerbParser parser("verify",
                    "A model's results against recorded ones, a row a tensor; without any, "
                    "prepared weights against their checksums. Exit code: 0 all "
                    "within tolerance, 1 a difference or an error, 2 used wrongly, 3 nothing wrong "
                    "but some tensors not computable in this version.",
                    "pozor verify all-MiniLM-L6-v2 --reference vectors.npy --texts sentences.txt");
  VerifyRequest request;
  CLI::App& app = parser.app();
  parser.AddModelAndInputs(true, 0);
  app.add_option("--golden", request.golden, "folder with golden.json and golden.safetensors")
      ->type_name("DIR");
  app.add_option("--reference", request.reference, "vectors of the texts, float32")
      ->type_name("V.npy");
  app.add_option("--texts", request.texts, "texts of --reference")->type_name("FILE");
  app.add_option("--scores", request.scores,
                 "gold score of each pair of texts i, i + n/2: compares rank correlations")
      ->type_name("FILE");
  app.add_option("--tolerance", request.tolerance, "of --reference, an element (2e-05)")
      ->type_name("X");
  AddInputFormat(parser, &request.input_format, &request.text_field, &request.header);
  parser.AddCount("--threads", &request.options.threads, "what the machine grants this process");
  AddLoadOptions(parser, &request.load);
  app.add_flag("--json", request.json, "one JSON object");
  if (const auto code = parser.Parse(arguments)) return *code;
  request.model = parser.model();
  request.options.max_memory = request.load.max_memory;
  if (request.golden.empty() && request.reference.empty() && request.texts.empty()) {
    const Status status = VerifyPrepared(request);
    return status.ok() ? FinishStandardOutput(kExitDone) : ExitCodeOf(status);
  }
  const std::string missing = MissingOrTooMuch(request);
  if (!missing.empty()) return UsedWrongly("verify: " + missing);
  const Result<int> code = RunVerify(request);
  return code.ok() ? FinishStandardOutput(*code) : ExitCodeOf(code.status());
}

}  // namespace pozor::tools
