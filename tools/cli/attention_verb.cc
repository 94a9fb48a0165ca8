// pozor attention: finds the sub-verb.
#include <cstdio>
#include <string>
#include <vector>

#include "tools/cli/attention_options.h"
#include "tools/cli/command.h"
#include "tools/cli/report.h"
#include "tools/cli/suggest.h"
#include "tools/cli/verbs.h"

namespace pozor::tools {
namespace {

constexpr Verb kSubVerbs[] = {
    {"view", "a text as one HTML page: pick a word, see where every head looks", AttentionViewVerb},
    {"dump", "weights into npy, npz, safetensors, jsonl or csv", AttentionDumpVerb},
    {"show", "a matrix, or a word's row of every head, on the terminal", AttentionShowVerb},
    {"query", "a word to a table of every layer and head", AttentionQueryVerb},
    {"stats", "what each head does over many texts", AttentionStatsVerb},
    {"diff", "two models, precisions or dumps head by head", AttentionDiffVerb},
    {"serve", "the page over HTTP on this machine, for long texts", AttentionServeVerb},
};

void PrintHelp() {
  std::printf(
      "Where a model's heads look: attention weights of every layer, head and token.\n\n"
      "usage: pozor attention VERB MODEL TEXT [options]\n\n");
  for (const Verb& verb : kSubVerbs) {
    std::printf("  %-7.*s %.*s\n", static_cast<int>(verb.name.size()), verb.name.data(),
                static_cast<int>(verb.summary.size()), verb.summary.data());
  }
  std::printf(
      "\nExample:\n"
      "  pozor attention view all-MiniLM-L6-v2 'The bank of the river' -o bank.html\n\n"
      "'pozor attention VERB --help' explains a verb. Without a verb, --format html is view and\n"
      "every other format is dump. Attention says where a head reads, not why a model decides.\n");
}

// The verb that options alone ask for.
std::string_view VerbOfFormat(std::span<char* const> arguments) {
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view word = arguments[i];
    const bool next = word == "--format" && i + 1 < arguments.size();
    if (word == "--format=html" || (next && std::string_view(arguments[i + 1]) == "html")) {
      return "view";
    }
  }
  return "dump";
}

}  // namespace

int AttentionVerb(std::span<char* const> arguments) {
  const std::string first = arguments.empty() ? "" : arguments[0];
  if (first.empty() || first == "--help" || first == "-h" || first == "help") {
    PrintHelp();
    return FinishStandardOutput(kExitDone);
  }
  const bool options = first.starts_with("-");
  const std::string_view name = options ? VerbOfFormat(arguments) : std::string_view(first);
  std::vector<std::string> names;
  for (const Verb& verb : kSubVerbs) {
    if (verb.name == name) return verb.run(options ? arguments : arguments.subspan(1));
    names.emplace_back(verb.name);
  }
  const std::string closest = Closest(first, names);
  const std::string hint = closest.empty() ? "" : "did you mean '" + closest + "'? ";
  return UsedWrongly("attention: " + first + ": not a verb of it; " + hint +
                     "'pozor attention --help' lists the verbs");
}

}  // namespace pozor::tools
