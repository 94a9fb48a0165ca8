// Looks for infinities and NaNs among stored weights.
#ifndef POZOR_MODELS_FORMATS_FINITE_H_
#define POZOR_MODELS_FORMATS_FINITE_H_

#include <set>

#include "engine/weights.h"
#include "pozor/status.h"

namespace pozor {

// Corrupt, with the tensor's name, if a tensor holds a value that is not finite or no number at
// all. Those `left_out` are not looked at. Gives the pages back as it goes.
Status CheckFinite(const TensorSource& source, const std::set<const TensorInfo*>& left_out);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_FINITE_H_
