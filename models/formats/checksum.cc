// The only door to xxHash.
#include "models/formats/checksum.h"

#include <charconv>
#include <cstdio>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace pozor {

uint64_t Checksum(const void* data, size_t bytes) { return XXH3_64bits(data, bytes); }

std::string ChecksumText(uint64_t sum) {
  char digits[17];
  std::snprintf(digits, sizeof digits, "%016llx", static_cast<unsigned long long>(sum));
  return digits;
}

std::optional<uint64_t> ParseChecksum(std::string_view text) {
  uint64_t sum = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), sum, 16);
  const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
  if (text.size() != 16 || !whole) return std::nullopt;
  return sum;
}

}  // namespace pozor
