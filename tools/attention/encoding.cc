#include "tools/attention/encoding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

namespace pozor::tools {

static_assert(std::endian::native == std::endian::little, "files are written as memory has them");

std::string_view WeightTypeName(WeightType type) {
  constexpr std::string_view kNames[] = {"f32", "f16", "sqrt-u8"};
  return kNames[static_cast<size_t>(type)];
}

uint16_t ToHalf(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>(bits >> 16 & 0x8000);
  const uint32_t magnitude = bits & 0x7FFFFFFF;
  if (magnitude >= 0x7F800000) {  // infinite or not a number
    return static_cast<uint16_t>(sign | 0x7C00 | (magnitude > 0x7F800000 ? 0x200 : 0));
  }
  if (magnitude >= 0x477FF000) return static_cast<uint16_t>(sign | 0x7C00);  // rounds past 65504
  if (magnitude < 0x38800000) {  // below 2^-14: adding 0.5 leaves the rounded multiple of 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(shifted) - 0x3F000000));
  }
  const uint32_t rounded = magnitude + 0xFFF + (magnitude >> 13 & 1);
  return static_cast<uint16_t>(sign | (rounded - 0x38000000) >> 13);
}

float FromHalf(uint16_t half) {
  const uint32_t exponent = half >> 10 & 31, fraction = half & 1023u;
  const float sign = half & 0x8000 ? -1.0f : 1.0f;
  if (exponent == 0) return sign * std::ldexp(static_cast<float>(fraction), -24);
  if (exponent == 31) return fraction == 0 ? sign * HUGE_VALF : std::nanf("");
  return sign * std::bit_cast<float>((exponent + 112) << 23 | fraction << 13);
}

uint8_t ToSqrtByte(float weight) {
  const float scaled = 255.0f * std::sqrt(std::max(weight, 0.0f)) + 0.5f;
  return static_cast<uint8_t>(std::min(scaled, 255.0f));
}

float FromSqrtByte(uint8_t byte) {
  const float root = static_cast<float>(byte) / 255.0f;
  return root * root;
}

void AppendEncoded(const float* values, size_t count, WeightType type, std::string* out) {
  const size_t begin = out->size();
  out->resize(begin + count * SizeOf(type));
  char* to = out->data() + begin;
  switch (type) {
    case WeightType::kF32:
      if (count > 0) std::memcpy(to, values, 4 * count);
      return;
    case WeightType::kF16:
      for (size_t i = 0; i < count; ++i) {
        const uint16_t half = ToHalf(values[i]);
        std::memcpy(to + 2 * i, &half, 2);
      }
      return;
    case WeightType::kSqrtU8:
      for (size_t i = 0; i < count; ++i) to[i] = static_cast<char>(ToSqrtByte(values[i]));
      return;
  }
}

void Decode(const char* bytes, size_t count, WeightType type, float* out) {
  switch (type) {
    case WeightType::kF32:
      if (count > 0) std::memcpy(out, bytes, 4 * count);
      return;
    case WeightType::kF16:
      for (size_t i = 0; i < count; ++i) {
        uint16_t half;
        std::memcpy(&half, bytes + 2 * i, 2);
        out[i] = FromHalf(half);
      }
      return;
    case WeightType::kSqrtU8:
      for (size_t i = 0; i < count; ++i) out[i] = FromSqrtByte(static_cast<uint8_t>(bytes[i]));
      return;
  }
}

}  // namespace pozor::tools
