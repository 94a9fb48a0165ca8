#include "models/formats/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace pozor {
namespace {

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

Status OpenError(const std::string& path) {
  const int error = errno;
  const std::string why = path + ": " + std::strerror(error);
  if (error == ENOENT || error == ENOTDIR) return NotFound(why + "; check the path");
  return IoError(why + "; check the permissions");
}

// Opens without blocking on a pipe, then insists on a regular file.
Status CheckRegular(const Descriptor& file, const std::string& path, size_t* size) {
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return OpenError(path);
  if (!S_ISREG(info.st_mode)) {
    return InvalidArgument(path + ": not a regular file; give the path of a file");
  }
  *size = static_cast<size_t>(info.st_size);
  return Status();
}

constexpr size_t kPage = 4096;

}  // namespace

Result<MappedFile> MappedFile::Open(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return OpenError(path);
  MappedFile out;
  out.path_ = path;
  POZOR_RETURN_IF_ERROR(CheckRegular(file, path, &out.size_));
  if (out.size_ == 0) return out;
  void* data = ::mmap(nullptr, out.size_, PROT_READ, MAP_SHARED, file.get(), 0);
  if (data == MAP_FAILED) {
    return IoError(path + ": cannot map it (" + std::strerror(errno) +
                   "); copy it to a local disk");
  }
  out.data_ = static_cast<const uint8_t*>(data);
  return out;
}

MappedFile::MappedFile(MappedFile&& other) noexcept { *this = std::move(other); }

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(path_, other.path_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<uint8_t*>(data_), size_);
}

void MappedFile::WillNeed(size_t offset, size_t length) const {
  if (data_ == nullptr || length == 0) return;
  const size_t begin = offset / kPage * kPage;
  ::madvise(const_cast<uint8_t*>(data_) + begin, offset + length - begin, MADV_WILLNEED);
}

void MappedFile::Release(size_t offset, size_t length) const {
  // Whole pages inside the range only: the ends may belong to a neighbour that is still in use.
  const size_t begin = (offset + kPage - 1) / kPage * kPage;
  const size_t end = (offset + length) / kPage * kPage;
  if (data_ == nullptr || begin >= end) return;
  ::madvise(const_cast<uint8_t*>(data_) + begin, end - begin, MADV_DONTNEED);
}

Result<std::string> ReadWholeFile(const std::string& path, size_t limit) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return OpenError(path);
  size_t size = 0;
  POZOR_RETURN_IF_ERROR(CheckRegular(file, path, &size));
  if (size > limit) {
    return Corrupt(path + ": " + std::to_string(size) + " bytes, more than the " +
                   std::to_string(limit) + " admitted for such a file; check the file");
  }
  std::string text(size, '\0');
  size_t done = 0;
  while (done < size) {
    const ssize_t got = ::read(file.get(), text.data() + done, size - done);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return IoError(path + ": " + std::strerror(errno) + "; check the disk");
    if (got == 0) break;
    done += static_cast<size_t>(got);
  }
  text.resize(done);
  return text;
}

bool FileExists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

bool DirectoryExists(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

std::vector<std::string> ListFolder(const std::string& path) {
  std::vector<std::string> names;
  DIR* folder = ::opendir(path.c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = ::readdir(folder)) {
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  }
  ::closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

std::string JoinPath(const std::string& folder, const std::string& name) {
  if (folder.empty() || folder.back() == '/') return folder + name;
  return folder + "/" + name;
}

}  // namespace pozor
