// Element-wise activations, as Hugging Face's `hidden_act` names them.
#ifndef POZOR_KERNELS_ACTIVATION_H_
#define POZOR_KERNELS_ACTIVATION_H_

#include <cstddef>
#include <cstdint>

namespace pozor {

enum class Activation : uint8_t {
  kNone,
  kGelu,       // 0.5 x (1 + erf(x / sqrt 2))
  kGeluTanh,   // 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))): gelu_new, gelu_pytorch_tanh,
               // gelu_fast
  kQuickGelu,  // x sigmoid(1.702 x)
  kRelu,
  kRelu6,
  kReluSquared,
  kLeakyRelu,  // slope 0.01
  kSilu,       // x sigmoid(x)
  kTanh,
  kSigmoid,
  kMish,  // x tanh(log(1 + e^x))
  kElu,   // x > 0 ? x : e^x - 1
};

// y[i] = activation(x[i]) for i < n. x and y may be the same buffer; any alignment.
void Activate(Activation activation, const float* x, float* y, size_t n);

// y[i] = activation(gate[i]) * value[i]: gated feed-forward. Any alignment; y may be either input.
void ActivateGated(Activation activation, const float* gate, const float* value, float* y,
                   size_t n);

}  // namespace pozor

#endif  // POZOR_KERNELS_ACTIVATION_H_
