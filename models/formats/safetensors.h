// safetensors: one mapped file.
//
// A file is `u64 n`, n bytes of JSON {name: {dtype, shape, data_offsets}}, and a buffer that the
// tensors tile without holes, overlaps or leftovers.
#ifndef POZOR_MODELS_FORMATS_SAFETENSORS_H_
#define POZOR_MODELS_FORMATS_SAFETENSORS_H_

#include <memory>
#include <string>
#include <vector>

#include "engine/weights.h"
#include "pozor/status.h"

namespace pozor {

// The longest header that the format admits.
inline constexpr size_t kMaxSafetensorsHeader = 100'000'000;

// Maps and checks one file. Read converts every floating-point type and refuses integers.
Result<std::shared_ptr<const TensorSource>> OpenSafetensors(const std::string& path);

// The raw little-endian bytes of an integer tensor as int32 (I32, or I64 within range).
Result<std::vector<int32_t>> ReadInt32(const TensorSource& source, const TensorInfo& tensor);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_SAFETENSORS_H_
