#include "tests/support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

extern char** environ;

namespace pozor::testing {
namespace {

struct Pipe {
  int read = -1, write = -1;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    read = ends[0];
    write = ends[1];
  }
  ~Pipe() {
    CloseRead();
    CloseWrite();
  }
  void CloseRead() { Close(read); }
  void CloseWrite() { Close(write); }

 private:
  static void Close(int& end) {
    if (end >= 0) ::close(end);
    end = -1;
  }
};

double Now() {
  using std::chrono::duration;
  return duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<std::string> Environment(const std::vector<std::string>& extra) {
  const auto name_of = [](const std::string& entry) {
    return entry.substr(0, entry.find('=') + 1);
  };
  std::vector<std::string> all = extra;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const bool replaced = std::any_of(extra.begin(), extra.end(), [&](const std::string& other) {
      return name_of(*entry) == name_of(other);
    });
    if (!replaced) all.emplace_back(*entry);
  }
  return all;
}

std::vector<char*> Pointers(std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (std::string& string : strings) pointers.push_back(string.data());
  pointers.push_back(nullptr);
  return pointers;
}

pid_t Spawn(std::vector<std::string> arguments, const ProcessOptions& options, const Pipe& input,
            const Pipe& output, const Pipe& errors) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input.read, STDIN_FILENO);
  if (options.output_file.empty()) {
    posix_spawn_file_actions_adddup2(&actions, output.write, STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, options.output_file.c_str(), O_WRONLY,
                                     0);
  }
  posix_spawn_file_actions_adddup2(&actions, errors.write, STDERR_FILENO);
  std::vector<std::string> environment = Environment(options.environment);
  pid_t child = -1;
  const int failed = posix_spawnp(&child, arguments[0].c_str(), &actions, nullptr,
                                  Pointers(arguments).data(), Pointers(environment).data());
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0 ? child : -1;
}

// Moves bytes between the pipes until all are closed, the deadline passes or the child ends.
class Conversation {
 public:
  Conversation(const ProcessOptions& options, pid_t child, Pipe& input, Pipe& output, Pipe& errors)
      : options_(options), child_(child), input_(input), output_(output), errors_(errors) {}

  void Run(ProcessResult* result) {
    const double start = Now();
    bool signalled = options_.signal_when == nullptr;
    while ((output_.read >= 0 && !options_.stall_output) || errors_.read >= 0) {
      const double elapsed = Now() - start;
      if (!signalled && options_.signal_when(OutputWaiting())) {
        ::kill(child_, options_.signal);
        signalled = true;
      }
      if (elapsed > options_.timeout_seconds) {
        ::kill(child_, SIGKILL);
        result->timed_out = true;
        break;
      }
      Step(result);
    }
  }

 private:
  size_t OutputWaiting() const {
    int bytes = 0;
    return ::ioctl(output_.read, FIONREAD, &bytes) == 0 ? static_cast<size_t>(bytes) : 0;
  }

  void Step(ProcessResult* result) {
    constexpr int kMilliseconds = 10;
    pollfd waiting[3] = {{options_.stall_output ? -1 : output_.read, POLLIN, 0},
                         {errors_.read, POLLIN, 0},
                         {input_.write, POLLOUT, 0}};
    if (::poll(waiting, 3, kMilliseconds) <= 0) return;
    if (waiting[0].revents != 0) Read(output_, &result->output);
    if (waiting[1].revents != 0) Read(errors_, &result->errors);
    if (waiting[2].revents != 0) WriteInput();
  }

  static void Read(Pipe& pipe, std::string* text) {
    char block[1 << 16];
    const ssize_t count = ::read(pipe.read, block, sizeof block);
    if (count > 0) text->append(block, static_cast<size_t>(count));
    if (count <= 0) pipe.CloseRead();
  }

  void WriteInput() {
    constexpr size_t kMost = 4096;  // fits a pipe that says it is ready, so that it never waits
    const std::string_view rest = std::string_view(options_.input).substr(written_);
    const ssize_t count = ::write(input_.write, rest.data(), std::min(rest.size(), kMost));
    if (count > 0) written_ += static_cast<size_t>(count);
    const bool done = written_ == options_.input.size();
    if (count < 0 || (done && !options_.keep_input_open)) input_.CloseWrite();
    if (done && options_.keep_input_open) ::usleep(1000);
  }

  const ProcessOptions& options_;
  pid_t child_;
  Pipe& input_;
  Pipe& output_;
  Pipe& errors_;
  size_t written_ = 0;
};

}  // namespace

ProcessResult RunProcess(const std::vector<std::string>& arguments, const ProcessOptions& options) {
  ::signal(SIGPIPE, SIG_IGN);  // a child that does not read its input is not our end
  Pipe input, output, errors;
  ProcessResult result;
  // Before the child can write.
  if (options.close_output_early || !options.output_file.empty()) output.CloseRead();
  const double start = Now();
  const pid_t child = Spawn(arguments, options, input, output, errors);
  if (child < 0) return result;
  input.CloseRead();
  output.CloseWrite();
  errors.CloseWrite();
  if (options.input.empty() && !options.keep_input_open) input.CloseWrite();
  Conversation(options, child, input, output, errors).Run(&result);
  int status = 0;
  ::waitpid(child, &status, 0);
  result.seconds = Now() - start;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.ended_by_signal = WTERMSIG(status);
  return result;
}

std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

TemporaryFolder::TemporaryFolder() {
  path_ = (std::filesystem::temp_directory_path() / "pozor-test-XXXXXX").string();
  if (::mkdtemp(path_.data()) == nullptr) std::abort();
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TemporaryFolder::Write(const std::string& name, const std::string& content) const {
  std::ofstream(File(name), std::ios::binary) << content;
  return File(name);
}

std::vector<std::string> TemporaryFolder::List() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string ReadFileOrEmpty(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream content;
  content << file.rdbuf();
  return content.str();
}

}  // namespace pozor::testing
