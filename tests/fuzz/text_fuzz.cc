// Any bytes as a text: refused as invalid UTF-8, or the same ids by the fast and the full path,
// with offsets that lie inside the text.
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer.h"

namespace {

std::unique_ptr<pozor::Tokenizer> LoadTokenizer() {
  std::ifstream file(POZOR_FUZZ_SEEDS "/tokenizer_json_fuzz/bert.json");
  std::ostringstream json;
  json << file.rdbuf();
  return pozor::Tokenizer::FromJson(json.str(), "bert.json").value();
}

void CheckOffsets(const pozor::Encoding& encoding, size_t bytes) {
  if (encoding.byte_offsets.size() != encoding.ids.size()) std::abort();
  for (const pozor::Span& span : encoding.byte_offsets) {
    if (span.begin > span.end || span.end > bytes) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::unique_ptr<pozor::Tokenizer> tokenizer = LoadTokenizer();
  static pozor::TokenizeScratch scratch;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const pozor::TokenizeOptions options;
  std::vector<int32_t> ids;
  std::vector<int32_t> types;
  const auto fast = tokenizer->Append(text, nullptr, options, scratch, &ids, &types);
  const auto full = tokenizer->Encode(text, nullptr, options);
  if (fast.ok() != full.ok()) std::abort();
  if (!full.ok()) return 0;
  if (ids != full->ids || types != full->type_ids) std::abort();
  CheckOffsets(*full, size);

  pozor::TokenizeOptions cut;
  cut.max_length = 8;
  const auto window = tokenizer->Encode(text, nullptr, cut);
  if (!window.ok() || window->ids.size() > cut.max_length) std::abort();
  return 0;
}
