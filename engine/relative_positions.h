// Disentangled attention (He et al. 2021, DeBERTa): the table of relative positions, normed and
// projected by each layer as content is. That depends on weights alone and is done once, at load.
#ifndef POZOR_ENGINE_RELATIVE_POSITIONS_H_
#define POZOR_ENGINE_RELATIVE_POSITIONS_H_

#include <cstddef>

#include "engine/linear.h"
#include "engine/memory.h"
#include "engine/spec.h"
#include "engine/weights.h"
#include "pozor/status.h"

namespace pozor {

// What can be told without weights: sizes that fit each other, and layers that project a table only
// if there is one.
Status CheckRelativePositions(const EncoderSpec& spec);

// Columns that the scores of one head and token against all rows of the table take.
size_t RelativePositionColumns(const EncoderSpec& spec);

class RelativePositions {
 public:
  // Takes the table's tensors: they exist and have the right shapes.
  static Status Check(const EncoderSpec& spec, WeightReader& weights);

  // Reads the table and norms its rows. Without a table: an empty object.
  Status Read(const EncoderSpec& spec, WeightReader& weights);

  // Takes the tensors of a projection. NotFound or Corrupt if they are not there in this shape.
  static Status CheckProjection(const EncoderSpec& spec, WeightReader& weights,
                                const LinearRef& ref);

  // All rows of the table by one projection of a layer, times `scale`, as weights of head_dim
  // inputs: outputs [h * RelativePositionColumns, ...) score a row of head h against the table.
  // Always f32, in memory of `arena` (PackedBytes of it).
  Result<Linear> Project(const EncoderSpec& spec, WeightReader& weights, const LinearRef& ref,
                         float scale, Workspace& arena) const;

  static size_t PackedBytes(const EncoderSpec& spec);

 private:
  AlignedBuffer rows_;  // [2 * span, hidden]
};

}  // namespace pozor

#endif  // POZOR_ENGINE_RELATIVE_POSITIONS_H_
