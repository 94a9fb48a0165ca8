// Slow twins of the int8 kernels: plain loops, std::fma, and integers as wide as they come.
#ifndef POZOR_TESTS_SUPPORT_QUANTIZED_H_
#define POZOR_TESTS_SUPPORT_QUANTIZED_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "kernels/bounded.h"
#include "kernels/gemm.h"
#include "kernels/pack.h"
#include "kernels/quantize.h"

namespace pozor::test {

// Quantised rows with memory of their own, as QuantizeRows wants it.
class QuantizedBuffer {
 public:
  QuantizedBuffer(size_t rows, size_t cols, size_t groups);

  QuantizedRows view() { return {values_.data() + first_, stride_, scales_.data(), groups_}; }
  const uint8_t* row(size_t r) const { return values_.data() + first_ + r * stride_; }
  std::span<const RowScale> scales() const { return scales_; }
  std::vector<RowScale>& mutable_scales() { return scales_; }

  // True if no byte was written outside the rows.
  bool GuardsIntact() const;

 private:
  size_t rows_, stride_, groups_, first_;
  std::vector<uint8_t> values_;
  std::vector<RowScale> scales_;
};

// One group of one row by the formulas of kernels/quantize.h.
RowScale ReferenceQuantize(std::span<const float> x, uint8_t* q);

// Unpacked s8 weights [n, k] with their scales and sums [groups, n].
struct ReferenceWeights {
  size_t k = 0, n = 0, split = 0;
  std::vector<int8_t> values;
  std::vector<float> scales;
  std::vector<int32_t> sums;
};
ReferenceWeights ReferenceQuantizeWeights(const WeightView& weight, size_t split);

// A packed s8 matrix with memory of its own, on x86 also in two parts.
class PackedS8Buffer {
 public:
  PackedS8Buffer(const WeightView& weight, size_t split);
  // Packs integers that were rounded elsewhere.
  explicit PackedS8Buffer(const ReferenceWeights& weights);

  PackedS8Buffer(PackedS8Buffer&&) = default;
  PackedS8Buffer& operator=(PackedS8Buffer&&) = default;

  const PackedMatrix& matrix() const { return matrix_; }

 private:
  void Allocate(size_t k, size_t n, size_t split);
  void Bound();
  PackedS8 out_;
  std::vector<int8_t> panels_;
  std::vector<float> scales_;
  std::vector<int32_t> sums_;
  PackedMatrix matrix_;
  std::vector<int8_t> bounded_panels_;
  std::vector<uint32_t> starts_;
  std::vector<RestFour> rests_;
  std::unique_ptr<BoundedS8> bounded_;
};

// What a product leaves in place of `acc + bias`: [m, n], by the formulas of kernels/gemm.h.
std::vector<float> ReferenceS8Product(const QuantizedRows& rows, size_t m,
                                      const ReferenceWeights& weights, const float* bias);

}  // namespace pozor::test

#endif  // POZOR_TESTS_SUPPORT_QUANTIZED_H_
