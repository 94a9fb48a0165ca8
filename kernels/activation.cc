#include "kernels/activation.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/activation.cc"
#include "hwy/foreach_target.h"
#include "kernels/math-inl.h"
#include "kernels/rows-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

template <Activation kActivation>
void ActivateRow(const float* x, const float* value, float* y, size_t n) {
  const DF df;
  if (value == nullptr) {
    MapRow(x, y, n, [df](VF v) HWY_ATTR { return ActivateVector<kActivation>(df, v); });
  } else {
    MapRow2(x, value, y, n, [df](VF gate, VF v) HWY_ATTR {
      return hn::Mul(ActivateVector<kActivation>(df, gate), v);
    });
  }
}

void ActivateAny(Activation activation, const float* x, const float* value, float* y, size_t n) {
  switch (activation) {
    case Activation::kNone:
      return ActivateRow<Activation::kNone>(x, value, y, n);
    case Activation::kGelu:
      return ActivateRow<Activation::kGelu>(x, value, y, n);
    case Activation::kGeluTanh:
      return ActivateRow<Activation::kGeluTanh>(x, value, y, n);
    case Activation::kQuickGelu:
      return ActivateRow<Activation::kQuickGelu>(x, value, y, n);
    case Activation::kRelu:
      return ActivateRow<Activation::kRelu>(x, value, y, n);
    case Activation::kRelu6:
      return ActivateRow<Activation::kRelu6>(x, value, y, n);
    case Activation::kReluSquared:
      return ActivateRow<Activation::kReluSquared>(x, value, y, n);
    case Activation::kLeakyRelu:
      return ActivateRow<Activation::kLeakyRelu>(x, value, y, n);
    case Activation::kSilu:
      return ActivateRow<Activation::kSilu>(x, value, y, n);
    case Activation::kTanh:
      return ActivateRow<Activation::kTanh>(x, value, y, n);
    case Activation::kSigmoid:
      return ActivateRow<Activation::kSigmoid>(x, value, y, n);
    case Activation::kMish:
      return ActivateRow<Activation::kMish>(x, value, y, n);
    case Activation::kElu:
      return ActivateRow<Activation::kElu>(x, value, y, n);
  }
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pozor {
HWY_EXPORT(ActivateAny);

void Activate(Activation activation, const float* x, float* y, size_t n) {
  HWY_DYNAMIC_DISPATCH(ActivateAny)(activation, x, nullptr, y, n);
}

void ActivateGated(Activation activation, const float* gate, const float* value, float* y,
                   size_t n) {
  HWY_DYNAMIC_DISPATCH(ActivateAny)(activation, gate, value, y, n);
}

}  // namespace pozor
#endif
