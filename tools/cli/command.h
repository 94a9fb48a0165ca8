// The command line from its first word: finds the verb and runs it.
#ifndef POZOR_TOOLS_CLI_COMMAND_H_
#define POZOR_TOOLS_CLI_COMMAND_H_

#include <span>
#include <string_view>

namespace pozor::tools {

// Exit codes of every verb. A signal that ends it gives 128 + its number, as shells have it.
inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsedWrongly = 2;

struct Verb {
  std::string_view name;
  std::string_view summary;
  // Arguments after the verb; returns the exit code.
  int (*run)(std::span<char* const> arguments);
};

// In the order in which the help lists them.
std::span<const Verb> Verbs();

int RunCommand(int argc, char** argv);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_CLI_COMMAND_H_
