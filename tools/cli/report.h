// What the command says on standard error, and the exit codes that go with it.
#ifndef POZOR_TOOLS_CLI_REPORT_H_
#define POZOR_TOOLS_CLI_REPORT_H_

#include <span>
#include <string>

#include "pozor/status.h"

namespace pozor::tools {

// Line breaks and other control characters, which names of files and what stands in them may hold,
// as escapes: a terminal would obey them.
std::string OneLine(const std::string& message);

// "pozor: <message>", on one line.
void PrintError(const std::string& message);
void PrintWarning(const std::string& message);

// Prints the message; returns exit code 2.
int UsedWrongly(const std::string& message);

// Exit code of a finished verb, its error printed: 0 for ok, 2 for kInvalidArgument (the verbs use
// it for the command line only), 128 + signal after one, else 1.
int ExitCodeOf(const Status& status);

// The same error as something that failed, not a wrong use: for calls whose kInvalidArgument is
// about data.
Status AsFailure(const Status& status);

// Flushes standard output. `exit_code`, or 1 with a message if it could not be written.
int FinishStandardOutput(int exit_code);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_CLI_REPORT_H_
