#include "engine/smoothing.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kernels/check.h"

namespace pozor {
namespace {

constexpr double kAlpha = 0.6;
constexpr double kLeast = 1e-3, kMost = 1e3;

// Element (k, n) of f32 panels [n/16][k][16].
float PanelElement(const PackedMatrix& matrix, size_t k, size_t n) {
  const float* panel =
      static_cast<const float*>(matrix.panels) + n / kPanelColumns * matrix.k * kPanelColumns;
  return panel[k * kPanelColumns + n % kPanelColumns];
}

// max |W_j| over all outputs of all products.
std::vector<float> LargestWeights(std::span<PlainProduct* const> products, size_t in) {
  std::vector<float> largest(in, 0.0f);
  for (const PlainProduct* product : products) {
    for (size_t n = 0; n < product->out; ++n) {
      const float* row = product->Row(n);
      for (size_t j = 0; j < in; ++j) largest[j] = std::max(largest[j], std::fabs(row[j]));
    }
  }
  return largest;
}

}  // namespace

PlainProduct Unpack(const Linear& f32) {
  PlainProduct product;
  if (!f32.present()) return product;
  const PackedMatrix& matrix = f32.matrix();
  POZOR_CHECK(matrix.layout == PackedLayout::kF32x16);
  product.in = matrix.k;
  product.out = matrix.n;
  product.activation = f32.activation();
  product.weight.resize(product.out * product.in);
  product.bias.assign(product.out, 0.0f);
  for (size_t n = 0; n < product.out; ++n) {
    float* row = product.Row(n);
    for (size_t k = 0; k < product.in; ++k) row[k] = PanelElement(matrix, k, n);
  }
  if (f32.bias() != nullptr) std::copy_n(f32.bias(), product.out, product.bias.begin());
  return product;
}

// An input that never moves, or that no output reads, needs no scale and takes no part in the mean.
Smoothing ChooseSmoothing(const ChannelStatistics& input, std::span<PlainProduct* const> products) {
  const size_t in = input.sum.size();
  const std::vector<float> largest = LargestWeights(products, in);
  Smoothing smoothing;
  smoothing.centre.resize(in);
  std::vector<double> scales(in, 0.0);
  double sum_of_logs = 0;
  size_t moving = 0;
  for (size_t j = 0; j < in; ++j) {
    const float c = smoothing.centre[j] = input.Mean(j);
    const double reach = std::max(std::fabs(input.max[j] - c), std::fabs(input.min[j] - c));
    if (!(reach > 0) || !(largest[j] > 0)) continue;
    scales[j] = std::pow(reach, kAlpha) / std::pow(double{largest[j]}, 1 - kAlpha);
    sum_of_logs += std::log(scales[j]);
    ++moving;
  }
  const double mean = moving == 0 ? 1 : std::exp(sum_of_logs / static_cast<double>(moving));
  for (const double scale : scales) {
    const double s = scale > 0 ? std::clamp(scale / mean, kLeast, kMost) : 1.0;
    smoothing.scale.push_back(static_cast<float>(s));
  }
  return smoothing;
}

void ApplySmoothing(const Smoothing& smoothing, PlainProduct* product) {
  for (size_t n = 0; n < product->out; ++n) {
    float* row = product->Row(n);
    double moved = product->bias[n];
    for (size_t j = 0; j < product->in; ++j) {
      moved += double{row[j]} * double{smoothing.centre[j]};
      row[j] *= smoothing.scale[j];
    }
    product->bias[n] = static_cast<float>(moved);
  }
}

std::vector<size_t> OrderByRange(const ChannelStatistics& input) {
  std::vector<size_t> order(input.sum.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return input.Largest(a) > input.Largest(b); });
  return order;
}

void PermuteOutputs(std::span<const size_t> order, PlainProduct* product) {
  const PlainProduct old = *product;
  for (size_t n = 0; n < order.size(); ++n) {
    std::copy_n(old.Row(order[n]), product->in, product->Row(n));
    product->bias[n] = old.bias[order[n]];
  }
}

void PermuteInputs(std::span<const size_t> order, PlainProduct* product) {
  std::vector<float> old(product->in);
  for (size_t n = 0; n < product->out; ++n) {
    float* row = product->Row(n);
    std::copy_n(row, product->in, old.begin());
    for (size_t k = 0; k < order.size(); ++k) row[k] = old[order[k]];
  }
}

}  // namespace pozor
