// Any bytes as a safetensors file: refused, or tensors that lie inside the file.
#include <cstdint>
#include <cstdlib>

#include "models/formats/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto header = pozor::ParseSafetensorsHeader({data, size}, "fuzz");
  if (!header.ok()) return 0;
  if (header->data_begin > size || header->offsets.size() != header->tensors.size()) std::abort();
  for (const size_t offset : header->offsets) {
    if (offset > size - header->data_begin) std::abort();
  }
  return 0;
}
