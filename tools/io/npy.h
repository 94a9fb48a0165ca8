// NumPy's .npy format, version 1.0: what Pozor writes, and float matrices read back.
#ifndef POZOR_TOOLS_IO_NPY_H_
#define POZOR_TOOLS_IO_NPY_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "pozor/status.h"

namespace pozor::tools {

inline constexpr size_t kNpyHeaderBytes = 128;

// A header of kNpyHeaderBytes whatever the number of rows: `descr` is NumPy's type ("<f4").
std::string NpyHeader(const std::string& descr, uint64_t rows, uint64_t columns);

// The same for any number of dimensions; the header is a multiple of 64 bytes.
std::string NpyHeader(const std::string& descr, std::span<const uint64_t> shape);

struct NpyArray {
  std::string descr;            // "<f4"
  std::vector<uint64_t> shape;  // C order
  std::string_view data;        // within the bytes that were read
};

// An array of any type; `path` is for messages.
Result<NpyArray> ParseNpy(std::string_view bytes, const std::string& path);

struct NpyMatrix {
  uint64_t rows = 0, columns = 0;
  std::vector<float> data;  // [rows, columns]
};

// A C-order matrix (or vector: one column) of <f4 or <f8.
Result<NpyMatrix> ReadNpy(const std::string& path);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_IO_NPY_H_
