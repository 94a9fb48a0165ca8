#include "tools/io/output_file.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace pozor::tools {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;

// The temporary file of this process, for a signal handler. One is enough: a verb writes one file.
char temporary_path[PATH_MAX];
std::atomic<bool> temporary_exists{false};

void RememberTemporary(const std::string& path) {
  if (path.size() >= sizeof temporary_path) return;
  std::memcpy(temporary_path, path.c_str(), path.size() + 1);
  temporary_exists.store(true);
}

void ForgetTemporary() { temporary_exists.store(false); }

// Where symbolic links lead, so that renaming replaces the file and not the link.
std::string FollowLinks(const std::string& path) {
  char resolved[PATH_MAX];
  return ::realpath(path.c_str(), resolved) != nullptr ? std::string(resolved) : path;
}

}  // namespace

void RemoveTemporaryFiles() {
  if (temporary_exists.load()) ::unlink(temporary_path);
}

Result<std::unique_ptr<OutputFile>> OutputFile::Create(const std::string& path,
                                                       const std::atomic<bool>* cancel) {
  std::unique_ptr<OutputFile> file(new OutputFile);
  file->name_ = path;
  file->cancel_ = cancel;
  struct stat info = {};
  if (path == "-") {
    file->name_ = "standard output";
    file->descriptor_ = STDOUT_FILENO;
    file->may_wait_ = ::fstat(STDOUT_FILENO, &info) == 0 && !S_ISREG(info.st_mode);
    return file;
  }
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (exists && S_ISDIR(info.st_mode)) return IoError(path + ": is a folder; name a file in it");
  if (!exists || S_ISREG(info.st_mode)) {
    POZOR_RETURN_IF_ERROR(file->OpenTemporary(path));
    if (exists) ::fchmod(file->descriptor_, info.st_mode & 07777);
    return file;
  }
  file->owned_ = true;
  file->may_wait_ = true;
  file->descriptor_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (file->descriptor_ < 0 && errno == EINTR) {
    return Cancelled(path + ": opening was interrupted; run it again");
  }
  if (file->descriptor_ < 0) return file->Failure("cannot be opened for writing");
  return file;
}

Result<std::unique_ptr<OutputFile>> OutputFile::CreateSpool() {
  const char* folder = std::getenv("TMPDIR");
  std::string path = std::string(folder != nullptr && *folder != '\0' ? folder : "/tmp");
  std::unique_ptr<OutputFile> file(new OutputFile);
  file->name_ = "temporary file in " + path;
  path += "/pozor-XXXXXX";
  file->owned_ = true;
  file->spool_ = true;
  file->descriptor_ = ::mkostemp(path.data(), O_CLOEXEC);
  if (file->descriptor_ < 0) return file->Failure("cannot be made; set TMPDIR");
  ::unlink(path.c_str());
  return file;
}

Status OutputFile::OpenTemporary(const std::string& path) {
  final_ = FollowLinks(path);
  const size_t slash = final_.find_last_of('/');
  const std::string folder = slash == std::string::npos ? "" : final_.substr(0, slash + 1);
  const std::string stem =
      folder + "." + final_.substr(folder.size()) + "." + std::to_string(::getpid());
  constexpr int kMostAttempts = 100;  // names left behind by a process of the same number
  owned_ = true;
  for (int attempt = 0; attempt < kMostAttempts; ++attempt) {
    const std::string candidate = stem + "." + std::to_string(attempt) + ".tmp";
    descriptor_ = ::open(candidate.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ >= 0) {
      temporary_ = candidate;
      RememberTemporary(temporary_);
      return Status();
    }
    if (errno != EEXIST) break;
  }
  return Failure("cannot be made");
}

OutputFile::~OutputFile() {
  behind_.reset();
  if (owned_ && descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) {
    ::unlink(temporary_.c_str());
    ForgetTemporary();
  }
}

Status OutputFile::Failure(const char* doing) const {
  const int error = errno;
  if (error == EPIPE) return IoError(name_ + ": closed by its reader; nothing more was written");
  const char* what_to_do = error == ENOSPC ? "; make room or write elsewhere"
                                           : "; check the folder, its permissions and the disk";
  return IoError(name_ + ": " + doing + ": " + std::strerror(error) + what_to_do);
}

// Until a pipe has room for PIPE_BUF bytes, so that a write of no more than that returns at once.
Status OutputFile::WaitForRoom() {
  constexpr int kPollMilliseconds = 50;
  while (cancel_ != nullptr) {
    if (cancel_->load()) return Cancelled(name_ + ": writing was interrupted; run it again");
    pollfd waiting = {descriptor_, POLLOUT, 0};
    const int ready = ::poll(&waiting, 1, kPollMilliseconds);
    if (ready > 0 || (ready < 0 && errno != EINTR)) break;  // write() reports what is wrong
  }
  return Status();
}

Status OutputFile::WriteAll(std::string_view bytes) {
  while (!bytes.empty()) {
    if (may_wait_) POZOR_RETURN_IF_ERROR(WaitForRoom());
    const size_t most = may_wait_ ? size_t{PIPE_BUF} : bytes.size();
    const ssize_t count = ::write(descriptor_, bytes.data(), std::min(bytes.size(), most));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failure("cannot be written");
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return Status();
}

void OutputFile::UseThread() {
  try {
    behind_ =
        std::make_unique<WriteBehind>([this](std::string_view bytes) { return WriteAll(bytes); });
  } catch (const std::system_error&) {
    behind_ = nullptr;  // no thread to be had: Write() writes
  }
}

Status OutputFile::PassBuffer() {
  if (behind_ != nullptr) return behind_->Push(&buffer_);
  const Status status = WriteAll(buffer_);
  buffer_.clear();
  return status;
}

Status OutputFile::Write(std::string_view bytes) {
  if (buffer_.size() + bytes.size() > kBufferBytes) POZOR_RETURN_IF_ERROR(PassBuffer());
  if (bytes.size() > kBufferBytes && behind_ == nullptr) return WriteAll(bytes);
  buffer_ += bytes;
  return Status();
}

Status OutputFile::Flush() {
  POZOR_RETURN_IF_ERROR(PassBuffer());
  return behind_ != nullptr ? behind_->Wait() : Status();
}

Status OutputFile::WriteAt(uint64_t offset, std::string_view bytes) {
  POZOR_RETURN_IF_ERROR(Flush());
  while (!bytes.empty()) {
    const ssize_t count =
        ::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failure("cannot be written");
    bytes.remove_prefix(static_cast<size_t>(count));
    offset += static_cast<uint64_t>(count);
  }
  return Status();
}

Status OutputFile::ReadAt(uint64_t offset, size_t size, char* to) const {
  while (size > 0) {
    const ssize_t count = ::pread(descriptor_, to, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failure("cannot be read");
    if (count == 0) return IoError(name_ + ": ends early; run it again");
    to += count;
    offset += static_cast<uint64_t>(count);
    size -= static_cast<size_t>(count);
  }
  return Status();
}

Status OutputFile::CopyTo(OutputFile& other) {
  POZOR_RETURN_IF_ERROR(Flush());
  std::string block(kBufferBytes, '\0');
  off_t offset = 0;
  while (true) {
    const ssize_t count = ::pread(descriptor_, block.data(), block.size(), offset);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return Failure("cannot be read");
    if (count == 0) return Status();
    POZOR_RETURN_IF_ERROR(other.Write({block.data(), static_cast<size_t>(count)}));
    offset += count;
  }
}

Status OutputFile::Commit() {
  POZOR_RETURN_IF_ERROR(Flush());
  if (!owned_) return Status();
  // Some file systems report a full disk only here.
  const int closed = ::close(descriptor_);
  descriptor_ = -1;
  if (closed != 0 && errno != EINTR) return Failure("cannot be written");
  if (temporary_.empty()) return Status();
  if (::rename(temporary_.c_str(), final_.c_str()) != 0) return Failure("cannot be given its name");
  ForgetTemporary();
  temporary_.clear();
  return Status();
}

}  // namespace pozor::tools
