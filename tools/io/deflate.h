// The only door to libdeflate: zlib streams and CRC-32; and base64 for what goes into pages.
#ifndef POZOR_TOOLS_IO_DEFLATE_H_
#define POZOR_TOOLS_IO_DEFLATE_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "pozor/status.h"

namespace pozor::tools {

// A zlib stream (RFC 1950).
Result<std::string> ZlibCompress(std::string_view bytes);

// Exactly `size` bytes; Corrupt if the stream is broken or has another length.
Result<std::string> ZlibDecompress(std::string_view stream, size_t size);

// CRC-32 as zip has it, continued from `crc` (0 at the start).
uint32_t Crc32(uint32_t crc, std::string_view bytes);

// RFC 4648, padded.
std::string Base64(std::string_view bytes);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_IO_DEFLATE_H_
