#include "tools/io/deflate.h"

#include <libdeflate.h>

#include <algorithm>
#include <memory>

namespace pozor::tools {
namespace {

// Attention weights are close to noise: higher levels take many times as long for a few per cent.
constexpr int kLevel = 6;

Status OutOfMemory() {
  return ResourceExhausted("compression: the system has too little memory; free some");
}

}  // namespace

Result<std::string> ZlibCompress(std::string_view bytes) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(kLevel), libdeflate_free_compressor);
  if (compressor == nullptr) return OutOfMemory();
  std::string stream(libdeflate_zlib_compress_bound(compressor.get(), bytes.size()), '\0');
  stream.resize(libdeflate_zlib_compress(compressor.get(), bytes.data(), bytes.size(),
                                         stream.data(), stream.size()));
  return stream;
}

Result<std::string> ZlibDecompress(std::string_view stream, size_t size) {
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)>
      decompressor(libdeflate_alloc_decompressor(), libdeflate_free_decompressor);
  if (decompressor == nullptr) return OutOfMemory();
  std::string bytes(size, '\0');
  const libdeflate_result result = libdeflate_zlib_decompress(
      decompressor.get(), stream.data(), stream.size(), bytes.data(), bytes.size(), nullptr);
  if (result == LIBDEFLATE_SUCCESS) return bytes;
  return Corrupt("compressed data: are damaged; write them again");
}

uint32_t Crc32(uint32_t crc, std::string_view bytes) {
  return libdeflate_crc32(crc, bytes.data(), bytes.size());
}

std::string Base64(std::string_view bytes) {
  constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text((bytes.size() + 2) / 3 * 4, '=');
  const auto byte = [&](size_t i) {
    return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0u;
  };
  for (size_t i = 0, out = 0; i < bytes.size(); i += 3, out += 4) {
    const uint32_t group = byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2);
    const size_t digits = std::min<size_t>(bytes.size() - i, 3) + 1;
    for (size_t d = 0; d < digits; ++d) text[out + d] = kDigits[group >> (18 - 6 * d) & 63];
  }
  return text;
}

}  // namespace pozor::tools
