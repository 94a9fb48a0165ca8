// What GGUF calls the tensors and the settings of each architecture that Pozor reads from it.
#ifndef POZOR_MODELS_FORMATS_GGUF_NAMES_H_
#define POZOR_MODELS_FORMATS_GGUF_NAMES_H_

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/formats/gguf_header.h"
#include "pozor/status.h"

namespace pozor {

struct GgufArchitecture;

// Unsupported, by name, if general.architecture is unknown or missing.
Result<const GgufArchitecture*> FindGgufArchitecture(const GgufMetadata& metadata,
                                                     const std::string& file);

// "blk.3.attn_q.weight" -> "encoder.layer.3.attention.self.query.weight"; the name itself if the
// architecture has no such tensor.
std::string GgufTensorName(const GgufArchitecture& architecture, std::string_view name);

// config.json for the metadata; sizes of tables are those of the tensors.
Result<std::string> GgufConfigJson(const GgufArchitecture& architecture, const GgufHeader& header,
                                   const std::string& file);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_GGUF_NAMES_H_
