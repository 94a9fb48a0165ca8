// Prepared weights: one safetensors file that holds what the engine computes with, packed and
// quantised, so that it is mapped and not read.
//
// The tensors are those of engine/tensors.h. The metadata says the format's version, the precision
// of each product, the checksum of each tensor (XXH3), the values of config.json that the weights
// were prepared for, and the names and shapes that the original weights had. The word table is
// checked a block of rows at a time, when one of them is first used; everything else at load.
#ifndef POZOR_MODELS_PREPARED_H_
#define POZOR_MODELS_PREPARED_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/encoder.h"
#include "engine/precision.h"
#include "engine/tensors.h"
#include "engine/weights.h"
#include "models/formats/file.h"
#include "models/formats/safetensors_header.h"
#include "pozor/status.h"

namespace pozor {

// The file's name in a model folder.
inline constexpr const char* kPreparedName = "pozor.safetensors";

// What the file says beside its tensors.
struct PreparedFacts {
  std::string architecture;
  std::string task;  // whose adapter is merged into the weights, or empty
  PrecisionPlan precision;
  std::vector<std::pair<std::string, std::string>> config;  // key, value: those that count
  std::vector<TensorInfo> original;                         // names and shapes of the weights
  std::vector<std::string> ignored;                         // of those, what was not used
  size_t parameters = 0;
  std::string calibration;  // "built-in text, 149 texts, 2044 tokens"
  std::string quality;      // what the gate found, or empty
};

class PreparedFile : public std::enable_shared_from_this<PreparedFile> {
 public:
  // Checks version and header; touches no tensor.
  static Result<std::shared_ptr<const PreparedFile>> Open(const std::string& path);

  const PreparedFacts& facts() const { return facts_; }
  const std::string& path() const { return file_.path(); }
  size_t bytes() const { return file_.size(); }

  // The config's values that count are those the file was prepared for; else InvalidArgument that
  // names the first difference.
  Status CheckConfig(const std::vector<std::pair<std::string, std::string>>& config) const;

  // The same for the task that is asked for, or empty.
  Status CheckTask(const std::string& task) const;

  // Checks the tensors, and makes an encoder that reads them in place.
  Result<std::unique_ptr<Encoder>> MakeEncoder(EncoderSpec spec) const;

  // The whole file against its checksums.
  Status Verify() const;

 private:
  explicit PreparedFile(MappedFile file) : file_(std::move(file)) {}
  Status ReadFacts();
  Status CheckHeader() const;
  const TensorInfo* Find(std::string_view name) const;
  const uint8_t* Bytes(const TensorInfo& tensor) const;
  Status CheckTensor(const TensorInfo& tensor) const;
  Status Bind(EncoderTensor& tensor) const;
  std::string Metadata(std::string_view key) const;

  MappedFile file_;
  SafetensorsHeader header_;
  PreparedFacts facts_;
  std::vector<std::pair<std::string, uint64_t>> checksums_;  // by name, sorted
};

// Writes the file through `write`, from front to back. Unsupported if the encoder has what the
// format cannot hold.
Status WritePrepared(const Encoder& encoder, const PreparedFacts& facts,
                     const std::function<Status(std::string_view bytes)>& write);

// A source of the original names and shapes whose values are no longer there.
std::shared_ptr<const TensorSource> OriginalNames(std::shared_ptr<const PreparedFile> file);

}  // namespace pozor

#endif  // POZOR_MODELS_PREPARED_H_
