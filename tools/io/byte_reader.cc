#include "tools/io/byte_reader.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace pozor::tools {
namespace {

constexpr size_t kBufferBytes = size_t{256} << 10;
constexpr int kPollMilliseconds = 50;

bool IsSet(const std::atomic<bool>* flag) { return flag != nullptr && flag->load(); }

Status Interrupted(const std::string& name) {
  return Cancelled(name + ": reading was interrupted; run it again");
}

// Text in two-byte units without a byte-order mark: every second byte of the start is zero.
bool LooksLikeUtf16(std::string_view bytes) {
  const size_t pairs = std::min<size_t>(bytes.size(), 32) / 2;
  if (pairs < 2) return false;
  size_t zero_even = 0, zero_odd = 0;
  for (size_t i = 0; i < pairs; ++i) {
    zero_even += bytes[2 * i] == '\0' ? 1 : 0;
    zero_odd += bytes[2 * i + 1] == '\0' ? 1 : 0;
  }
  return (zero_even == pairs && zero_odd == 0) || (zero_odd == pairs && zero_even == 0);
}

}  // namespace

Result<std::unique_ptr<ByteReader>> ByteReader::Open(const std::string& path,
                                                     const std::atomic<bool>* cancel) {
  int descriptor = STDIN_FILENO;
  if (path != "-") {
    do {
      descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    } while (descriptor < 0 && errno == EINTR && !IsSet(cancel));
    if (descriptor < 0 && errno == EINTR) return Interrupted(path);
    if (descriptor < 0 && errno == ENOENT) {
      return NotFound(path + ": no such file; check the name");
    }
    if (descriptor < 0) return IoError(path + ": " + std::strerror(errno) + "; check the file");
  }
  const std::string name = path == "-" ? "standard input" : path;
  std::unique_ptr<ByteReader> reader(new ByteReader(name, descriptor, path != "-"));
  struct stat info = {};
  if (::fstat(descriptor, &info) != 0) {
    return IoError(name + ": " + std::strerror(errno) + "; give a file that can be read");
  }
  if (S_ISDIR(info.st_mode)) return IoError(name + ": is a folder; give the files in it");
  reader->regular_ = S_ISREG(info.st_mode);
  reader->cancel_ = cancel;
  if (reader->regular_) {
    const off_t position = ::lseek(descriptor, 0, SEEK_CUR);
    reader->total_ =
        static_cast<uint64_t>(std::max<off_t>(0, info.st_size - std::max<off_t>(0, position)));
  }
  return reader;
}

ByteReader::ByteReader(std::string name, int descriptor, bool owned)
    : name_(std::move(name)), descriptor_(descriptor), owned_(owned) {}

ByteReader::~ByteReader() {
  if (owned_) ::close(descriptor_);
}

Status ByteReader::WaitForInput() {
  while (!regular_ && cancel_ != nullptr) {
    if (cancel_->load()) return Interrupted(name_);
    pollfd waiting = {descriptor_, POLLIN, 0};
    const int ready = ::poll(&waiting, 1, kPollMilliseconds);
    if (ready > 0 || (ready < 0 && errno != EINTR)) break;  // read() reports what is wrong
  }
  return Status();
}

// Appends one read() to the buffer.
Status ByteReader::Fill() {
  if (position_ > 0) {
    buffer_.erase(0, position_);
    position_ = 0;
  }
  const size_t held = buffer_.size();
  buffer_.resize(held + kBufferBytes);
  ssize_t count = -1;
  do {
    if (Status status = WaitForInput(); !status.ok()) {
      buffer_.resize(held);
      return status;
    }
    count = ::read(descriptor_, buffer_.data() + held, kBufferBytes);
  } while (count < 0 && errno == EINTR);
  const int error = errno;
  buffer_.resize(held + static_cast<size_t>(std::max<ssize_t>(count, 0)));
  if (count < 0) return IoError(name_ + ": " + std::strerror(error) + "; check the file");
  ended_ = count == 0;
  return Status();
}

Status ByteReader::CheckStart() {
  started_ = true;
  constexpr size_t kStartBytes = 4;
  while (!ended_ && buffer_.size() < kStartBytes) POZOR_RETURN_IF_ERROR(Fill());
  const std::string_view start(buffer_);
  if (start.starts_with("\xEF\xBB\xBF")) Consume(3);
  const bool marked = start.starts_with("\xFF\xFE") || start.starts_with("\xFE\xFF");
  if (marked || LooksLikeUtf16(start)) {
    return Unsupported(name_ + ": line 1, byte 1: is UTF-16, not UTF-8" +
                       (marked ? " (it begins with a byte-order mark)" : "") +
                       "; convert it: iconv -f UTF-16 -t UTF-8");
  }
  return Status();
}

Result<std::string_view> ByteReader::Peek() {
  if (!started_) POZOR_RETURN_IF_ERROR(CheckStart());
  while (position_ == buffer_.size() && !ended_) POZOR_RETURN_IF_ERROR(Fill());
  return std::string_view(buffer_).substr(position_);
}

void ByteReader::Consume(size_t bytes) {
  position_ += bytes;
  consumed_ += bytes;
}

Result<bool> ByteReader::ReadLine(std::string* line) {
  line->clear();
  while (true) {
    POZOR_TRY(const std::string_view bytes, Peek());
    if (bytes.empty()) return !line->empty();
    const size_t end = bytes.find('\n');
    const size_t taken = end == std::string_view::npos ? bytes.size() : end;
    if (line->size() + taken > kMaxRecordBytes) {
      return ResourceExhausted(name_ + ": a line of more than 64 MiB; split it into texts");
    }
    line->append(bytes.substr(0, taken));
    Consume(end == std::string_view::npos ? taken : taken + 1);
    if (end != std::string_view::npos) return true;
  }
}

}  // namespace pozor::tools
