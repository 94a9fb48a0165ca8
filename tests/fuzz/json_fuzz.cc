// Any bytes as JSON: refused, or a tree that can be walked.
#include <cstdint>
#include <cstdlib>

#include "models/json.h"

namespace {

void Walk(const pozor::JsonValue& value, size_t depth) {
  if (depth > pozor::kMaxJsonDepth) std::abort();
  (void)value.Describe();
  (void)value.DuplicateKey();
  (void)value.as_double();
  for (const pozor::JsonValue& item : value.items()) Walk(item, depth + 1);
  for (const pozor::JsonMember& member : value.members()) {
    if (value.Find(member.key) == nullptr) std::abort();
    Walk(member.value, depth + 1);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto document = pozor::ParseJson({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (document.ok()) Walk(document->root(), 0);
  return 0;
}
