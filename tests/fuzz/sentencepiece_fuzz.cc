// Any bytes as a SentencePiece model: refused, or pieces.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "models/text/sentencepiece.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto model = pozor::ParseSentencePiece({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (model.ok() && model->unknown_id() >= static_cast<int32_t>(model->pieces.size())) std::abort();
  return 0;
}
