// A zip archive of stored (uncompressed) entries, written front to back: what .npz is.
#ifndef POZOR_TOOLS_IO_ZIP_H_
#define POZOR_TOOLS_IO_ZIP_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "pozor/status.h"
#include "tools/io/output_file.h"

namespace pozor::tools {

// Sizes and checksums follow each entry (APPNOTE 4.3.9), with 64-bit sizes throughout, so that
// nothing must be known before it is written.
class ZipWriter {
 public:
  explicit ZipWriter(OutputFile& file) : file_(file) {}

  Status BeginEntry(const std::string& name);
  Status Write(std::string_view bytes);
  Status EndEntry();
  Status AddEntry(const std::string& name, std::string_view bytes);

  // The directory. Does not commit the file.
  Status Finish();

 private:
  struct Entry {
    std::string name;
    uint64_t offset = 0, size = 0;
    uint32_t crc = 0;
  };
  Status Put(const std::string& bytes);

  OutputFile& file_;
  std::vector<Entry> entries_;
  uint64_t written_ = 0;
};

struct ZipEntry {
  std::string name;
  std::string_view data;
};

// Stored entries of an archive in memory; `path` is for messages. Unsupported if one is compressed.
Result<std::vector<ZipEntry>> ReadStoredZip(std::string_view bytes, const std::string& path);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_IO_ZIP_H_
