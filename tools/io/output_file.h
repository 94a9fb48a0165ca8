// Where results go. A regular file appears under its name only when it is complete; a device, a
// pipe and standard output are written straight.
#ifndef POZOR_TOOLS_IO_OUTPUT_FILE_H_
#define POZOR_TOOLS_IO_OUTPUT_FILE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "pozor/status.h"
#include "tools/io/write_behind.h"

namespace pozor::tools {

class OutputFile {
 public:
  // "-" is standard output. `cancel`, if not null, ends a wait for a pipe that nobody reads.
  static Result<std::unique_ptr<OutputFile>> Create(const std::string& path,
                                                    const std::atomic<bool>* cancel = nullptr);

  // A nameless temporary file, for what must be known before it can be written straight.
  static Result<std::unique_ptr<OutputFile>> CreateSpool();

  // Without Commit() before, the temporary file goes and the name keeps what it had.
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  Status Write(std::string_view bytes);  // through a buffer
  Status Flush();

  // From now on a thread of the file's own writes full buffers; an error comes with a later call.
  void UseThread();

  // True for regular files of our own, where WriteAt() works.
  bool can_write_at() const { return !temporary_.empty() || spool_; }
  // Over bytes that were written before.
  Status WriteAt(uint64_t offset, std::string_view bytes);

  // Bytes that were written and flushed before, from a file of our own. Any number of threads.
  Status ReadAt(uint64_t offset, size_t size, char* to) const;

  // Everything written so far, to the end of `other`.
  Status CopyTo(OutputFile& other);

  // Flushes; a regular file gets its name.
  Status Commit();

  const std::string& name() const { return name_; }  // for messages

 private:
  OutputFile() = default;
  Status OpenTemporary(const std::string& path);
  Status WriteAll(std::string_view bytes);
  Status PassBuffer();
  Status WaitForRoom();
  Status Failure(const char* doing) const;

  std::string name_;
  std::string final_;      // regular files: where it will stand
  std::string temporary_;  // regular files: where it stands until then
  bool spool_ = false;
  bool owned_ = false;
  bool may_wait_ = false;  // a pipe, a socket or a terminal
  const std::atomic<bool>* cancel_ = nullptr;
  int descriptor_ = -1;
  std::string buffer_;
  std::unique_ptr<WriteBehind> behind_;
};

// Removes the temporary files of the process. Async-signal-safe.
void RemoveTemporaryFiles();

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_IO_OUTPUT_FILE_H_
