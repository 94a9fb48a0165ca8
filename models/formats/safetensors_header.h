// The header of a safetensors file, checked against the file's size.
#ifndef POZOR_MODELS_FORMATS_SAFETENSORS_HEADER_H_
#define POZOR_MODELS_FORMATS_SAFETENSORS_HEADER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/weights.h"
#include "pozor/status.h"

namespace pozor {

struct SafetensorsHeader {
  size_t data_begin = 0;            // of the buffer, in the file
  std::vector<TensorInfo> tensors;  // source_index: into offsets
  std::vector<size_t> offsets;      // in the buffer
  std::vector<std::pair<std::string, std::string>> metadata;
};

// `file` is the whole file; only its header is touched. `name` stands in the messages.
Result<SafetensorsHeader> ParseSafetensorsHeader(std::span<const uint8_t> file,
                                                 const std::string& name);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_SAFETENSORS_HEADER_H_
