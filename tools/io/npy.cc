#include "tools/io/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>

#include "models/formats/file.h"

namespace pozor::tools {
namespace {

constexpr char kMagic[] = "\x93NUMPY";
constexpr size_t kMagicBytes = 6;
constexpr size_t kPreludeBytes = 10;  // magic, two version bytes, two bytes of header length

Status Broken(const std::string& path, const std::string& why) {
  return Corrupt(path + ": " + why + "; save it with numpy.save as float32, two dimensions");
}

// What follows "'key': " in the header's Python dictionary.
std::string_view ValueOf(std::string_view header, std::string_view key) {
  const size_t at = header.find(key);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = header.substr(at + key.size());
  return rest.substr(std::min(rest.size(), rest.find_first_not_of(": ")));
}

// "(10, 384)", "(10,)" or "()".
bool ParseShape(std::string_view text, std::vector<uint64_t>* shape) {
  if (!text.starts_with('(')) return false;
  const char* next = text.data() + 1;
  const char* end = text.data() + text.size();
  while (next != end && *next != ')') {
    const auto parsed = std::from_chars(next, end, shape->emplace_back());
    if (parsed.ec != std::errc()) return false;
    next = parsed.ptr;
    while (next != end && (*next == ' ' || *next == ',')) ++next;
  }
  return next != end;
}

// Elements times width, or nothing if that is more than `most`.
std::optional<uint64_t> BytesOf(const std::vector<uint64_t>& shape, uint64_t width, uint64_t most) {
  if (std::find(shape.begin(), shape.end(), 0u) != shape.end()) return 0;
  uint64_t bytes = width;
  for (const uint64_t size : shape) {
    if (bytes > most / size) return std::nullopt;
    bytes *= size;
  }
  return bytes <= most ? std::optional(bytes) : std::nullopt;
}

// Of "<f4", "|u1"; 0 if it is no number.
uint64_t WidthOf(std::string_view descr) {
  uint64_t width = 0;
  if (descr.size() < 3 || (descr[0] != '<' && descr[0] != '|')) return 0;
  const auto parsed = std::from_chars(descr.data() + 2, descr.data() + descr.size(), width);
  if (parsed.ec != std::errc() || parsed.ptr != descr.data() + descr.size()) return 0;
  return descr[1] == 'U' ? 4 * width : width;
}

}  // namespace

std::string NpyHeader(const std::string& descr, uint64_t rows, uint64_t columns) {
  std::string dictionary = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" +
                           std::to_string(rows) + ", " + std::to_string(columns) + "), }";
  dictionary.resize(kNpyHeaderBytes - kPreludeBytes, ' ');
  dictionary.back() = '\n';
  std::string header(kMagic, kMagicBytes);
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(dictionary.size());
  header += '\x00';
  return header + dictionary;
}

std::string NpyHeader(const std::string& descr, std::span<const uint64_t> shape) {
  std::string sizes;
  for (const uint64_t size : shape) sizes += std::to_string(size) + ", ";
  if (shape.size() > 1) sizes.resize(sizes.size() - 2);
  std::string dictionary =
      "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (" + sizes + "), }";
  dictionary.resize((kPreludeBytes + dictionary.size() + 64) / 64 * 64 - kPreludeBytes, ' ');
  dictionary.back() = '\n';
  std::string header(kMagic, kMagicBytes);
  header += '\x01';
  header += '\x00';
  header += static_cast<char>(dictionary.size() & 255);
  header += static_cast<char>(dictionary.size() >> 8);
  return header + dictionary;
}

Result<NpyArray> ParseNpy(std::string_view bytes, const std::string& path) {
  if (bytes.size() < kPreludeBytes + 2 ||
      !bytes.starts_with(std::string_view(kMagic, kMagicBytes))) {
    return Broken(path, "is not a .npy file");
  }
  const auto byte = [&](size_t i) { return size_t{static_cast<unsigned char>(bytes[i])}; };
  size_t length = byte(8) + (byte(9) << 8);
  size_t begin = kPreludeBytes;
  if (bytes[6] != 1) {  // versions 2 and 3: four bytes of length
    length += (byte(10) << 16) + (byte(11) << 24);
    begin += 2;
  }
  if (length > bytes.size() - begin) return Broken(path, "ends within its header");
  const std::string_view header = bytes.substr(begin, length);
  NpyArray array;
  const std::string_view type = ValueOf(header, "'descr'");
  if (type.size() > 1) array.descr = type.substr(1, type.find('\'', 1) - 1);
  const uint64_t width = WidthOf(array.descr);
  if (width == 0) return Broken(path, "holds '" + array.descr + "', which is no known number");
  if (!ValueOf(header, "'fortran_order'").starts_with("False")) {
    return Broken(path, "is not in C order");
  }
  if (!ParseShape(ValueOf(header, "'shape'"), &array.shape)) {
    return Broken(path, "has a shape that cannot be read");
  }
  array.data = bytes.substr(begin + length);
  const auto size = BytesOf(array.shape, width, array.data.size());
  if (!size) return Broken(path, "is shorter than its shape says");
  array.data = array.data.substr(0, *size);
  return array;
}

Result<NpyMatrix> ReadNpy(const std::string& path) {
  POZOR_TRY(const MappedFile file, MappedFile::Open(path));
  POZOR_TRY(const NpyArray array,
            ParseNpy({reinterpret_cast<const char*>(file.data()), file.size()}, path));
  const size_t width = array.descr == "<f4" ? 4 : array.descr == "<f8" ? 8 : 0;
  if (width == 0) return Broken(path, "holds '" + array.descr + "', not '<f4' or '<f8'");
  if (array.shape.empty() || array.shape.size() > 2) {
    return Broken(path, "has a shape that is not one of rows and columns");
  }
  NpyMatrix matrix;
  matrix.rows = array.shape[0];
  matrix.columns = array.shape.size() == 2 ? array.shape[1] : 1;
  matrix.data.resize(matrix.rows * matrix.columns);
  for (size_t i = 0; i < matrix.data.size(); ++i) {
    double wide = 0;
    float narrow = 0;
    if (width == 8) std::memcpy(&wide, array.data.data() + 8 * i, 8);
    if (width == 4) std::memcpy(&narrow, array.data.data() + 4 * i, 4);
    matrix.data[i] = width == 8 ? static_cast<float>(wide) : narrow;
  }
  return matrix;
}

}  // namespace pozor::tools
