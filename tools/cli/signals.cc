#include "tools/cli/signals.h"

#include <signal.h>
#include <unistd.h>

#include "tools/io/output_file.h"

namespace pozor::tools {
namespace {

std::atomic<bool> cancel{false};
std::atomic<int> last_signal{0};
static_assert(std::atomic<bool>::is_always_lock_free && std::atomic<int>::is_always_lock_free,
              "the handler may only touch lock-free atomics");

void OnSignal(int signal) {
  if (cancel.exchange(true)) {
    RemoveTemporaryFiles();
    _exit(128 + signal);
  }
  last_signal.store(signal);
}

}  // namespace

const std::atomic<bool>* CancelOnSignals() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a read or an open that waits returns, and its caller looks at the flag.
  for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
  struct sigaction before = {};
  sigaction(SIGHUP, nullptr, &before);
  if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);  // nohup ignores it
  // A closed pipe and a file beyond the limit are errors of the write.
  ::signal(SIGPIPE, SIG_IGN);
  ::signal(SIGXFSZ, SIG_IGN);
  return &cancel;
}

int LastSignal() { return last_signal.load(); }

}  // namespace pozor::tools
