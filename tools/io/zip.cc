#include "tools/io/zip.h"

#include <algorithm>

#include "tools/io/deflate.h"

namespace pozor::tools {
namespace {

constexpr uint32_t kLocal = 0x04034b50, kDescriptor = 0x08074b50, kCentral = 0x02014b50;
constexpr uint32_t kEnd64 = 0x06064b50, kLocator64 = 0x07064b50, kEnd = 0x06054b50;
constexpr uint64_t kVersion = 45;       // has 64-bit sizes
constexpr uint64_t kFlags = 0x808;      // sizes follow the data; names are UTF-8
constexpr uint64_t kDate = 0x0021;      // 1980-01-01: the same input gives the same bytes
constexpr uint64_t kIn64 = 0xFFFFFFFF;  // the number stands in the extra field
constexpr size_t kEndBytes = 22, kCentralBytes = 46, kLocalBytes = 30;

class Bytes {
 public:
  Bytes& U16(uint64_t value) { return Put(value, 2); }
  Bytes& U32(uint64_t value) { return Put(value, 4); }
  Bytes& U64(uint64_t value) { return Put(value, 8); }
  Bytes& Text(const std::string& text) {
    bytes_ += text;
    return *this;
  }
  const std::string& get() const { return bytes_; }

 private:
  Bytes& Put(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 255);
    return *this;
  }
  std::string bytes_;
};

// Little-endian number; 0 beyond the end.
uint64_t Get(std::string_view bytes, size_t offset, size_t count) {
  uint64_t value = 0;
  for (size_t i = 0; i < count && offset + i < bytes.size(); ++i) {
    value |= uint64_t{static_cast<unsigned char>(bytes[offset + i])} << (8 * i);
  }
  return value;
}

Status Broken(const std::string& path, const std::string& why) {
  return Corrupt(path + ": " + why + "; write the dump again");
}

struct Directory {
  uint64_t offset = 0, count = 0;
};

Result<Directory> FindDirectory(std::string_view bytes, const std::string& path) {
  if (bytes.size() < kEndBytes) return Broken(path, "is too short for a zip archive");
  const size_t end = bytes.size() - kEndBytes;  // we write no comment, and neither does NumPy
  if (Get(bytes, end, 4) != kEnd) return Broken(path, "does not end as a zip archive does");
  Directory directory = {Get(bytes, end + 16, 4), Get(bytes, end + 10, 2)};
  if (end >= 20 && Get(bytes, end - 20, 4) == kLocator64) {
    const uint64_t end64 = Get(bytes, end - 12, 8);
    if (end64 > bytes.size() || Get(bytes, end64, 4) != kEnd64) {
      return Broken(path, "its directory is damaged");
    }
    directory = {Get(bytes, end64 + 48, 8), Get(bytes, end64 + 32, 8)};
  }
  if (directory.offset <= bytes.size()) return directory;
  return Broken(path, "its directory lies outside the file");
}

}  // namespace

Status ZipWriter::Put(const std::string& bytes) {
  written_ += bytes.size();
  return file_.Write(bytes);
}

Status ZipWriter::BeginEntry(const std::string& name) {
  entries_.push_back({name, written_, 0, 0});
  Bytes header;
  header.U32(kLocal).U16(kVersion).U16(kFlags).U16(0).U16(0).U16(kDate).U32(0);
  header.U32(kIn64).U32(kIn64).U16(name.size()).U16(20).Text(name);
  header.U16(1).U16(16).U64(0).U64(0);
  return Put(header.get());
}

Status ZipWriter::Write(std::string_view bytes) {
  Entry& entry = entries_.back();
  entry.crc = Crc32(entry.crc, bytes);
  entry.size += bytes.size();
  written_ += bytes.size();
  return file_.Write(bytes);
}

Status ZipWriter::EndEntry() {
  const Entry& entry = entries_.back();
  return Put(Bytes().U32(kDescriptor).U32(entry.crc).U64(entry.size).U64(entry.size).get());
}

Status ZipWriter::AddEntry(const std::string& name, std::string_view bytes) {
  POZOR_RETURN_IF_ERROR(BeginEntry(name));
  POZOR_RETURN_IF_ERROR(Write(bytes));
  return EndEntry();
}

Status ZipWriter::Finish() {
  const uint64_t begin = written_;
  for (const Entry& entry : entries_) {
    Bytes header;
    header.U32(kCentral).U16(kVersion).U16(kVersion).U16(kFlags).U16(0).U16(0).U16(kDate);
    header.U32(entry.crc).U32(kIn64).U32(kIn64).U16(entry.name.size()).U16(28).U16(0).U16(0);
    header.U16(0).U32(0).U32(kIn64).Text(entry.name);
    header.U16(1).U16(24).U64(entry.size).U64(entry.size).U64(entry.offset);
    POZOR_RETURN_IF_ERROR(Put(header.get()));
  }
  const uint64_t end = written_, count = entries_.size();
  Bytes tail;
  tail.U32(kEnd64).U64(44).U16(kVersion).U16(kVersion).U32(0).U32(0).U64(count).U64(count);
  tail.U64(end - begin).U64(begin);
  tail.U32(kLocator64).U32(0).U64(end).U32(1);
  tail.U32(kEnd).U16(0).U16(0).U16(count).U16(count).U32(kIn64).U32(kIn64).U16(0);
  return Put(tail.get());
}

Result<std::vector<ZipEntry>> ReadStoredZip(std::string_view bytes, const std::string& path) {
  POZOR_TRY(const Directory directory, FindDirectory(bytes, path));
  std::vector<ZipEntry> entries;
  size_t at = directory.offset;
  for (uint64_t i = 0; i < directory.count; ++i) {
    if (at + kCentralBytes > bytes.size() || Get(bytes, at, 4) != kCentral) {
      return Broken(path, "its directory is damaged");
    }
    const size_t name = Get(bytes, at + 28, 2), extra = Get(bytes, at + 30, 2);
    const size_t comment = Get(bytes, at + 32, 2);
    uint64_t size = Get(bytes, at + 24, 4), packed = Get(bytes, at + 20, 4);
    uint64_t offset = Get(bytes, at + 42, 4);
    size_t field = at + kCentralBytes + name;
    if (extra >= 4 && Get(bytes, field, 2) == 1) {  // 64-bit numbers, those that are needed
      field += 4;
      for (uint64_t* number : {&size, &packed, &offset}) {
        if (*number != kIn64) continue;
        *number = Get(bytes, field, 8);
        field += 8;
      }
    }
    if (Get(bytes, at + 10, 2) != 0 || size != packed) {
      return Unsupported(path + ": has compressed entries; save it with numpy.savez");
    }
    const uint64_t begin =
        offset + kLocalBytes + Get(bytes, offset + 26, 2) + Get(bytes, offset + 28, 2);
    if (offset > bytes.size() || begin > bytes.size() || size > bytes.size() - begin ||
        at + kCentralBytes + name > bytes.size()) {
      return Broken(path, "an entry lies outside the file");
    }
    entries.push_back(
        {std::string(bytes.substr(at + kCentralBytes, name)), bytes.substr(begin, size)});
    at += kCentralBytes + name + extra + comment;
  }
  return entries;
}

}  // namespace pozor::tools
