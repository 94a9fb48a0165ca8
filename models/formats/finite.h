// Looks for infinities and NaNs among stored weights.
#ifndef POZOR_MODELS_FORMATS_FINITE_H_
#define POZOR_MODELS_FORMATS_FINITE_H_

#include <string_view>

#include "engine/weights.h"
#include "pozor/status.h"

namespace pozor {

// Corrupt, with the tensor's name, if a floating-point tensor that was taken holds a value that is
// not finite. `skip` (the word table, which is read a row at a time) is left alone. Gives the
// pages back as it goes.
Status CheckFinite(const WeightReader& weights, std::string_view skip);

}  // namespace pozor

#endif  // POZOR_MODELS_FORMATS_FINITE_H_
