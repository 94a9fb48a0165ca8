// What a configuration says of rotary position embeddings.
#ifndef POZOR_MODELS_ARCHITECTURES_ROTARY_H_
#define POZOR_MODELS_ARCHITECTURES_ROTARY_H_

#include <string_view>

#include "engine/spec.h"
#include "models/config.h"

namespace pozor {

struct RotaryKeys {
  // The member of rope_parameters that holds for these layers, if there are several kinds.
  std::string_view layer_type = "full_attention";
  // Keys of files without rope_parameters.
  std::string_view theta = "rope_theta";
  double absent_theta = 10000;
  std::string_view scaling = "rope_scaling";  // empty: these layers have none
};

// The rotation of heads of `head_dim` columns, in the keys of transformers 5 (rope_parameters) or
// of those before it. Refuses scalings other than a constant factor.
RotarySpec ReadRotary(Config& config, size_t head_dim, const RotaryKeys& keys = {});

}  // namespace pozor

#endif  // POZOR_MODELS_ARCHITECTURES_ROTARY_H_
