#include "tools/io/npy.h"

#include <charconv>
#include <cstring>

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

// "(10, 384)" or "(10,)".
bool ParseShape(std::string_view text, uint64_t* rows, uint64_t* columns) {
  if (!text.starts_with('(')) return false;
  const char* end = text.data() + text.size();
  auto parsed = std::from_chars(text.data() + 1, end, *rows);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != ',') return false;
  const char* next = parsed.ptr + 1;
  while (next != end && *next == ' ') ++next;
  *columns = 1;
  if (next != end && *next == ')') return true;
  parsed = std::from_chars(next, end, *columns);
  next = parsed.ptr;
  if (next != end && *next == ',') ++next;
  return parsed.ec == std::errc() && next != end && *next == ')';
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

Result<NpyMatrix> ReadNpy(const std::string& path) {
  POZOR_TRY(const MappedFile file, MappedFile::Open(path));
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  if (bytes.size() < kPreludeBytes + 2 ||
      !bytes.starts_with(std::string_view(kMagic, kMagicBytes))) {
    return Broken(path, "is not a .npy file");
  }
  size_t length =
      static_cast<unsigned char>(bytes[8]) + 256u * static_cast<unsigned char>(bytes[9]);
  size_t begin = kPreludeBytes;
  if (bytes[6] != 1) {  // versions 2 and 3: four bytes of length
    length += (static_cast<size_t>(static_cast<unsigned char>(bytes[10])) << 16) +
              (static_cast<size_t>(static_cast<unsigned char>(bytes[11])) << 24);
    begin += 2;
  }
  if (length > bytes.size() - begin) return Broken(path, "ends within its header");
  const std::string_view header = bytes.substr(begin, length);
  const std::string_view body = bytes.substr(begin + length);
  const std::string_view type = ValueOf(header, "'descr'").substr(0, 5);
  const size_t width = type == "'<f4'" ? 4 : type == "'<f8'" ? 8 : 0;
  if (width == 0) return Broken(path, "holds " + std::string(type) + ", not '<f4' or '<f8'");
  if (!ValueOf(header, "'fortran_order'").starts_with("False")) {
    return Broken(path, "is not in C order");
  }
  NpyMatrix matrix;
  if (!ParseShape(ValueOf(header, "'shape'"), &matrix.rows, &matrix.columns)) {
    return Broken(path, "has a shape that is not one of rows and columns");
  }
  const uint64_t most = body.size() / width;
  if (matrix.columns != 0 && matrix.rows > most / matrix.columns) {
    return Broken(path, "is shorter than its shape says");
  }
  matrix.data.resize(matrix.rows * matrix.columns);
  for (size_t i = 0; i < matrix.data.size(); ++i) {
    double wide = 0;
    float narrow = 0;
    if (width == 8) std::memcpy(&wide, body.data() + 8 * i, 8);
    if (width == 4) std::memcpy(&narrow, body.data() + 4 * i, 4);
    matrix.data[i] = width == 8 ? static_cast<float>(wide) : narrow;
  }
  return matrix;
}

}  // namespace pozor::tools
