// pytorch_model.bin: what torch.save writes, as a zip archive or in the legacy form of before 2020.
#ifndef POZOR_MODELS_FORMATS_TORCH_FILE_H_
#define POZOR_MODELS_FORMATS_TORCH_FILE_H_

#include <memory>
#include <span>
#include <string>

#include "engine/weights.h"
#include "pozor/status.h"

namespace pozor {

// Maps a file that holds a dictionary of tensors. Storages are used in place, views and strides
// included; nothing in the file is executed.
Result<std::shared_ptr<const TensorSource>> OpenTorchFile(const std::string& path);

// The same of bytes in memory, which must outlive the source.
Result<std::shared_ptr<const TensorSource>> ReadTorchBytes(std::span<const uint8_t> bytes,
                                                           const std::string& name);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_TORCH_FILE_H_
