// y = activation(x W^T + b) with the weight packed once.
#ifndef POZOR_ENGINE_LINEAR_H_
#define POZOR_ENGINE_LINEAR_H_

#include <cstddef>
#include <span>

#include "engine/memory.h"
#include "engine/spec.h"
#include "engine/weights.h"
#include "kernels/activation.h"
#include "kernels/gemm.h"
#include "kernels/pack.h"
#include "kernels/types.h"
#include "pozor/status.h"

namespace pozor {

// One of the weights that stand side by side in a packed matrix. Its outputs form groups of `group`
// columns, and each group is padded with zero columns to `padded_group`: Q, K and V of a layer are
// three blocks with a group a head, padded to a multiple of 16.
struct LinearBlock {
  const LinearRef* ref = nullptr;
  size_t out = 0;           // outputs, a multiple of `group`
  size_t group = 0;         // 0: one group of all outputs, not padded
  size_t padded_group = 0;  // a multiple of 16 unless group is 0

  size_t packed_columns() const { return group == 0 ? out : out / group * padded_group; }
};

class Linear {
 public:
  Linear() = default;

  // A layer with memory of its own, for heads: reads and packs `ref` [out, in].
  // NotFound or Corrupt if the file does not have it in this shape.
  static Result<Linear> Create(WeightReader& weights, const LinearRef& ref, size_t in, size_t out,
                               Activation activation = Activation::kNone);

  // The same with several weights side by side, in memory of `arena` (PackedBytes of it), in any
  // layout that PackPlain knows.
  static Result<Linear> CreateIn(Workspace& arena, WeightReader& weights,
                                 std::span<const LinearBlock> blocks, size_t in,
                                 Activation activation = Activation::kNone,
                                 PackedLayout layout = PackedLayout::kF32x16);

  // What is packed already, in memory that outlives this. `bias`: [panels * 16], or null.
  static Linear FromPacked(const PackedMatrix& matrix, const float* bias, Activation activation);

  // Takes the tensors of `block` from `weights`: they exist and have the right shapes.
  static Status Check(WeightReader& weights, const LinearBlock& block, size_t in);

  // Bytes that a packed matrix and its bias take.
  static size_t PackedBytes(size_t in, size_t packed_columns,
                            PackedLayout layout = PackedLayout::kF32x16);

  bool present() const { return matrix_.panels != nullptr; }
  size_t in() const { return matrix_.k; }
  size_t out() const { return matrix_.n; }  // packed columns
  size_t panels() const { return matrix_.panel_count(); }
  const PackedMatrix& matrix() const { return matrix_; }
  const float* bias() const { return bias_; }
  Activation activation() const { return activation_; }
  // `bounded` of the same weights outlives this.
  void SetBounded(const BoundedS8* bounded) { matrix_.bounded = bounded; }
  bool is_int8() const { return matrix_.layout == PackedLayout::kS8x16x4; }

  // The same weights once more; they belong to this.
  Linear Alias() const {
    Linear alias;
    alias.matrix_ = matrix_;
    alias.bias_ = bias_;
    alias.activation_ = activation_;
    return alias;
  }

  // out = activation(x W^T + b): x [rows, in], out [rows, out]; any strides; not in place.
  void Apply(MatView<const float> x, MatView<float> out) const;

  // Arguments of the product with bias and activation filled in; the caller sets where the result
  // goes and may narrow panels or add residual, scale and split. An int8 layer takes rows that are
  // quantised, the others rows as they are.
  GemmArgs Arguments(MatView<const float> x) const;
  GemmArgs Arguments(const QuantizedRows& x, size_t rows) const;

 private:
  PackedMatrix matrix_;
  const float* bias_ = nullptr;  // [panels * 16], or null
  Activation activation_ = Activation::kNone;
  AlignedBuffer own_;
};

}  // namespace pozor

#endif  // POZOR_ENGINE_LINEAR_H_
