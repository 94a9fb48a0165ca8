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

// GELU(x) - max(x, 0) = -0.5 a erfc(a / sqrt 2) for a = |x|, in 16 pieces centred at k * 0.375:
// row p holds the factors of a^p. In the last piece GELU(x) is x or 0.
struct GeluTable {
  static constexpr float kPiecesPerUnit = 1 / 0.375f;
  static constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: leaves the piece in the low bits
  static constexpr float kEnd = 5.625f;         // the middle of the last piece
  alignas(64) static constexpr float kFactors[5][16] = {
      {0.0f, 8.8021312e-05f, 0.00498327753f, 0.0296880323f, 0.0449981652f, -0.0621636063f,
       -0.347565502f, -0.667485654f, -0.804202855f, -0.693808913f, -0.455387473f, -0.235022068f,
       -0.0974399075f, -0.0329391845f, -0.00917772949f, 0.0f},
      {-0.500000417f, -0.501310706f, -0.533847332f, -0.639004946f, -0.69043237f, -0.44221133f,
       0.110276185f, 0.639212489f, 0.83824867f, 0.70191282f, 0.434145063f, 0.209384814f,
       0.0810271725f, 0.0256042071f, 0.00668551959f, 0.0f},
      {0.398963213f, 0.406285375f, 0.488792628f, 0.658004582f, 0.722515464f, 0.506505787f,
       0.104769558f, -0.223558113f, -0.33227095f, -0.26910758f, -0.156272158f, -0.0702666342f,
       -0.0253430046f, -0.00747899245f, -0.00182897469f, 0.0f},
      {-0.000295838079f, -0.0188422222f, -0.113690346f, -0.235688627f, -0.27153042f, -0.187822595f,
       -0.0577753484f, 0.0329090878f, 0.0593116544f, 0.046300929f, 0.0251566507f, 0.0105231376f,
       0.00353267672f, 0.000972813694f, 0.000222688031f, 0.0f},
      {-0.065094538f, -0.0466780327f, -0.00490204617f, 0.028345637f, 0.0357915945f, 0.0236027222f,
       0.00778966071f, -0.00161372172f, -0.0040193703f, -0.00301397522f, -0.0015273079f,
       -0.000593197416f, -0.000185135155f, -4.7536294e-05f, -1.01806954e-05f, 0.0f},
  };
};

// table[piece] in every lane; `piece` is exact in its low four bits, other bits may be anything.
template <class VI>
HWY_INLINE VF LookupPiece(DF df, const float* HWY_RESTRICT table, VI piece) {
  const DI32 di;
  if constexpr (kLanes == 16) {
    // The permutation itself looks at no other bits; Highway's debug assertion does.
    if constexpr (HWY_IS_DEBUG_BUILD) piece = hn::And(piece, hn::Set(di, 15));
    return hn::TableLookupLanes(hn::Load(df, table), hn::IndicesFromVec(df, piece));
  } else if constexpr (kLanes == 8) {
    if constexpr (HWY_IS_DEBUG_BUILD) piece = hn::And(piece, hn::Set(di, 15));
    return hn::TwoTablesLookupLanes(df, hn::Load(df, table), hn::Load(df, table + 8),
                                    hn::IndicesFromVec(df, piece));
  } else {
    const auto index = hn::IndicesFromVec(df, hn::And(piece, hn::Set(di, 7)));
    const VF low =
        hn::TwoTablesLookupLanes(df, hn::Load(df, table), hn::Load(df, table + 4), index);
    const VF high =
        hn::TwoTablesLookupLanes(df, hn::Load(df, table + 8), hn::Load(df, table + 12), index);
    const auto upper_half = hn::TestBit(piece, hn::Set(di, 8));
    return hn::IfThenElse(hn::RebindMask(df, upper_half), high, low);
  }
}

// 0.5 x (1 + erf(x / sqrt 2)): error at most 4e-7 + 6e-8 |result|; x or 0 exactly from |x|
// = 5.4375.
HWY_INLINE VF Gelu(DF df, VF x) {
  const VF a = AtMost(df, GeluTable::kEnd, hn::Abs(x));
  const VF rounded =
      hn::MulAdd(a, hn::Set(df, GeluTable::kPiecesPerUnit), hn::Set(df, GeluTable::kRound));
  const auto piece = hn::BitCast(DI32(), rounded);
  VF p = LookupPiece(df, GeluTable::kFactors[4], piece);
  p = hn::MulAdd(p, a, LookupPiece(df, GeluTable::kFactors[3], piece));
  p = hn::MulAdd(p, a, LookupPiece(df, GeluTable::kFactors[2], piece));
  p = hn::MulAdd(p, a, LookupPiece(df, GeluTable::kFactors[1], piece));
  p = hn::MulAdd(p, a, LookupPiece(df, GeluTable::kFactors[0], piece));
  return hn::Add(p, AtLeast(df, 0.0f, x));
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
