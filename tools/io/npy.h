// NumPy's .npy format, version 1.0: what Pozor writes, and float matrices read back.
#ifndef POZOR_TOOLS_IO_NPY_H_
#define POZOR_TOOLS_IO_NPY_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "pozor/status.h"

namespace pozor::tools {

inline constexpr size_t kNpyHeaderBytes = 128;

// A header of kNpyHeaderBytes whatever the number of rows: `descr` is NumPy's type ("<f4").
std::string NpyHeader(const std::string& descr, uint64_t rows, uint64_t columns);

struct NpyMatrix {
  uint64_t rows = 0, columns = 0;
  std::vector<float> data;  // [rows, columns]
};

// A C-order matrix (or vector: one column) of <f4 or <f8.
Result<NpyMatrix> ReadNpy(const std::string& path);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_IO_NPY_H_
