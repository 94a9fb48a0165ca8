// Int8 weights in two parts, for tiers that multiply faster by them (kernels/bounded.h).
#ifndef POZOR_ENGINE_BOUNDED_WEIGHTS_H_
#define POZOR_ENGINE_BOUNDED_WEIGHTS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/encoder.h"
#include "engine/memory.h"
#include "kernels/bounded.h"
#include "pozor/status.h"

namespace pozor {

// Both parts of one matrix. What `view` points to stays where it is when this is moved.
class BoundedWeights {
 public:
  // `matrix`: kS8x16x4, at most kMaxBoundedInputs inputs. Throws std::bad_alloc.
  explicit BoundedWeights(const PackedMatrix& matrix);

  BoundedS8 view() const;

 private:
  AlignedBuffer panels_;
  std::vector<uint32_t> starts_;
  std::vector<RestFour> rests_;
};

// Weights that were read and are not read again soon.
using ReleaseFunction = std::function<void(const void* data, size_t bytes)>;

// Gives every int8 product of the model its bounded weights if the active tier is one that prefers
// them. `release`, or null, gets the packed weights that the copies stand for, from any thread.
// `threads` 0: those that the machine grants. ResourceExhausted.
Status BoundInt8Weights(Encoder::Impl& model, const ReleaseFunction& release, size_t threads);

}  // namespace pozor

#endif  // POZOR_ENGINE_BOUNDED_WEIGHTS_H_
