// Any bytes as an ONNX file: refused, or tensors whose every element can be read.
#include <cstdint>

#include "models/formats/onnx.h"
#include "tests/fuzz/read_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto source = pozor::ReadOnnxBytes({data, size}, "fuzz");
  if (source.ok()) pozor::test::ReadTensors(**source);
  return 0;
}
