// A model in several weight files: an index says which tensor is in which file.
#ifndef POZOR_MODELS_FORMATS_SHARDED_H_
#define POZOR_MODELS_FORMATS_SHARDED_H_

#include <memory>
#include <string>
#include <vector>

#include "engine/weights.h"
#include "models/formats/folder.h"
#include "pozor/status.h"

namespace pozor {

using OpenShard = Result<std::shared_ptr<const TensorSource>> (*)(const std::string& path);

// `index` names a JSON file of the folder with {"weight_map": {tensor: file}}; every file it names
// is opened. A tensor that it promises and no file holds is a warning: whoever needs it will say.
Result<std::shared_ptr<const TensorSource>> OpenShards(const ModelFolder& folder,
                                                       const std::string& index, OpenShard open,
                                                       std::vector<std::string>* warnings);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_SHARDED_H_
