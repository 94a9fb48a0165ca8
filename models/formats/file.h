// Files as the loaders see them: mapped read-only, or read whole if they are small.
#ifndef POZOR_MODELS_FORMATS_FILE_H_
#define POZOR_MODELS_FORMATS_FILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pozor/status.h"

namespace pozor {

// A regular file mapped read-only. Bytes of a file that others shorten meanwhile must not be
// touched; Pozor never maps what it writes itself.
class MappedFile {
 public:
  static Result<MappedFile> Open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const uint8_t* data() const { return data_; }
  size_t size() const { return size_; }
  const std::string& path() const { return path_; }

  // Hints: this range will be read soon; its pages may go.
  void WillNeed(size_t offset, size_t length) const;
  void Release(size_t offset, size_t length) const;

 private:
  MappedFile() = default;
  const uint8_t* data_ = nullptr;
  size_t size_ = 0;
  std::string path_;
};

// The content of a regular file of at most `limit` bytes.
Result<std::string> ReadWholeFile(const std::string& path, size_t limit);

bool FileExists(const std::string& path);       // a regular file, symbolic links followed
bool DirectoryExists(const std::string& path);  // likewise

// Sorted names of the entries of a folder, but for those that begin with a dot.
std::vector<std::string> ListFolder(const std::string& path);

// `folder`/`name`
std::string JoinPath(const std::string& folder, const std::string& name);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_FILE_H_
