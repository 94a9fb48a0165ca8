// Exponential and activations over vectors. The constants come from tools/fit.py.
//
// Only operations that round the same everywhere: multiply-add, multiply, add, true division,
// comparison, integer shift. A result's bits are therefore equal on every tier with fused
// multiply-add. NaN in gives NaN out. Errors stated here are those of the fused tiers against
// double precision, enforced by tests/kernels/math_test.cc and activation_test.cc.
#if defined(POZOR_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_MATH_INL_H_
#undef POZOR_KERNELS_MATH_INL_H_
#else
#define POZOR_KERNELS_MATH_INL_H_
#endif

#include "kernels/activation.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// max(low, x) and min(high, x) that keep a NaN and, of two equal zeros, x: on every target. The
// x86 instructions return their second operand in both cases, those of Arm the number.
#if HWY_ARCH_X86
HWY_INLINE VF AtLeast(DF df, float low, VF x) { return hn::Max(hn::Set(df, low), x); }
HWY_INLINE VF AtMost(DF df, float high, VF x) { return hn::Min(hn::Set(df, high), x); }
#else
HWY_INLINE VF AtLeast(DF df, float low, VF x) {
  const VF bound = hn::Set(df, low);
  return hn::IfThenElse(hn::Lt(x, bound), bound, x);
}
HWY_INLINE VF AtMost(DF df, float high, VF x) {
  const VF bound = hn::Set(df, high);
  return hn::IfThenElse(hn::Lt(bound, x), bound, x);
}
#endif

// x = n ln2 + r with integer n and |r| <= ln2 / 2 (1 + 2^-20).
//
// Adding 1.5 * 2^23 + 127 rounds x log2(e) to an integer and leaves n + 127 in the low bits, which
// a shift turns into the float 2^n. ln2 is split in two words, the first with 12 trailing zero
// bits, so that n * ln2_high is exact.
struct ExpReduction {
  static constexpr float kLog2E = 1.44269504f;
  static constexpr float kRound = 12583039.0f;
  static constexpr float kLn2High = 0.693115234f;
  static constexpr float kLn2Low = 3.19461833e-05f;
  static constexpr float kLn2 = 0.693147182f;  // in one word
};

HWY_INLINE VF ExpRound(DF df, VF x) {
  return hn::MulAdd(x, hn::Set(df, ExpReduction::kLog2E), hn::Set(df, ExpReduction::kRound));
}

HWY_INLINE VF ExpRemainder(DF df, VF x, VF rounded) {
  const VF n = hn::Sub(rounded, hn::Set(df, ExpReduction::kRound));
  const VF r = hn::NegMulAdd(n, hn::Set(df, ExpReduction::kLn2High), x);
  return hn::NegMulAdd(n, hn::Set(df, ExpReduction::kLn2Low), r);
}

HWY_INLINE VF ExpPowerOfTwo(DF df, VF rounded) {
  return hn::BitCast(df, hn::ShiftLeft<23>(hn::BitCast(DI32(), rounded)));
}

// Below this e^x is not a normal number; Exp gives 0.
inline constexpr float kExpLow = -87.33654f;

// e^x for x <= 88, -inf included: at most 2 ULP down to kExpLow, 0 below.
HWY_INLINE VF Exp(DF df, VF x) {
  const VF rounded = ExpRound(df, x);
  const VF r = ExpRemainder(df, x, rounded);
  VF p = hn::Set(df, 0.00829031505f);
  p = hn::MulAdd(p, r, hn::Set(df, 0.0418979302f));
  p = hn::MulAdd(p, r, hn::Set(df, 0.166676357f));
  p = hn::MulAdd(p, r, hn::Set(df, 0.499991506f));
  p = hn::MulAdd(p, r, hn::Set(df, 0.999999702f));
  p = hn::MulAdd(p, r, hn::Set(df, 1.0f));
  const VF e = hn::Mul(p, ExpPowerOfTwo(df, rounded));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Set(df, kExpLow)), e);
}

// e^x for x <= 0, where 14 bits of it are used: relative error at most 4e-6 down to -87; below,
// less than 2e-38.
HWY_INLINE VF ShortExp(DF df, VF x) {
  x = AtLeast(df, -87.0f, x);
  const VF rounded = ExpRound(df, x);
  const VF n = hn::Sub(rounded, hn::Set(df, ExpReduction::kRound));
  const VF r = hn::NegMulAdd(n, hn::Set(df, ExpReduction::kLn2), x);
  VF p = hn::Set(df, 0.0423805602f);
  p = hn::MulAdd(p, r, hn::Set(df, 0.16808638f));
  p = hn::MulAdd(p, r, hn::Set(df, 0.499959618f));
  p = hn::MulAdd(p, r, hn::Set(df, 0.999951541f));
  p = hn::MulAdd(p, r, hn::Set(df, 1.0f));
  return hn::Mul(p, ExpPowerOfTwo(df, rounded));
}

// e^x - 1 for x <= 0: at most 2 ULP.
HWY_INLINE VF Expm1(DF df, VF x) {
  x = AtLeast(df, -80.0f, x);
  const VF rounded = ExpRound(df, x);
  const VF r = ExpRemainder(df, x, rounded);
  VF p = hn::Set(df, 0.00138825225f);
  p = hn::MulAdd(p, r, hn::Set(df, 0.008366514f));
  p = hn::MulAdd(p, r, hn::Set(df, 0.0416672006f));
  p = hn::MulAdd(p, r, hn::Set(df, 0.166665435f));
  p = hn::MulAdd(p, r, hn::Set(df, 0.49999997f));
  p = hn::MulAdd(p, hn::Mul(r, r), r);  // e^r - 1
  const VF scale = ExpPowerOfTwo(df, rounded);
  return hn::MulAdd(p, scale, hn::Sub(scale, hn::Set(df, 1.0f)));
}

HWY_INLINE VF MinusAbs(DF df, VF x) { return hn::Or(x, hn::Set(df, -0.0f)); }

// 0.5 x (1 + erf(x / sqrt 2)): error at most 2.5e-7 + 6e-8 |result|; from |x| = 5.7 on x itself, or
// less than 1e-24.
//
// GELU(x) = max(x, 0) - a r^4 with a = |x| and r the fourth root of 0.5 erfc(a / sqrt 2). The root
// is so straight that one polynomial reaches from 0 to 5.7, where it has a root of its own; no
// table, no division, no exponential. The fourth power takes away what cancels in it at large a.
HWY_INLINE VF Gelu(DF df, VF x) {
  const VF a = AtMost(df, 5.7f, hn::Abs(x));
  VF r = hn::Set(df, -3.19517903e-06f);
  r = hn::MulAdd(r, a, hn::Set(df, 5.51163284e-05f));
  r = hn::MulAdd(r, a, hn::Set(df, -0.000285924674f));
  r = hn::MulAdd(r, a, hn::Set(df, -0.000108490989f));
  r = hn::MulAdd(r, a, hn::Set(df, 0.00393635686f));
  r = hn::MulAdd(r, a, hn::Set(df, 0.00449697487f));
  r = hn::MulAdd(r, a, hn::Set(df, -0.0501088798f));
  r = hn::MulAdd(r, a, hn::Set(df, -0.167758256f));
  r = hn::MulAdd(r, a, hn::Set(df, 0.840898633f));
  const VF square = hn::Mul(r, r);
  return hn::NegMulAdd(a, hn::Mul(square, square), AtLeast(df, 0.0f, x));
}

// factor / (1 + e^-x), by e^-|x| so that nothing overflows. As x sigmoid(x): error at most
// 1e-7 + 2e-7 |result|.
HWY_INLINE VF TimesSigmoid(DF df, VF x, VF factor) {
  const VF one = hn::Set(df, 1.0f);
  const VF e = Exp(df, MinusAbs(df, x));
  const VF numerator = hn::IfThenElse(hn::Lt(x, hn::Zero(df)), e, one);
  return hn::Div(hn::Mul(factor, numerator), hn::Add(one, e));
}

// 1 / (1 + e^-x): relative error at most 3e-7 down to the smallest normal number, then 0.
HWY_INLINE VF Sigmoid(DF df, VF x) {
  const VF one = hn::Set(df, 1.0f);
  const VF e = Exp(df, MinusAbs(df, x));
  return hn::Div(hn::IfThenElse(hn::Lt(x, hn::Zero(df)), e, one), hn::Add(one, e));
}

// tanh(x) = -m / (m + 2) with m = e^(-2|x|) - 1: relative error at most 3e-7 everywhere.
HWY_INLINE VF Tanh(DF df, VF x) {
  const VF m = Expm1(df, hn::Mul(hn::Set(df, 2.0f), MinusAbs(df, x)));
  return hn::CopySign(hn::Div(m, hn::Add(m, hn::Set(df, 2.0f))), x);
}

// 0.5 x (1 + tanh z) = x sigmoid(2 z), z = sqrt(2 / pi) (x + 0.044715 x^3): error at most
// 2.5e-7 (1 + |result|).
HWY_INLINE VF GeluTanh(DF df, VF x) {
  const VF square = hn::Mul(x, x);
  const VF slope = hn::MulAdd(square, hn::Set(df, 0.0713548163f), hn::Set(df, 1.59576912f));
  return TimesSigmoid(df, hn::Mul(x, slope), x);
}

// x tanh(log(1 + e^x)) as a quotient of polynomials in f = e^-|x|, so that nothing overflows:
// x >= 0: (1 + 2f) / (1 + 2f + 2f^2);  x < 0: (f^2 + 2f) / (f^2 + 2f + 2). Error at most
// 1e-7 + 2.5e-7 |result|.
HWY_INLINE VF Mish(DF df, VF x) {
  const VF two = hn::Set(df, 2.0f);
  const VF f = Exp(df, MinusAbs(df, x));
  const VF square = hn::Mul(f, f);
  const auto negative = hn::Lt(x, hn::Zero(df));
  const VF numerator = hn::MulAdd(two, f, hn::IfThenElse(negative, square, hn::Set(df, 1.0f)));
  const VF rest = hn::IfThenElse(negative, two, hn::Mul(two, square));
  return hn::Div(hn::Mul(x, numerator), hn::Add(numerator, rest));
}

template <Activation kActivation>
HWY_INLINE VF ActivateVector(DF df, VF x) {
  if constexpr (kActivation == Activation::kGelu) return Gelu(df, x);
  if constexpr (kActivation == Activation::kGeluTanh) return GeluTanh(df, x);
  if constexpr (kActivation == Activation::kQuickGelu) {
    return TimesSigmoid(df, hn::Mul(x, hn::Set(df, 1.702f)), x);
  }
  if constexpr (kActivation == Activation::kRelu) return AtLeast(df, 0.0f, x);
  if constexpr (kActivation == Activation::kRelu6) {
    return AtMost(df, 6.0f, AtLeast(df, 0.0f, x));
  }
  if constexpr (kActivation == Activation::kReluSquared) {
    const VF positive = AtLeast(df, 0.0f, x);
    return hn::Mul(positive, positive);
  }
  if constexpr (kActivation == Activation::kLeakyRelu) {
    return hn::IfThenElse(hn::Lt(x, hn::Zero(df)), hn::Mul(x, hn::Set(df, 0.01f)), x);
  }
  if constexpr (kActivation == Activation::kSilu) return TimesSigmoid(df, x, x);
  if constexpr (kActivation == Activation::kTanh) return Tanh(df, x);
  if constexpr (kActivation == Activation::kSigmoid) return Sigmoid(df, x);
  if constexpr (kActivation == Activation::kMish) return Mish(df, x);
  if constexpr (kActivation == Activation::kElu) {
    return hn::IfThenElse(hn::Gt(x, hn::Zero(df)), x, Expm1(df, x));
  }
  return x;
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POZOR_KERNELS_MATH_INL_H_
