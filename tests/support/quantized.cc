#include "tests/support/quantized.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pozor::test {
namespace {

constexpr uint8_t kGuardByte = 0xA5;
constexpr size_t kGuardBytes = 64;

// First index of a 64-byte boundary at or behind `from`.
template <class T>
size_t Aligned(const std::vector<T>& values, size_t from) {
  const auto address = reinterpret_cast<uintptr_t>(values.data() + from);
  return from + (64 - address % 64) % 64 / sizeof(T);
}

}  // namespace

QuantizedBuffer::QuantizedBuffer(size_t rows, size_t cols, size_t groups)
    : rows_(rows),
      stride_(QuantizedStride(cols)),
      groups_(groups),
      values_(rows * stride_ + 4 * kGuardBytes, kGuardByte),
      scales_(rows * groups) {
  first_ = Aligned(values_, kGuardBytes);
}

bool QuantizedBuffer::GuardsIntact() const {
  for (size_t i = 0; i < values_.size(); ++i) {
    const bool inside = i >= first_ && i < first_ + rows_ * stride_;
    if (!inside && values_[i] != kGuardByte) return false;
  }
  return true;
}

RowScale ReferenceQuantize(std::span<const float> x, uint8_t* q) {
  float low = 0, high = 0;
  bool finite = true;
  for (const float value : x) {
    finite = finite && std::isfinite(value);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  const float width = high - low;
  if (!finite || width > 3e38f) return {std::numeric_limits<float>::quiet_NaN(), 0};
  const bool zero = width < 1e-35f;
  const float inverse = zero ? 0.0f : 255.0f / width;
  RowScale scale;
  scale.scale = zero ? 0.0f : width * (1.0f / 255.0f);
  scale.zero = static_cast<int32_t>(std::nearbyint(-low * inverse));
  for (size_t i = 0; i < x.size(); ++i) {
    const double exact = static_cast<double>(x[i]) * static_cast<double>(inverse);
    const int rounded = static_cast<int>(std::nearbyint(exact)) + scale.zero;
    q[i] = static_cast<uint8_t>(std::clamp(rounded, 0, 255));
  }
  return scale;
}

ReferenceWeights ReferenceQuantizeWeights(const WeightView& weight, size_t split) {
  ReferenceWeights out;
  out.k = weight.k, out.n = weight.n, out.split = split;
  out.values.resize(weight.k * weight.n);
  for (size_t g = 0; g < (split == 0 ? 1u : 2u); ++g) {
    const size_t begin = g == 0 ? 0 : split, end = g == 0 && split != 0 ? split : weight.k;
    for (size_t n = 0; n < weight.n; ++n) {
      float max = 0;
      bool finite = true;
      const auto element = [&](size_t k) {
        return weight.data[k * weight.k_stride + n * weight.n_stride];
      };
      for (size_t k = begin; k < end; ++k) {
        finite = finite && std::isfinite(element(k));
        max = std::max(max, std::abs(element(k)));
      }
      const float scale = !finite        ? std::numeric_limits<float>::quiet_NaN()
                          : max < 1e-35f ? 0.0f
                                         : max / 127.0f;
      int32_t sum = 0;
      for (size_t k = begin; k < end; ++k) {
        const bool usable = finite && scale != 0;
        const float rounded = usable ? std::nearbyint(element(k) / scale) : 0.0f;
        const int value = std::clamp(static_cast<int>(rounded), -127, 127);
        out.values[n * weight.k + k] = static_cast<int8_t>(value);
        sum += value;
      }
      out.scales.push_back(scale);
      out.sums.push_back(sum);
    }
  }
  return out;
}

void PackedS8Buffer::Allocate(size_t k, size_t n, size_t split) {
  matrix_ = {.layout = PackedLayout::kS8x16x4, .k = k, .n = n, .split = split};
  const size_t columns = matrix_.panel_count() * kPanelColumns * matrix_.groups();
  panels_.assign(matrix_.panel_count() * PackedPanelBytes(matrix_.layout, k) + 64, 0);
  scales_.assign(columns + 16, 0);
  sums_.assign(columns + 16, 0);
  out_ = {panels_.data() + Aligned(panels_, 0), scales_.data() + Aligned(scales_, 0),
          sums_.data() + Aligned(sums_, 0)};
  matrix_.panels = out_.panels;
  matrix_.column_scales = out_.column_scales;
  matrix_.column_sums = out_.column_sums;
}

PackedS8Buffer::PackedS8Buffer(const WeightView& weight, size_t split) {
  Allocate(weight.k, weight.n, split);
  PackS8(weight, nullptr, weight.n, split, 0, matrix_.panel_count(), out_);
  Bound();
}

void PackedS8Buffer::Bound() {
#if defined(__x86_64__)
  if (matrix_.k > kMaxBoundedInputs) return;
  const size_t panel_bytes = PackedPanelBytes(matrix_.layout, matrix_.k);
  const size_t panels = matrix_.panel_count();
  bounded_panels_.assign(panels * panel_bytes + 64, 0);
  int8_t* bounded = bounded_panels_.data() + Aligned(bounded_panels_, 0);
  std::vector<RestFour> found(MaxRestFours(matrix_.k)), scratch(MaxRestFours(matrix_.k));
  std::vector<uint32_t> counts(matrix_.groups());
  starts_ = {0};
  for (size_t p = 0; p < panels; ++p) {
    const size_t count = BoundPanel({.matrix = &matrix_,
                                     .panel = p,
                                     .bounded = bounded + p * panel_bytes,
                                     .counts = counts.data(),
                                     .rests = found.data(),
                                     .scratch = scratch.data()});
    rests_.insert(rests_.end(), found.begin(), found.begin() + static_cast<ptrdiff_t>(count));
    for (const uint32_t of_group : counts) starts_.push_back(starts_.back() + of_group);
  }
  bounded_ = std::make_unique<BoundedS8>(BoundedS8{bounded, starts_.data(), rests_.data()});
  matrix_.bounded = bounded_.get();
#endif
}

PackedS8Buffer::PackedS8Buffer(const ReferenceWeights& weights) {
  Allocate(weights.k, weights.n, weights.split);
  const size_t padded_n = matrix_.panel_count() * kPanelColumns;
  for (size_t n = 0; n < weights.n; ++n) {
    for (size_t k = 0; k < weights.k; ++k) {
      out_.panels[PackedS8Index(weights.k, k, n)] = weights.values[n * weights.k + k];
    }
    for (size_t g = 0; g < matrix_.groups(); ++g) {
      out_.column_scales[g * padded_n + n] = weights.scales[g * weights.n + n];
      out_.column_sums[g * padded_n + n] = weights.sums[g * weights.n + n];
    }
  }
  Bound();
}

std::vector<float> ReferenceS8Product(const QuantizedRows& rows, size_t m,
                                      const ReferenceWeights& weights, const float* bias) {
  std::vector<float> out(m * weights.n);
  for (size_t i = 0; i < m; ++i) {
    for (size_t n = 0; n < weights.n; ++n) {
      float x = bias == nullptr ? 0.0f : bias[n];
      for (size_t g = 0; g < rows.groups; ++g) {
        const bool last = g + 1 == rows.groups;
        const size_t begin = g == 0 ? 0 : weights.split, end = last ? weights.k : weights.split;
        const RowScale& scale = rows.scales[i * rows.groups + g];
        int64_t sum = 0;
        for (size_t k = begin; k < end; ++k) {
          sum += int64_t{rows.values[i * rows.stride + k]} * weights.values[n * weights.k + k];
        }
        sum -= int64_t{scale.zero} * weights.sums[g * weights.n + n];
        const float scaled = static_cast<float>(sum) * weights.scales[g * weights.n + n];
        x = last ? std::fma(scaled, scale.scale, x) : scaled * scale.scale + x;
      }
      out[i * weights.n + n] = x;
    }
  }
  return out;
}

}  // namespace pozor::test
