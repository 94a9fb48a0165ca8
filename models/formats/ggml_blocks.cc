#include "models/formats/ggml_blocks.h"

#include "kernels/check.h"
#include "models/formats/elements.h"
#include "models/formats/float_formats.h"

namespace pozor {
namespace {

constexpr size_t kSmall = 32;   // weights of a block of the simple formats
constexpr size_t kLarge = 256;  // of a K-quant

struct TypeRow {
  GgmlType type;
  const char* name;
  size_t weights, bytes;
};
constexpr TypeRow kTypes[] = {
    {GgmlType::kF32, "F32", 1, 4},
    {GgmlType::kF16, "F16", 1, 2},
    {GgmlType::kBf16, "BF16", 1, 2},
    {GgmlType::kF64, "F64", 1, 8},
    {GgmlType::kQ4_0, "Q4_0", kSmall, 2 + 16},
    {GgmlType::kQ4_1, "Q4_1", kSmall, 2 + 2 + 16},
    {GgmlType::kQ5_0, "Q5_0", kSmall, 2 + 4 + 16},
    {GgmlType::kQ5_1, "Q5_1", kSmall, 2 + 2 + 4 + 16},
    {GgmlType::kQ8_0, "Q8_0", kSmall, 2 + 32},
    {GgmlType::kQ2_K, "Q2_K", kLarge, 16 + 64 + 2 + 2},
    {GgmlType::kQ3_K, "Q3_K", kLarge, 32 + 64 + 12 + 2},
    {GgmlType::kQ4_K, "Q4_K", kLarge, 2 + 2 + 12 + 128},
    {GgmlType::kQ5_K, "Q5_K", kLarge, 2 + 2 + 12 + 32 + 128},
    {GgmlType::kQ6_K, "Q6_K", kLarge, 128 + 64 + 16 + 2},
};

struct OtherType {
  uint32_t number;
  const char* name;
};
constexpr OtherType kOthers[] = {
    {9, "Q8_1"},    {15, "Q8_K"},  {16, "IQ2_XXS"}, {17, "IQ2_XS"}, {18, "IQ3_XXS"}, {19, "IQ1_S"},
    {20, "IQ4_NL"}, {21, "IQ3_S"}, {22, "IQ2_S"},   {23, "IQ4_XS"}, {24, "I8"},      {25, "I16"},
    {26, "I32"},    {27, "I64"},   {29, "IQ1_M"},   {34, "TQ1_0"},  {35, "TQ2_0"},   {39, "MXFP4"},
};

const TypeRow* Find(GgmlType type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return &row;
  }
  return nullptr;
}

float Half(const uint8_t* bytes) { return F16ToFloat(LoadUnaligned<uint16_t>(bytes)); }

// Low and high nibbles of a byte stand 16 weights apart; a fifth bit may come from `high`.
template <class Number>
void FourBits(const uint8_t* quants, uint32_t high, Number number, float* out) {
  for (size_t j = 0; j < kSmall / 2; ++j) {
    const int low = (quants[j] & 15) | static_cast<int>((high >> j & 1) << 4);
    const int top = (quants[j] >> 4) | static_cast<int>((high >> (j + 16) & 1) << 4);
    out[j] = number(low);
    out[j + kSmall / 2] = number(top);
  }
}

// The plain formats: x = scale * (q - shift) or x = scale * q + minimum.
void DecodeSmall(GgmlType type, const uint8_t* b, float* out) {
  const float scale = Half(b);
  const float minimum = Half(b + 2);  // of Q4_1 and Q5_1
  const auto shifted = [=](int by) {
    return [=](int q) { return static_cast<float>(q - by) * scale; };
  };
  const auto raised = [=](int q) { return static_cast<float>(q) * scale + minimum; };
  switch (type) {
    case GgmlType::kQ4_0:
      return FourBits(b + 2, 0, shifted(8), out);
    case GgmlType::kQ4_1:
      return FourBits(b + 4, 0, raised, out);
    case GgmlType::kQ5_0:
      return FourBits(b + 6, LoadUnaligned<uint32_t>(b + 2), shifted(16), out);
    case GgmlType::kQ5_1:
      return FourBits(b + 8, LoadUnaligned<uint32_t>(b + 4), raised, out);
    default:
      for (size_t j = 0; j < kSmall; ++j) {
        out[j] = static_cast<float>(static_cast<int8_t>(b[2 + j])) * scale;
      }
  }
}

// 16 groups of 16 weights: four bits of scale and of minimum, two bits a weight.
void DecodeQ2K(const uint8_t* b, float* out) {
  const uint8_t* scales = b;
  const float scale = Half(b + 80), minimum = Half(b + 82);
  for (size_t i = 0; i < kLarge; ++i) {
    const size_t half = i / 128, shift = i % 128 / 32 * 2, group = i / 16;
    const uint8_t byte = b[16 + half * 32 + i % 32];
    const float step = scale * static_cast<float>(scales[group] & 15);
    const float least = minimum * static_cast<float>(scales[group] >> 4);
    out[i] = step * static_cast<float>(byte >> shift & 3) - least;
  }
}

// 16 groups: six bits of scale, two bits a weight and a third one in a mask, inverted.
void DecodeQ3K(const uint8_t* b, float* out) {
  const uint8_t* mask = b;
  const uint8_t* packed = b + 96;
  const float scale = Half(b + 108);
  for (size_t i = 0; i < kLarge; ++i) {
    const size_t half = i / 128, part = i % 128 / 32, group = i / 16;
    const int low = group < 8 ? packed[group] & 15 : packed[group - 8] >> 4;
    const int high = packed[8 + group % 4] >> (2 * (group / 4)) & 3;
    const float step = scale * static_cast<float>((low | high << 4) - 32);
    const int quant = b[32 + half * 32 + i % 32] >> (2 * part) & 3;
    const bool set = (mask[i % 32] >> (half * 4 + part) & 1) != 0;
    out[i] = step * static_cast<float>(quant - (set ? 0 : 4));
  }
}

// Scale and minimum, six bits each, of one of the eight groups of Q4_K and Q5_K.
struct SixBits {
  int scale, minimum;
};
SixBits ScaleOf(const uint8_t* packed, size_t group) {
  if (group < 4) return {packed[group] & 63, packed[group + 4] & 63};
  return {(packed[group + 4] & 15) | packed[group - 4] >> 6 << 4,
          packed[group + 4] >> 4 | packed[group] >> 6 << 4};
}

// 8 groups of 32 weights: four bits a weight, for Q5_K a fifth one in a mask.
void DecodeQ4KQ5K(const uint8_t* b, bool five, float* out) {
  const float scale = Half(b), minimum = Half(b + 2);
  const uint8_t* mask = b + 16;
  const uint8_t* quants = b + (five ? 48 : 16);
  for (size_t group = 0; group < 8; ++group) {
    const SixBits bits = ScaleOf(b + 4, group);
    const float step = scale * static_cast<float>(bits.scale);
    const float least = minimum * static_cast<float>(bits.minimum);
    for (size_t j = 0; j < 32; ++j) {
      const uint8_t byte = quants[group / 2 * 32 + j];
      int quant = group % 2 == 0 ? byte & 15 : byte >> 4;
      if (five) quant |= (mask[j] >> group & 1) << 4;
      out[group * 32 + j] = step * static_cast<float>(quant) - least;
    }
  }
}

// 16 groups of 16 weights: eight bits of scale, four bits of a weight and two in a second plane.
void DecodeQ6K(const uint8_t* b, float* out) {
  const float scale = Half(b + 208);
  for (size_t i = 0; i < kLarge; ++i) {
    const size_t half = i / 128, part = i % 128 / 32, j = i % 32;
    const uint8_t byte = b[half * 64 + part % 2 * 32 + j];
    const int low = part < 2 ? byte & 15 : byte >> 4;
    const int high = b[128 + half * 32 + j] >> (2 * part) & 3;
    const float step = scale * static_cast<float>(static_cast<int8_t>(b[192 + i / 16]));
    out[i] = step * static_cast<float>((low | high << 4) - 32);
  }
}

void DecodeBlock(GgmlType type, const uint8_t* bytes, float* out) {
  switch (type) {
    case GgmlType::kQ2_K:
      return DecodeQ2K(bytes, out);
    case GgmlType::kQ3_K:
      return DecodeQ3K(bytes, out);
    case GgmlType::kQ4_K:
      return DecodeQ4KQ5K(bytes, false, out);
    case GgmlType::kQ5_K:
      return DecodeQ4KQ5K(bytes, true, out);
    case GgmlType::kQ6_K:
      return DecodeQ6K(bytes, out);
    default:
      return DecodeSmall(type, bytes, out);
  }
}

}  // namespace

GgmlBlock BlockOf(GgmlType type) {
  const TypeRow* row = Find(type);
  return row == nullptr ? GgmlBlock() : GgmlBlock{row->weights, row->bytes};
}

std::string GgmlTypeName(GgmlType type) {
  if (const TypeRow* row = Find(type)) return row->name;
  for (const OtherType& other : kOthers) {
    if (other.number == static_cast<uint32_t>(type)) return other.name;
  }
  return "type " + std::to_string(static_cast<uint32_t>(type));
}

void DecodeBlocks(GgmlType type, const uint8_t* bytes, size_t blocks, float* out) {
  const GgmlBlock block = BlockOf(type);
  POZOR_CHECK(block.weights > 0);
  if (type == GgmlType::kF32) return WidenFloats(DType::kF32, bytes, blocks, out);
  if (type == GgmlType::kF16) return WidenFloats(DType::kF16, bytes, blocks, out);
  if (type == GgmlType::kBf16) return WidenFloats(DType::kBF16, bytes, blocks, out);
  if (type == GgmlType::kF64) return WidenFloats(DType::kF64, bytes, blocks, out);
  for (size_t i = 0; i < blocks; ++i) {
    DecodeBlock(type, bytes + i * block.bytes, out + i * block.weights);
  }
}

}  // namespace pozor
