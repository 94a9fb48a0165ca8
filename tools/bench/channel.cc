#include "tools/bench/channel.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "engine/machine.h"
#include "tools/bench/clock.h"
#include "tools/bench/text.h"
#include "tools/cli/signals.h"

namespace pozor::tools {
namespace {

double ReadClock(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class ProcessChannel : public Channel {
 public:
  ProcessChannel(std::string name, pid_t pid, int to, int from)
      : name_(std::move(name)), pid_(pid), to_(to), from_(from) {
    clock_getcpuclockid(pid, &clock_);
  }
  ~ProcessChannel() override {
    constexpr std::string_view kQuit = "quit\n";
    [[maybe_unused]] const ssize_t written = write(to_, kQuit.data(), kQuit.size());
    close(to_);
    close(from_);
    WaitForEnd();
  }

  double CpuSeconds() const override { return ReadClock(clock_); }
  double WaitSeconds() const override { return tools::WaitSeconds(std::to_string(pid_)); }

  double PeakBytes() const override {
    std::ifstream file(Cat({"/proc/", std::to_string(pid_), "/status"}));
    std::string word;
    while (file >> word) {
      if (word != "VmHWM:") continue;
      double kib = 0;
      file >> kib;
      return kib * 1024;
    }
    return 0;
  }

  void ResetPeak() const override {
    std::ofstream file(Cat({"/proc/", std::to_string(pid_), "/clear_refs"}));
    file << "5";
  }

  // The first line that is a JSON object; peers' libraries may print before it.
  Result<std::string> ReadAnswer() {
    while (true) {
      POZOR_TRY(std::string line, ReadLine());
      if (line.starts_with("{")) return line;
    }
  }

  Status Ready(double start) {
    POZOR_TRY(std::string line, ReadAnswer());
    return SetReady(line, Now() - start);
  }

 protected:
  Result<std::string> Exchange(const std::string& line) override {
    std::string all = line;
    all += '\n';
    for (size_t done = 0; done < all.size();) {
      const ssize_t written = write(to_, all.data() + done, all.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return Ended();
      done += static_cast<size_t>(written);
    }
    return ReadAnswer();
  }

 private:
  Status Ended() const {
    // Ctrl-C reaches workers too, and they end at once.
    if (LastSignal() != 0) return Cancelled(name_ + ": stopped by a signal");
    return IoError(name_ +
                   ": the worker ended before it answered; run its command by hand to see why");
  }

  Result<std::string> ReadLine() {
    while (true) {
      const size_t end = buffer_.find('\n');
      if (end != std::string::npos) {
        std::string line = buffer_.substr(0, end);
        buffer_.erase(0, end + 1);
        return line;
      }
      char block[65536];
      const ssize_t got = read(from_, block, sizeof block);
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return Ended();
      buffer_.append(block, static_cast<size_t>(got));
    }
  }

  // Ten seconds to end by itself, then the end.
  void WaitForEnd() const {
    for (int i = 0; i < 1000; ++i) {
      if (waitpid(pid_, nullptr, WNOHANG) != 0) return;
      usleep(10000);
    }
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }

  std::string name_;
  pid_t pid_;
  int to_, from_;
  clockid_t clock_{};
  std::string buffer_;
};

class InProcessChannel : public Channel {
 public:
  explicit InProcessChannel(std::unique_ptr<Worker> worker) : worker_(std::move(worker)) {}
  Status Ready(double seconds) { return SetReady(worker_->Ready(), seconds); }
  double CpuSeconds() const override { return ReadClock(CLOCK_PROCESS_CPUTIME_ID); }
  double WaitSeconds() const override { return tools::WaitSeconds("self"); }
  double PeakBytes() const override { return static_cast<double>(PeakResidentBytes()); }
  void ResetPeak() const override { std::ofstream("/proc/self/clear_refs") << "5"; }

 protected:
  Result<std::string> Exchange(const std::string& line) override {
    bool quit = false;
    return worker_->Handle(line, &quit);
  }

 private:
  std::unique_ptr<Worker> worker_;
};

// Between fork and exec. Does not return.
[[noreturn]] void BecomeWorker(const ProcessOptions& options, const std::vector<char*>& arguments,
                               int input, int output) {
  dup2(input, 0);
  dup2(output, 1);
  if (!options.error_log.empty()) {
    const int log = open(options.error_log.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (log >= 0) dup2(log, 2);
  }
  if (!options.cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const int cpu : options.cpus) CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
  execvp(arguments[0], arguments.data());
  _exit(127);
}

}  // namespace

Status Channel::SetReady(const std::string& line, double seconds) {
  ready_seconds_ = seconds;
  POZOR_TRY(JsonDocument document, ParseJson(line, "the worker's first line"));
  const JsonValue* error = document->Find("error");
  if (error != nullptr) return IoError(std::string(error->as_string()));
  ready_ = std::make_unique<JsonDocument>(std::move(document));
  return {};
}

Result<JsonDocument> Channel::Ask(const std::string& line) {
  POZOR_TRY(const std::string answer, Exchange(line));
  POZOR_TRY(JsonDocument document, ParseJson(answer, "the worker's answer"));
  const JsonValue* error = document->Find("error");
  if (error != nullptr) return IoError(std::string(error->as_string()));
  return document;
}

Result<std::unique_ptr<Channel>> StartProcess(const ProcessOptions& options) {
  int down[2], up[2];
  if (pipe2(down, O_CLOEXEC) != 0 || pipe2(up, O_CLOEXEC) != 0) {
    return IoError(options.name + ": no pipe for the worker: " + std::strerror(errno) +
                   "; close other programs");
  }
  std::vector<std::string> words = options.arguments;
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  signal(SIGPIPE, SIG_IGN);
  const double start = Now();
  const pid_t pid = fork();
  if (pid == 0) BecomeWorker(options, arguments, down[0], up[1]);
  close(down[0]);
  close(up[1]);
  if (pid < 0) {
    close(down[1]);
    close(up[0]);
    return IoError(options.name + ": no process for the worker: " + std::strerror(errno) +
                   "; try --in-process");
  }
  auto channel = std::make_unique<ProcessChannel>(options.name, pid, down[1], up[0]);
  const Status ready = channel->Ready(start);
  if (!ready.ok()) return ready.WithContext(options.name);
  return std::unique_ptr<Channel>(std::move(channel));
}

Result<std::unique_ptr<Channel>> StartInProcess(const WorkerOptions& options) {
  const double start = Now();
  POZOR_TRY(std::unique_ptr<Worker> worker, Worker::Start(options));
  auto channel = std::make_unique<InProcessChannel>(std::move(worker));
  POZOR_RETURN_IF_ERROR(channel->Ready(Now() - start));
  return std::unique_ptr<Channel>(std::move(channel));
}

std::vector<std::string> ShellWords(std::string_view line) {
  std::vector<std::string> words;
  std::string word;
  bool open = false;
  char quote = 0;
  for (size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      word += line[++i];
      open = true;
    } else if (quote != 0) {
      if (c == quote)
        quote = 0;
      else
        word += c;
    } else if (c == '\'' || c == '"') {
      quote = c;
      open = true;
    } else if (c == ' ' || c == '\t') {
      if (open) words.push_back(word);
      word.clear();
      open = false;
    } else {
      word += c;
      open = true;
    }
  }
  if (open) words.push_back(word);
  return words;
}

}  // namespace pozor::tools
