#include <cmath>
#include <cstdlib>
#include <string>

#include "tools/cli/options.h"
#include "tools/cli/report.h"
#include "tools/cli/verbs.h"
#include "tools/compare.h"

namespace pozor::tools {

int CompareVerb(std::span<char* const> arguments) {
  VerbParser parser(
      "compare",
      "Benchmark results side by side: the first file against each of the others; of one "
      "file alone, its engines, or the table of its only one. "
      "Exit code 1 if a --fail-if condition holds.",
      "pozor compare before.json after.json -o report.html\n"
      "  pozor compare before.json after.json --fail-if 'slower>5%'");
  CompareRequest request;
  double resolution = 100 * request.options.resolution;
  CLI::App& app = parser.app();
  app.add_option("files", request.files, "results of 'pozor bench' or Google Benchmark, or folders")
      ->required()
      ->type_name("FILE...");
  app.add_option("-o,--output", request.html, "HTML report to write")->type_name("OUT.html");
  app.add_option("--base", request.base, "engine of one file alone to compare the others with")
      ->type_name("ENGINE");
  app.add_option("--fail-if", request.fail_if,
                 "slower, slower>5%, faster>5%, not-comparable; several after commas")
      ->type_name("WHEN");
  app.add_option("--resolution", resolution, "per cent; a smaller difference is none (2)")
      ->check([](const std::string& text) -> std::string {
        const double number = std::strtod(text.c_str(), nullptr);
        const bool right = number >= 0 && std::isfinite(number);
        return right ? "" : "'" + text + "' is no share; give a number of at least 0";
      })
      ->type_name("P");
  app.add_option("--seed", request.options.seed, "of the bootstrap (1)")->type_name("N");
  app.add_flag("--json", request.json, "JSON instead of Markdown");
  if (const auto code = parser.Parse(arguments)) return *code;
  request.options.resolution = resolution / 100;
  bool failed = false;
  const int code = ExitCodeOf(RunCompare(request, &failed));
  return FinishStandardOutput(code == 0 && failed ? 1 : code);
}

}  // namespace pozor::tools
