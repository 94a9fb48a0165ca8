// Vectors into a file, row by row in the order of the texts.
//
//   npy    NumPy's format 1.0, [rows, dimensions], C order
//   jsonl  {"index": 0, "embedding": [...]} a line; shortest decimals that read back to the same
//   bits f32    the numbers alone, little-endian, rows one after another
#ifndef POZOR_TOOLS_IO_VECTOR_WRITER_H_
#define POZOR_TOOLS_IO_VECTOR_WRITER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "pozor/pozor.hpp"
#include "tools/io/output_file.h"
#include "tools/io/output_type.h"

namespace pozor::tools {

enum class OutputFormat : uint8_t { kNpy, kJsonLines, kF32 };

// By the ending of the name; nothing if it has none that is known.
std::optional<OutputFormat> OutputFormatOf(const std::string& path);

struct VectorWriterOptions {
  OutputFormat format = OutputFormat::kJsonLines;
  size_t dimensions = 0;
  OutputType type = OutputType::kF32;
  Int8Ranges ranges;  // kInt8: a value for each dimension
};

class VectorWriter : public VectorSink {
 public:
  // Everything is written and the file gets its name. Without it nothing appears.
  virtual Status Finish() = 0;
};

Result<std::unique_ptr<VectorWriter>> MakeVectorWriter(std::unique_ptr<OutputFile> file,
                                                       VectorWriterOptions options);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_IO_VECTOR_WRITER_H_
