// The weights of a folder, whatever their format.
#ifndef POZOR_MODELS_FORMATS_WEIGHTS_H_
#define POZOR_MODELS_FORMATS_WEIGHTS_H_

#include <memory>
#include <string>
#include <vector>

#include "engine/weights.h"
#include "models/formats/folder.h"
#include "pozor/status.h"

namespace pozor {

// model.safetensors, or the shards of model.safetensors.index.json. A folder that has weights in
// another format only is refused by that format's name.
Result<std::shared_ptr<const TensorSource>> OpenWeights(const ModelFolder& folder,
                                                        std::vector<std::string>* warnings);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_WEIGHTS_H_
