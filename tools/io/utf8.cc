#include "tools/io/utf8.h"

#include <cstdint>
#include <cstring>

namespace pozor::tools {
namespace {

struct Lead {
  size_t length;                          // of the sequence; 0: no lead byte
  unsigned char second_low, second_high;  // what the second byte may be
};

// Table 3-7 of the Unicode standard.
Lead LeadOf(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

bool IsAscii8(const char* bytes) {
  uint64_t word;
  std::memcpy(&word, bytes, sizeof word);
  return (word & 0x8080808080808080u) == 0;
}

}  // namespace

size_t FindInvalidUtf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    if (i + 8 <= text.size() && IsAscii8(text.data() + i)) {
      i += 8;
      continue;
    }
    const Lead lead = LeadOf(static_cast<unsigned char>(text[i]));
    if (lead.length == 0 || i + lead.length > text.size()) return i;
    for (size_t k = 1; k < lead.length; ++k) {
      const auto byte = static_cast<unsigned char>(text[i + k]);
      const unsigned char low = k == 1 ? lead.second_low : 0x80;
      const unsigned char high = k == 1 ? lead.second_high : 0xBF;
      if (byte < low || byte > high) return i;
    }
    i += lead.length;
  }
  return i;
}

}  // namespace pozor::tools
