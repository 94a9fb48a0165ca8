#include "tools/cli/command.h"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "kernels/cpu.h"
#include "kernels/gemm.h"
#include "pozor/pozor.hpp"
#include "tools/cli/report.h"
#include "tools/cli/suggest.h"

namespace pozor::tools {
namespace {

void PrintHelp(std::FILE* out) {
  std::fprintf(out,
               "pozor %.*s: sentence vectors from BERT-style encoders on CPUs\n\n"
               "usage: pozor VERB ...\n\n",
               static_cast<int>(Version().size()), Version().data());
  for (const Verb& verb : Verbs()) {
    std::fprintf(out, "  %-13.*s %.*s\n", static_cast<int>(verb.name.size()), verb.name.data(),
                 static_cast<int>(verb.summary.size()), verb.summary.data());
  }
  std::fprintf(
      out,
      "\n'pozor VERB --help' explains a verb. Exit code: 0 done, 1 failed, 2 used wrongly.\n"
      "POZOR_CPU caps the instruction set: %s.\n",
      CpuTierNames().c_str());
}

int UnknownVerb(const std::string& word) {
  std::vector<std::string> names;
  for (const Verb& verb : Verbs()) names.emplace_back(verb.name);
  const std::string closest = Closest(word, names);
  std::string what_to_do = "'pozor --help' lists the verbs";
  if (!closest.empty()) what_to_do = "did you mean '" + closest + "'? " + what_to_do;
  return UsedWrongly(word + ": not a verb of pozor; " + what_to_do);
}

}  // namespace

int RunCommand(int argc, char** argv) {
  const std::span<char* const> arguments(argv, static_cast<size_t>(argc));
  const std::string first = argc > 1 ? argv[1] : "";
  if (first == "--version" || first == "-V") {
    std::printf("pozor %.*s\n", static_cast<int>(Version().size()), Version().data());
    return FinishStandardOutput(kExitDone);
  }
  if (first.empty() || first == "--help" || first == "-h" || first == "help") {
    PrintHelp(stdout);
    return FinishStandardOutput(kExitDone);
  }
  for (const Verb& verb : Verbs()) {
    if (verb.name != first) continue;
    for (const std::string& problem :
         {ApplyCpuTierFromEnvironment(), ApplyGemmKernelFromEnvironment()}) {
      if (!problem.empty()) return UsedWrongly(problem);
    }
    unsetenv("POZOR_CPU");  // applied; what --cpu says later must not be undone by loading a model
    return verb.run(arguments.subspan(2));
  }
  return UnknownVerb(first);
}

}  // namespace pozor::tools
