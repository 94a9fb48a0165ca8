// The built `pozor` command, run as a user runs it.
#ifndef POZOR_TESTS_SUPPORT_POZOR_COMMAND_H_
#define POZOR_TESTS_SUPPORT_POZOR_COMMAND_H_

#include <string>
#include <vector>

#include "tests/support/process.h"

namespace pozor::testing {

// Two threads and no settings of the caller's environment, unless `options` says otherwise.
inline ProcessResult Pozor(std::vector<std::string> arguments, ProcessOptions options = {}) {
  arguments.insert(arguments.begin(), std::string(POZOR_BINARY_DIR) + "/pozor");
  options.environment.emplace_back("POZOR_CPU=");
  options.environment.emplace_back("OMP_NUM_THREADS=");
  return RunProcess(arguments, options);
}

inline ProcessResult PozorReading(std::vector<std::string> arguments, const std::string& input) {
  ProcessOptions options;
  options.input = input;
  return Pozor(std::move(arguments), options);
}

inline std::string TestData(const std::string& name) {
  return std::string(POZOR_TEST_DATA) + "/" + name;
}

// True if the last line of standard error is "pozor: <what>: <why>; <what to do>".
inline bool EndsInOneError(const ProcessResult& result) {
  const std::vector<std::string> lines = Lines(result.errors);
  if (lines.empty()) return false;
  const std::string& line = lines.back();
  const size_t what = line.find(": ", 7);
  return line.starts_with("pozor: ") && what != std::string::npos &&
         line.find("; ", what) != std::string::npos;
}

}  // namespace pozor::testing

#endif  // POZOR_TESTS_SUPPORT_POZOR_COMMAND_H_
