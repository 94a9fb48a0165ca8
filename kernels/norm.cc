#include "kernels/norm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm.cc"
#include "hwy/foreach_target.h"
#include "kernels/rows-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

HWY_INLINE float SumRow(const float* x, size_t n) {
  const DF df;
  return ReduceRow(
      n, hn::Zero(df), [&](VF a, size_t c) HWY_ATTR { return hn::Add(a, hn::LoadU(df, x + c)); },
      [&](VF a, size_t c, size_t count)
          HWY_ATTR { return hn::Add(a, hn::LoadN(df, x + c, count)); },
      AddLanes());
}

// sum = x + y row by row, and the total. `sum` may be x or y.
HWY_INLINE float AddRowsAndSum(const float* x, const float* y, float* sum, size_t n) {
  const DF df;
  return ReduceRow(
      n, hn::Zero(df),
      [&](VF a, size_t c) HWY_ATTR {
        const VF s = hn::Add(hn::LoadU(df, x + c), hn::LoadU(df, y + c));
        hn::StoreU(s, df, sum + c);
        return hn::Add(a, s);
      },
      [&](VF a, size_t c, size_t count) HWY_ATTR {
        const VF s = hn::Add(hn::LoadN(df, x + c, count), hn::LoadN(df, y + c, count));
        hn::StoreN(s, df, sum + c, count);
        return hn::Add(a, s);
      },
      AddLanes());
}

// sum (x - mean)^2
HWY_INLINE float SumSquares(const float* x, float mean, size_t n) {
  const DF df;
  const VF center = hn::Set(df, mean);
  return ReduceRow(
      n, hn::Zero(df),
      [&](VF a, size_t c) HWY_ATTR {
        const VF difference = hn::Sub(hn::LoadU(df, x + c), center);
        return hn::MulAdd(difference, difference, a);
      },
      [&](VF a, size_t c, size_t count) HWY_ATTR {
        const VF difference =
            hn::IfThenElseZero(hn::FirstN(df, count), hn::Sub(hn::LoadN(df, x + c, count), center));
        return hn::MulAdd(difference, difference, a);
      },
      AddLanes());
}

// out = (x - mean) * scale * gamma + beta
HWY_INLINE void ScaleRow(const float* x, float mean, float scale, const float* gamma,
                         const float* beta, float* out, size_t n) {
  const DF df;
  const VF center = hn::Set(df, mean), factor = hn::Set(df, scale);
  size_t c = 0;
  for (; c + kLanes <= n; c += kLanes) {
    const VF unit = hn::Mul(hn::Sub(hn::LoadU(df, x + c), center), factor);
    const VF shift = beta == nullptr ? hn::Zero(df) : hn::LoadU(df, beta + c);
    hn::StoreU(hn::MulAdd(unit, hn::LoadU(df, gamma + c), shift), df, out + c);
  }
  if (c < n) {
    const size_t count = n - c;
    const VF unit = hn::Mul(hn::Sub(hn::LoadN(df, x + c, count), center), factor);
    const VF shift = beta == nullptr ? hn::Zero(df) : hn::LoadN(df, beta + c, count);
    hn::StoreN(hn::MulAdd(unit, hn::LoadN(df, gamma + c, count), shift), df, out + c, count);
  }
}

// Rows are short enough to stay in L1 between the passes.
void LayerNormRows(const NormArgs& args) {
  const float cols = static_cast<float>(args.cols);
  for (size_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.x_stride;
    float* out = args.out + r * args.out_stride;
    float sum;
    if (args.residual != nullptr) {
      sum = AddRowsAndSum(x, args.residual + r * args.residual_stride, out, args.cols);
      x = out;
    } else {
      sum = SumRow(x, args.cols);
    }
    const float mean = sum / cols;
    const float variance = SumSquares(x, mean, args.cols) / cols;
    ScaleRow(x, mean, InverseSqrt(variance + args.epsilon), args.gamma, args.beta, out, args.cols);
  }
}

void RmsNormRows(const NormArgs& args) {
  const float cols = static_cast<float>(args.cols);
  for (size_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.x_stride;
    float* out = args.out + r * args.out_stride;
    if (args.residual != nullptr) {
      MapRow2(x, args.residual + r * args.residual_stride, out, args.cols,
              [](VF a, VF b) HWY_ATTR { return hn::Add(a, b); });
      x = out;
    }
    const float mean_square = SumSquares(x, 0.0f, args.cols) / cols;
    ScaleRow(x, 0.0f, InverseSqrt(mean_square + args.epsilon), args.gamma, nullptr, out, args.cols);
  }
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pozor {
HWY_EXPORT(LayerNormRows);
HWY_EXPORT(RmsNormRows);

void LayerNorm(const NormArgs& args) { HWY_DYNAMIC_DISPATCH(LayerNormRows)(args); }

void RmsNorm(const NormArgs& args) { HWY_DYNAMIC_DISPATCH(RmsNormRows)(args); }

}  // namespace pozor
#endif
