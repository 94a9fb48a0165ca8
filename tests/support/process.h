// Runs a program and keeps what it says.
#ifndef POZOR_TESTS_SUPPORT_PROCESS_H_
#define POZOR_TESTS_SUPPORT_PROCESS_H_

#include <functional>
#include <string>
#include <vector>

namespace pozor::testing {

struct ProcessOptions {
  std::string input;                     // on standard input
  std::vector<std::string> environment;  // "NAME=value" in addition; "NAME=" sets it to nothing
  double timeout_seconds = 60;           // then it is killed
  int signal = 0;  // sent once `signal_when` holds; it is told how much output waits to be read
  std::function<bool(size_t output_waiting)> signal_when;
  bool keep_input_open = false;     // standard input does not end
  bool close_output_early = false;  // nobody reads standard output
  bool stall_output = false;        // its pipe stays open, and full
  std::string output_file;          // standard output goes there, for example /dev/full
};

struct ProcessResult {
  int exit_code = -1;  // -1: ended by a signal
  int ended_by_signal = 0;
  bool timed_out = false;
  std::string output;
  std::string errors;
  double seconds = 0;
};

ProcessResult RunProcess(const std::vector<std::string>& arguments,
                         const ProcessOptions& options = {});

// Lines without their line breaks.
std::vector<std::string> Lines(const std::string& text);

// A folder that goes with all that is in it.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }
  // Writes a file; returns its path.
  std::string Write(const std::string& name, const std::string& content) const;
  // Names in it, sorted.
  std::vector<std::string> List() const;

 private:
  std::string path_;
};

std::string ReadFileOrEmpty(const std::string& path);

}  // namespace pozor::testing

#endif  // POZOR_TESTS_SUPPORT_PROCESS_H_
