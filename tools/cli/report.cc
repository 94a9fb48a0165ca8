#include "tools/cli/report.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "tools/cli/command.h"
#include "tools/cli/signals.h"

namespace pozor::tools {

std::string OneLine(const std::string& message) {
  std::string line;
  for (const char c : message) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7F) {
      line += c;
    } else if (c == '\n') {
      line += "\\n";
    } else {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\x%02X", byte);
      line += escape;
    }
  }
  return line;
}

void PrintError(const std::string& message) {
  std::fprintf(stderr, "pozor: %s\n", OneLine(message).c_str());
}

void PrintWarning(const std::string& message) {
  std::fprintf(stderr, "pozor: warning: %s\n", OneLine(message).c_str());
}

int UsedWrongly(const std::string& message) {
  PrintError(message);
  return kExitUsedWrongly;
}

int ExitCodeOf(const Status& status) {
  if (status.ok()) return kExitDone;
  if (status.code() == StatusCode::kCancelled && LastSignal() != 0) {
    PrintError("interrupted: signal " + std::to_string(LastSignal()) +
               " asked it to stop; run it again for a complete output");
    return 128 + LastSignal();
  }
  PrintError(status.message());
  return status.code() == StatusCode::kInvalidArgument ? kExitUsedWrongly : kExitFailed;
}

Status AsFailure(const Status& status) {
  if (status.code() != StatusCode::kInvalidArgument) return status;
  return Status(StatusCode::kUnsupported, status.message());
}

int FinishStandardOutput(int exit_code) {
  if (std::fflush(stdout) == 0 && !std::ferror(stdout)) return exit_code;
  if (errno == EPIPE) {
    PrintError("standard output: closed by its reader; nothing more was written");
  } else {
    PrintError(std::string("standard output: ") + std::strerror(errno) +
               "; check the disk or device behind it");
  }
  return kExitFailed;
}

}  // namespace pozor::tools
