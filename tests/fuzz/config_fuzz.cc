// Any bytes as a config.json: refused, or the specification of an encoder within the bounds.
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/architectures/architecture.h"
#include "models/config.h"
#include "models/formats/elements.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto document = pozor::ParseJson({reinterpret_cast<const char*>(data), size}, "fuzz");
  if (!document.ok() || !(*document)->is_object()) return 0;
  const auto type = pozor::FindModelType(**document, "fuzz");
  if (!type.ok()) return 0;
  const auto architecture = pozor::FindArchitecture(*type, "fuzz");
  if (!architecture.ok()) return 0;
  const pozor::WeightReader weights(std::make_shared<pozor::StoredTensors>("fuzz"));
  pozor::Config config(std::move(*document), "fuzz");
  const pozor::EncoderSpec spec = (*architecture)->make_spec(config, weights);
  std::vector<std::string> warnings;
  config.Finish(&warnings);
  (void)config.Effects();
  if (!config.status().ok()) return 0;
  if (spec.layer_count() > pozor::kMostLayers || spec.hidden > pozor::kMostHidden) std::abort();
  return 0;
}
