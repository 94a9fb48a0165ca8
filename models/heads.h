// What turns a text's hidden rows into its vector: pooling, dense layers, norms, unit length.
#ifndef POZOR_MODELS_HEADS_H_
#define POZOR_MODELS_HEADS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "engine/memory.h"
#include "engine/spec.h"
#include "engine/weights.h"
#include "kernels/activation.h"
#include "kernels/pack.h"
#include "kernels/pool.h"
#include "kernels/types.h"
#include "pozor/status.h"

namespace pozor {

// y = activation(x W^T + b), f32.
class DenseLayer {
 public:
  struct Shape {
    size_t inputs = 0;
    size_t outputs = 0;
    Activation activation = Activation::kNone;
  };

  // Takes the weight [outputs, inputs] and, if `bias` is not empty, the bias [outputs].
  static Result<DenseLayer> Load(WeightReader& weights, const std::string& weight,
                                 const std::string& bias, const Shape& shape);

  size_t inputs() const { return shape_.inputs; }
  size_t outputs() const { return shape_.outputs; }

  // x: [inputs], y: [outputs], different buffers.
  void Apply(const float* x, float* y) const;

 private:
  Shape shape_;
  AlignedBuffer panels_;
  AlignedBuffer bias_;  // [panels * 16], or empty
};

enum class HeadKind : uint8_t { kDense, kLayerNorm, kNormalize };

// One module after the pooling.
struct HeadStep {
  HeadKind kind = HeadKind::kNormalize;
  DenseLayer dense;
  std::vector<float> gamma, beta;  // kLayerNorm
  float epsilon = 1e-5f;           // kLayerNorm
};

// What a caller may change about a vector.
struct VectorOptions {
  size_t truncate_dim = 0;  // keep the first numbers; 0: all
  bool normalize = false;   // unit length at the very end
};

// The way from hidden rows to a vector.
struct Head {
  std::vector<Pooling> poolings;  // results stand side by side
  std::vector<HeadStep> steps;
  size_t hidden = 0;        // columns of the rows
  size_t dimensions = 0;    // of the vector before truncation
  bool normalizes = false;  // ends with unit length

  // Rows [first, hidden.rows) are pooled; out: [options.truncate_dim or dimensions].
  void Apply(MatView<const float> rows, size_t first, const VectorOptions& options,
             float* out) const;
};

// "mean", "max", ...
const char* PoolingName(Pooling pooling);

}  // namespace pozor

#endif  // POZOR_MODELS_HEADS_H_
