// Widening of stored floating-point numbers to f32.
#ifndef POZOR_MODELS_FORMATS_FLOAT_FORMATS_H_
#define POZOR_MODELS_FORMATS_FLOAT_FORMATS_H_

#include <bit>
#include <cstdint>
#include <cstring>

namespace pozor {

inline float Bf16ToFloat(uint16_t bits) {
  return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

// IEEE binary16. Exact, subnormals and infinities included.
inline float F16ToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t magnitude = bits & 0x7FFFu;
  if (magnitude >= 0x7C00u) {  // infinity or NaN
    return std::bit_cast<float>(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
  }
  if (magnitude < 0x0400u) {  // zero or subnormal: magnitude * 2^-24 is exact
    const float value = static_cast<float>(magnitude) * 0x1p-24f;
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(value));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
}

// A value at any address.
template <class T>
T LoadUnaligned(const uint8_t* bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_FLOAT_FORMATS_H_
