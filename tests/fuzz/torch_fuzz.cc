// Any bytes as a pytorch_model.bin: refused, or tensors whose every element can be read.
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "models/formats/torch_file.h"
#include "tests/fuzz/read_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto source = pozor::ReadTorchBytes({data, size}, "fuzz");
  if (source.ok()) pozor::test::ReadTensors(**source);
  return 0;
}
