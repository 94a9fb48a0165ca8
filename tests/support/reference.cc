#include "tests/support/reference.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace pozor::test {
namespace {

double Sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

struct Named {
  Activation activation;
  const char* name;
};
constexpr Named kActivations[] = {
    {Activation::kNone, "none"},
    {Activation::kGelu, "gelu"},
    {Activation::kGeluTanh, "gelu_tanh"},
    {Activation::kQuickGelu, "quick_gelu"},
    {Activation::kRelu, "relu"},
    {Activation::kRelu6, "relu6"},
    {Activation::kReluSquared, "relu2"},
    {Activation::kLeakyRelu, "leaky_relu"},
    {Activation::kSilu, "silu"},
    {Activation::kTanh, "tanh"},
    {Activation::kSigmoid, "sigmoid"},
    {Activation::kMish, "mish"},
    {Activation::kElu, "elu"},
};

}  // namespace

double ReferenceActivation(Activation activation, double x) {
  switch (activation) {
    case Activation::kNone:
      return x;
    case Activation::kGelu:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case Activation::kGeluTanh:
      return x * Sigmoid(2.0 * std::sqrt(2.0 / M_PI) * (x + 0.044715 * x * x * x));
    case Activation::kQuickGelu:
      return x * Sigmoid(1.702 * x);
    case Activation::kRelu:
      return std::max(x, 0.0);
    case Activation::kRelu6:
      return std::clamp(x, 0.0, 6.0);
    case Activation::kReluSquared:
      return std::max(x, 0.0) * std::max(x, 0.0);
    case Activation::kLeakyRelu:
      return x > 0.0 ? x : 0.01 * x;
    case Activation::kSilu:
      return x * Sigmoid(x);
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSigmoid:
      return Sigmoid(x);
    case Activation::kMish:
      return x * std::tanh(std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))));
    case Activation::kElu:
      return x > 0.0 ? x : std::expm1(x);
  }
  return std::nan("");
}

std::vector<Activation> AllActivations() {
  std::vector<Activation> all;
  for (const Named& row : kActivations) all.push_back(row.activation);
  return all;
}

const char* ActivationName(Activation activation) {
  for (const Named& row : kActivations) {
    if (row.activation == activation) return row.name;
  }
  return "?";
}

double ExpectedElement(const GemmEpilogue& epilogue, double acc, double residual, size_t column) {
  double x = acc;
  if (epilogue.bias != nullptr) x += static_cast<double>(epilogue.bias[column]);
  if (column < epilogue.scaled_columns) x *= static_cast<double>(epilogue.scale);
  x = ReferenceActivation(epilogue.activation, x);
  return epilogue.residual != nullptr ? x + residual : x;
}

float NearestBf16(float x) {
  if (!std::isfinite(x)) return x;
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const float toward_zero = std::bit_cast<float>(bits & 0xFFFF0000u);
  const float away = std::bit_cast<float>((bits & 0xFFFF0000u) + 0x10000u);
  const double exact = std::abs(static_cast<double>(x));
  const double low = std::abs(static_cast<double>(toward_zero));
  // Beyond the largest bf16 the next step of the grid would be infinity.
  const double high = std::isinf(away) ? std::ldexp(1.0, 128) : std::abs(static_cast<double>(away));
  const double middle = (low + high) / 2;
  if (exact != middle) return exact < middle ? toward_zero : away;
  return (bits >> 16) % 2 == 0 ? toward_zero : away;
}

std::vector<double> ReferenceProduct(const float* a, size_t a_stride, size_t m,
                                     const WeightView& weight) {
  std::vector<double> c(m * weight.n);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < weight.n; ++j) {
      double sum = 0.0;
      for (size_t k = 0; k < weight.k; ++k) {
        sum += static_cast<double>(a[i * a_stride + k]) *
               static_cast<double>(weight.data[k * weight.k_stride + j * weight.n_stride]);
      }
      c[i * weight.n + j] = sum;
    }
  }
  return c;
}

std::vector<float> FusedProduct(const float* a, size_t a_stride, size_t m,
                                const WeightView& weight) {
  std::vector<float> c(m * weight.n);
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = 0; j < weight.n; ++j) {
      float sum = 0.0f;
      for (size_t k = 0; k < weight.k; ++k) {
        sum = std::fma(a[i * a_stride + k], weight.data[k * weight.k_stride + j * weight.n_stride],
                       sum);
      }
      c[i * weight.n + j] = sum;
    }
  }
  return c;
}

}  // namespace pozor::test
