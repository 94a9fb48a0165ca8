// What turns a text's hidden rows into its vector: pooling, dense layers, norms, unit length.
#ifndef POZOR_MODELS_HEADS_H_
#define POZOR_MODELS_HEADS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "engine/linear.h"
#include "kernels/pool.h"
#include "kernels/types.h"

namespace pozor {

enum class HeadKind : uint8_t { kDense, kLayerNorm, kNormalize };

// One module after the pooling.
struct HeadStep {
  HeadKind kind = HeadKind::kNormalize;
  Linear dense;                    // kDense
  std::vector<float> gamma, beta;  // kLayerNorm
  float epsilon = 1e-5f;           // kLayerNorm
};

// What a caller may change about a vector.
struct VectorOptions {
  size_t truncate_dim = 0;   // keep the first numbers; 0: all
  bool normalize = false;    // unit length at the very end, after truncation
  bool keep_length = false;  // leave out Normalize modules at the end
};

// The way from hidden rows to a vector.
struct Head {
  std::vector<Pooling> poolings;  // their results stand side by side
  std::vector<HeadStep> steps;
  size_t hidden = 0;      // columns of the rows
  size_t dimensions = 0;  // of the vector before truncation

  // Rows [first, rows.rows) are pooled; out: [options.truncate_dim or dimensions].
  void Apply(MatView<const float> rows, size_t first, const VectorOptions& options,
             float* out) const;

  // "cls + mean"
  std::string PoolingNames() const;

  bool EndsNormalized() const {
    return !steps.empty() && steps.back().kind == HeadKind::kNormalize;
  }
};

// sentence-transformers' names: "cls", "max", "mean", "mean_sqrt_len_tokens", "weightedmean",
// "lasttoken".
std::string_view PoolingName(Pooling pooling);

}  // namespace pozor

#endif  // POZOR_MODELS_HEADS_H_
