// How attention weights are stored: full, half, or the square root in a byte.
#ifndef POZOR_TOOLS_ATTENTION_ENCODING_H_
#define POZOR_TOOLS_ATTENTION_ENCODING_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace pozor::tools {

enum class WeightType : uint8_t { kF32, kF16, kSqrtU8 };

inline size_t SizeOf(WeightType type) {
  return type == WeightType::kF32 ? 4 : type == WeightType::kF16 ? 2 : 1;
}

// "f32", "f16", "sqrt-u8"
std::string_view WeightTypeName(WeightType type);

// IEEE binary16, to nearest even.
uint16_t ToHalf(float value);
float FromHalf(uint16_t half);

// round(255 sqrt(w)); w = (byte / 255)^2 is within 0.4 % of the full scale.
uint8_t ToSqrtByte(float weight);
float FromSqrtByte(uint8_t byte);

// Appends `count` values, little-endian.
void AppendEncoded(const float* values, size_t count, WeightType type, std::string* out);
void Decode(const char* bytes, size_t count, WeightType type, float* out);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_ENCODING_H_
