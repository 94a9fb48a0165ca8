// Any bytes as a GGUF file: refused, or tensors that can be read, a configuration that is JSON, and
// a tokenizer that takes any text.
#include <cstdint>
#include <cstdlib>

#include "models/formats/gguf.h"
#include "models/json.h"
#include "models/text/tokenizer.h"
#include "tests/fuzz/read_tensors.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto source = pozor::ReadGgufBytes({data, size}, "fuzz");
  if (!source.ok()) return 0;
  pozor::test::ReadTensors(**source);
  const auto config = (*source)->ConfigJson();
  if (config.ok() && !pozor::ParseJson(*config, "fuzz").ok()) std::abort();
  const auto tokenizer = pozor::Tokenizer::FromGguf((*source)->metadata(), "fuzz");
  if (!tokenizer.ok()) return 0;
  pozor::TokenizeOptions options;
  options.max_length = 16;
  (void)(*tokenizer)
      ->Encode(
          "A man is e\xCC\x81"
          "ating\t\xF0\x9F\x98\x80 [MASK]!",
          nullptr, options);
  return 0;
}
