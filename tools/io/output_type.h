// Numbers of an output row: f32 as computed, or bytes as sentence-transformers'
// quantize_embeddings makes them. A row's bytes depend on that row alone.
#ifndef POZOR_TOOLS_IO_OUTPUT_TYPE_H_
#define POZOR_TOOLS_IO_OUTPUT_TYPE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "pozor/status.h"

namespace pozor::tools {

// kInt8: floor((x - min) / step) - 128 with step = (max - min) / 255, held within -128 .. 127.
// kUbinary: one bit a number, 1 if x > 0, eight in a byte, the first in the highest bit.
// kBinary: the same minus 128.
enum class OutputType : uint8_t { kF32, kInt8, kBinary, kUbinary };

// What int8 maps to -128 and 127: one value for all dimensions, or one for each.
struct Int8Ranges {
  std::vector<float> min, max;
};

// {"min": number or [numbers], "max": ...}
Result<Int8Ranges> ReadInt8Ranges(const std::string& path);

// Fits the ranges to the dimensions of a vector, and names what does not fit.
Status ExpandRanges(size_t dimensions, const std::string& path, Int8Ranges* ranges);

// Bytes of a row of `dimensions` numbers.
size_t OutputRowBytes(OutputType type, size_t dimensions);

// Appends a row. `ranges` has a value for each dimension if `type` is kInt8.
void AppendQuantized(OutputType type, std::span<const float> row, const Int8Ranges& ranges,
                     std::string* out);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_IO_OUTPUT_TYPE_H_
