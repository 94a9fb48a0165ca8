// Bytes of a file, a pipe or standard input through one buffer.
#ifndef POZOR_TOOLS_IO_BYTE_READER_H_
#define POZOR_TOOLS_IO_BYTE_READER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "pozor/status.h"

namespace pozor::tools {

// A record beyond this is no text for an encoder; the bound keeps a file without a line break (or
// /dev/zero) from filling the memory.
inline constexpr size_t kMaxRecordBytes = size_t{64} << 20;

class ByteReader {
 public:
  // "-" is standard input. `cancel`, if not null, ends a wait for a pipe or terminal.
  static Result<std::unique_ptr<ByteReader>> Open(const std::string& path,
                                                  const std::atomic<bool>* cancel);
  ~ByteReader();
  ByteReader(const ByteReader&) = delete;
  ByteReader& operator=(const ByteReader&) = delete;

  // For messages: the path, or "standard input".
  const std::string& name() const { return name_; }
  // Of a regular file, from where it was opened; 0 if unknown.
  uint64_t total_bytes() const { return total_; }
  uint64_t consumed() const { return consumed_; }

  // What lies in the buffer, filled if it is empty; an empty view is the end of the input. The
  // byte-order mark of UTF-8 is left out; UTF-16 is refused.
  Result<std::string_view> Peek();
  void Consume(size_t bytes);

  // Replaces *line by the bytes up to the next '\n', which is taken too; false at the end. A last
  // line without '\n' counts if it is not empty.
  Result<bool> ReadLine(std::string* line);

 private:
  ByteReader(std::string name, int descriptor, bool owned);
  Status Fill();
  Status WaitForInput();
  Status CheckStart();

  std::string name_;
  int descriptor_;
  bool owned_;
  bool regular_ = false;
  bool started_ = false;
  bool ended_ = false;
  const std::atomic<bool>* cancel_ = nullptr;
  uint64_t total_ = 0;
  uint64_t consumed_ = 0;
  std::string buffer_;
  size_t position_ = 0;
};

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_IO_BYTE_READER_H_
