// Where a model lies.
#ifndef POZOR_MODELS_LOCATE_H_
#define POZOR_MODELS_LOCATE_H_

#include <string>

#include "pozor/status.h"

namespace pozor {

struct ModelPlace {
  std::string folder;
  std::string weights;  // the weight file in it that the name meant; empty: any
};

// The folder of a model: `name` itself if it is a folder (or a weight file in one), else
//   $POZOR_HOME/models/<name>                      (default ~/.cache/pozor)
//   <cache>/models--<org>--<name>/snapshots/<rev>  (HF_HUB_CACHE, HF_HOME/hub, ~/.cache/...),
// where a name without an organisation is sentence-transformers, or else that of the only
// organisation that has it. NotFound says where it looked.
Result<ModelPlace> LocateModelPlace(const std::string& name);

// The folder alone.
Result<std::string> LocateModel(const std::string& name);

// $POZOR_HOME, or ~/.cache/pozor.
std::string PozorHome();

}  // namespace pozor

#endif  // POZOR_MODELS_LOCATE_H_
