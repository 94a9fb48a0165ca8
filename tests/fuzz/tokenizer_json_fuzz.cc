// Any bytes as a tokenizer.json: refused, or a tokenizer that takes any text.
#include <cstdint>
#include <string_view>

#include "models/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto tokenizer =
      pozor::Tokenizer::FromJson({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!tokenizer.ok()) return 0;
  pozor::TokenizeOptions options;
  options.max_length = 16;
  const std::string_view pair = "The [SEP] of \xC3\x89t\xC3\xA9\xE4\xB8\xAD.";
  (void)(*tokenizer)
      ->Encode(
          "A man is e\xCC\x81"
          "ating\t\xF0\x9F\x98\x80 [MASK]!",
          &pair, options);
  return 0;
}
