// The verbs' command lines: each reads its options and runs the verb's own file in tools/.
#ifndef POZOR_TOOLS_CLI_VERBS_H_
#define POZOR_TOOLS_CLI_VERBS_H_

#include <span>

namespace pozor::tools {

int EncodeVerb(std::span<char* const> arguments);
int AttentionVerb(std::span<char* const> arguments);
int TokenizeVerb(std::span<char* const> arguments);
int InfoVerb(std::span<char* const> arguments);
int QuantizeVerb(std::span<char* const> arguments);
int VerifyVerb(std::span<char* const> arguments);
int BenchVerb(std::span<char* const> arguments);
int BenchWorkerVerb(std::span<char* const> arguments);
int CompareVerb(std::span<char* const> arguments);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_CLI_VERBS_H_
