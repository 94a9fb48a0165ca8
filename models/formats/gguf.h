// GGUF files as a source of weights under the names of the original checkpoint, and what their
// metadata says about the model.
#ifndef POZOR_MODELS_FORMATS_GGUF_H_
#define POZOR_MODELS_FORMATS_GGUF_H_

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "engine/weights.h"
#include "models/formats/gguf_header.h"
#include "pozor/status.h"

namespace pozor {

class GgufFile : public TensorSource {
 public:
  virtual const GgufMetadata& metadata() const = 0;

  // The config.json that the metadata amounts to. Unsupported if general.architecture is none that
  // Pozor knows; Corrupt if a number that it needs is missing.
  virtual Result<std::string> ConfigJson() const = 0;

  // The pooling that the file names in sentence-transformers' way ("mean", "cls", "lasttoken");
  // empty if it names none.
  virtual std::string PoolingMode() const = 0;
};

Result<std::shared_ptr<const GgufFile>> OpenGguf(const std::string& path);

// The same of bytes in memory, which must outlive the result.
Result<std::shared_ptr<const GgufFile>> ReadGgufBytes(std::span<const uint8_t> bytes,
                                                      const std::string& name);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_GGUF_H_
