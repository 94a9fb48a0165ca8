// The block formats of ggml: how a row of weights is stored, and back to f32.
#ifndef POZOR_MODELS_FORMATS_GGML_BLOCKS_H_
#define POZOR_MODELS_FORMATS_GGML_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace pozor {

// Numbers as in the files.
enum class GgmlType : uint32_t {
  kF32 = 0,
  kF16 = 1,
  kQ4_0 = 2,
  kQ4_1 = 3,
  kQ5_0 = 6,
  kQ5_1 = 7,
  kQ8_0 = 8,
  kQ2_K = 10,
  kQ3_K = 11,
  kQ4_K = 12,
  kQ5_K = 13,
  kQ6_K = 14,
  kF64 = 28,
  kBf16 = 30,
};

struct GgmlBlock {
  size_t weights = 0;  // in a block; 0: Pozor does not read this type
  size_t bytes = 0;
};

GgmlBlock BlockOf(GgmlType type);

// "Q4_K"; "IQ4_NL" for one that is known but not read; "type 250" for the rest.
std::string GgmlTypeName(GgmlType type);

// The largest BlockOf().weights.
inline constexpr size_t kMostBlockWeights = 256;

// Turns `blocks` blocks at `bytes` (any address) into weights. Each weight is what the format
// defines, with the roundings to f32 of its reference: scale times quant, then plus minimum.
void DecodeBlocks(GgmlType type, const uint8_t* bytes, size_t blocks, float* out);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_GGML_BLOCKS_H_
