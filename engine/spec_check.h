// Whether an encoder is one that can be: sizes within bounds, parts that fit each other.
#ifndef POZOR_ENGINE_SPEC_CHECK_H_
#define POZOR_ENGINE_SPEC_CHECK_H_

#include "engine/spec.h"
#include "pozor/status.h"

namespace pozor {

// Unsupported, naming the architecture and the part. What passes makes no product of two sizes
// overflow. Tensors are checked when they are read.
Status CheckSpec(const EncoderSpec& spec);

}  // namespace pozor

#endif  // POZOR_ENGINE_SPEC_CHECK_H_
