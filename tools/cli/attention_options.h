// Options that the sub-verbs of `pozor attention` share, and their command lines.
#ifndef POZOR_TOOLS_CLI_ATTENTION_OPTIONS_H_
#define POZOR_TOOLS_CLI_ATTENTION_OPTIONS_H_

#include <optional>
#include <span>

#include "tools/attention/session.h"
#include "tools/attention/transform.h"
#include "tools/cli/options.h"

namespace pozor::tools {

// --pair, -f, --layers, --heads, -o, --max-length, --prompt..., --quiet; texts as `most_words`
// words.
void AddAttentionOptions(VerbParser& parser, AttentionRequest* request);
// --words, --no-special, --renormalise.
void AddUnitOptions(VerbParser& parser, TransformOptions* options);
void AddReduction(VerbParser& parser, std::optional<Reduction>* reduction);

// After parsing: the model and the text from the words.
void TakeWords(const VerbParser& parser, AttentionRequest* request);

// Exit code of a sub-verb: its error, or standard output's.
int EndOfVerb(const Status& status);

int AttentionDumpVerb(std::span<char* const> arguments);
int AttentionViewVerb(std::span<char* const> arguments);
int AttentionShowVerb(std::span<char* const> arguments);
int AttentionQueryVerb(std::span<char* const> arguments);
int AttentionStatsVerb(std::span<char* const> arguments);
int AttentionDiffVerb(std::span<char* const> arguments);
int AttentionServeVerb(std::span<char* const> arguments);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_CLI_ATTENTION_OPTIONS_H_
