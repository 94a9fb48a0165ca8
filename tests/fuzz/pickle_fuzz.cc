// Any bytes as a pickle: refused, or objects whose parts all exist.
#include <cstdint>
#include <cstdlib>

#include "models/formats/pickle.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto pickle = pozor::Pickle::Read({data, size}, "fuzz");
  if (!pickle.ok()) return 0;
  if (pickle->size_in_bytes() > size) std::abort();
  const auto* begin = reinterpret_cast<const char*>(data);
  for (const uint32_t index : pickle->root().items) {
    const pozor::PickleValue& value = (*pickle)[index];
    if (value.text.empty()) continue;
    if (value.text.data() < begin || value.text.data() + value.text.size() > begin + size) {
      std::abort();
    }
  }
  return 0;
}
