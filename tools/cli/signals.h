// Ctrl-C and its relatives: ask the work to stop, so that temporary files go and the exit code is
// right; a second one ends the process at once.
#ifndef POZOR_TOOLS_CLI_SIGNALS_H_
#define POZOR_TOOLS_CLI_SIGNALS_H_

#include <atomic>

namespace pozor::tools {

// Handles SIGINT, SIGTERM and SIGHUP, ignores SIGPIPE (a closed pipe is an error of write()).
// Returns the flag that the first signal sets. Calls after the first change nothing.
const std::atomic<bool>* CancelOnSignals();

// The signal that came, or 0.
int LastSignal();

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_CLI_SIGNALS_H_
