// Checksums of what is stored: they find damage, not malice.
#ifndef POZOR_MODELS_FORMATS_CHECKSUM_H_
#define POZOR_MODELS_FORMATS_CHECKSUM_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pozor {

// XXH3 of 64 bits with seed 0: the same on every machine.
uint64_t Checksum(const void* data, size_t bytes);

// 16 hexadecimal digits, and back; nothing if it is no such text.
std::string ChecksumText(uint64_t sum);
std::optional<uint64_t> ParseChecksum(std::string_view text);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_CHECKSUM_H_
