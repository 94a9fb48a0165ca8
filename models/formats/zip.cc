#include "models/formats/zip.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "models/formats/byte_cursor.h"

namespace pozor {
namespace {

constexpr uint32_t kLocalHeader = 0x04034B50, kEntryHeader = 0x02014B50;
constexpr uint32_t kEnd = 0x06054B50, kEnd64 = 0x06064B50, kLocator64 = 0x07064B50;
constexpr size_t kEndBytes = 22, kLocatorBytes = 20, kMostComment = 0xFFFF;
constexpr uint32_t kIn64 = 0xFFFFFFFF;  // the value stands in the ZIP64 extra field
constexpr uint16_t kExtra64 = 1, kEncrypted = 1;
constexpr uint64_t kMostEntries = uint64_t{1} << 18;

struct Directory {
  uint64_t entries = 0, size = 0, offset = 0;
};

Status BadDirectory(const std::string& name, const std::string& why) {
  return Corrupt(name + ": the zip directory " + why + "; download the file again");
}

// The place of the end record: it comes last, but for a comment.
size_t FindEnd(std::span<const uint8_t> file) {
  if (file.size() < kEndBytes) return file.size();
  const size_t lowest = file.size() - std::min(file.size(), kEndBytes + kMostComment);
  for (size_t at = file.size() - kEndBytes + 1; at-- > lowest;) {
    if (ByteCursor(file.subspan(at)).Take<uint32_t>() == kEnd) return at;
  }
  return file.size();
}

Result<Directory> ReadEnd(std::span<const uint8_t> file, const std::string& name) {
  const size_t at = FindEnd(file);
  if (at == file.size()) return BadDirectory(name, "is missing: the file is cut short");
  ByteCursor end(file.subspan(at));
  end.TakeBytes(4 + 2 + 2 + 2);  // signature, disks, entries of this disk
  Directory directory;
  directory.entries = end.Take<uint16_t>();
  directory.size = end.Take<uint32_t>();
  directory.offset = end.Take<uint32_t>();
  if (at < kLocatorBytes) return directory;
  ByteCursor locator(file.subspan(at - kLocatorBytes));
  if (locator.Take<uint32_t>() != kLocator64) return directory;
  locator.TakeBytes(4);
  const uint64_t at64 = locator.Take<uint64_t>();
  if (at64 > file.size()) return BadDirectory(name, "lies outside the file");
  ByteCursor end64(file.subspan(static_cast<size_t>(at64)));
  const uint32_t signature = end64.Take<uint32_t>();
  end64.TakeBytes(8 + 2 + 2 + 4 + 4 + 8);  // size, versions, disks, entries of this disk
  directory.entries = end64.Take<uint64_t>();
  directory.size = end64.Take<uint64_t>();
  directory.offset = end64.Take<uint64_t>();
  if (signature != kEnd64 || end64.failed()) return BadDirectory(name, "is damaged");
  return directory;
}

struct Entry {
  std::string_view name;
  uint16_t flags = 0, method = 0;
  uint64_t packed = 0, size = 0, offset = 0;
};

void ReadExtra(std::span<const uint8_t> extra, Entry* entry) {
  ByteCursor fields(extra);
  while (fields.left() >= 4) {
    const uint16_t kind = fields.Take<uint16_t>();
    const uint16_t size = fields.Take<uint16_t>();
    ByteCursor field(fields.TakeBytes(size));
    if (kind != kExtra64) continue;
    for (uint64_t* value : {&entry->size, &entry->packed, &entry->offset}) {
      if (*value == kIn64) *value = field.Take<uint64_t>();
    }
    return;
  }
}

// One entry of the directory; false at damage.
bool ReadEntry(ByteCursor* cursor, Entry* entry) {
  if (cursor->Take<uint32_t>() != kEntryHeader) return false;
  cursor->TakeBytes(2 + 2);  // versions
  entry->flags = cursor->Take<uint16_t>();
  entry->method = cursor->Take<uint16_t>();
  cursor->TakeBytes(2 + 2 + 4);  // time, date, CRC
  entry->packed = cursor->Take<uint32_t>();
  entry->size = cursor->Take<uint32_t>();
  const uint16_t name = cursor->Take<uint16_t>();
  const uint16_t extra = cursor->Take<uint16_t>();
  const uint16_t comment = cursor->Take<uint16_t>();
  cursor->TakeBytes(2 + 2 + 4);  // disk, attributes
  entry->offset = cursor->Take<uint32_t>();
  entry->name = cursor->TakeText(name);
  ReadExtra(cursor->TakeBytes(extra), entry);
  cursor->TakeBytes(comment);
  return !cursor->failed();
}

// The bytes of an entry, behind the header that stands before them.
Result<std::span<const uint8_t>> EntryBytes(std::span<const uint8_t> file, const Entry& entry,
                                            const std::string& name) {
  const std::string what = name + ": zip entry " + std::string(entry.name.substr(0, 200));
  if ((entry.flags & kEncrypted) != 0) {
    return Unsupported(what + " is encrypted; save the weights without a password");
  }
  if (entry.method != 0) {
    return Unsupported(what + " is compressed (method " + std::to_string(entry.method) +
                       "), only stored entries are read; save the weights with torch.save");
  }
  const Status outside = Corrupt(what + " lies outside the file; download the file again");
  if (entry.offset > file.size() || entry.packed != entry.size) return outside;
  ByteCursor local(file.subspan(static_cast<size_t>(entry.offset)));
  if (local.Take<uint32_t>() != kLocalHeader) return outside;
  local.TakeBytes(2 + 2 + 2 + 2 + 2 + 4 + 4 + 4);
  const uint16_t name_size = local.Take<uint16_t>();
  const uint16_t extra_size = local.Take<uint16_t>();
  local.TakeBytes(uint64_t{name_size} + extra_size);
  const std::span<const uint8_t> bytes = local.TakeBytes(entry.size);
  if (local.failed()) return outside;
  return bytes;
}

}  // namespace

bool LooksLikeZip(std::span<const uint8_t> file) {
  return ByteCursor(file).Take<uint32_t>() == kLocalHeader;
}

Result<ZipDirectory> ReadZipDirectory(std::span<const uint8_t> file, const std::string& name) {
  POZOR_TRY(const Directory directory, ReadEnd(file, name));
  if (directory.offset > file.size() || directory.size > file.size() - directory.offset) {
    return BadDirectory(name, "lies outside the file (offset " + std::to_string(directory.offset) +
                                  ", " + std::to_string(directory.size) + " bytes)");
  }
  if (directory.entries > kMostEntries) return BadDirectory(name, "has too many entries");
  ByteCursor cursor(
      file.subspan(static_cast<size_t>(directory.offset), static_cast<size_t>(directory.size)));
  ZipDirectory entries;
  for (uint64_t i = 0; i < directory.entries; ++i) {
    Entry entry;
    if (!ReadEntry(&cursor, &entry)) return BadDirectory(name, "is damaged");
    POZOR_TRY(const auto bytes, EntryBytes(file, entry, name));
    if (entries.emplace(std::string(entry.name), bytes).second) continue;
    return BadDirectory(name, "has " + std::string(entry.name.substr(0, 200)) + " twice");
  }
  return entries;
}

}  // namespace pozor
