#include "kernels/pool.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool.cc"
#include "hwy/foreach_target.h"
#include "kernels/rows-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

// out[c] = combine(... combine(start, x[0][c]) ..., x[rows - 1][c]), columns [0, cols).
// step(accumulator, value, row index) runs over ascending rows.
template <class Step, class Finish>
HWY_INLINE void FoldRows(const float* x, size_t stride, size_t rows, size_t cols, VF start,
                         const Step& step, const Finish& finish, float* out) {
  const DF df;
  size_t c = 0;
  for (; c + 4 * kLanes <= cols; c += 4 * kLanes) {
    VF a0 = start, a1 = start, a2 = start, a3 = start;
    for (size_t r = 0; r < rows; ++r) {
      const float* from = x + r * stride + c;
      a0 = step(a0, hn::LoadU(df, from), r);
      a1 = step(a1, hn::LoadU(df, from + kLanes), r);
      a2 = step(a2, hn::LoadU(df, from + 2 * kLanes), r);
      a3 = step(a3, hn::LoadU(df, from + 3 * kLanes), r);
    }
    hn::StoreU(finish(a0), df, out + c);
    hn::StoreU(finish(a1), df, out + c + kLanes);
    hn::StoreU(finish(a2), df, out + c + 2 * kLanes);
    hn::StoreU(finish(a3), df, out + c + 3 * kLanes);
  }
  for (; c < cols; c += kLanes) {
    const size_t count = HWY_MIN(kLanes, cols - c);
    VF a = start;
    for (size_t r = 0; r < rows; ++r) a = step(a, hn::LoadN(df, x + r * stride + c, count), r);
    hn::StoreN(finish(a), df, out + c, count);
  }
}

void SumRows(const float* x, size_t stride, size_t rows, size_t cols, float divisor, float* out) {
  const DF df;
  const VF count = hn::Set(df, divisor);
  FoldRows(
      x, stride, rows, cols, hn::Zero(df),
      [](VF a, VF v, size_t) HWY_ATTR { return hn::Add(a, v); },
      [&](VF a) HWY_ATTR { return hn::Div(a, count); }, out);
}

// Weight of row r: first_weight + r.
void WeightedMeanRows(const float* x, size_t stride, size_t rows, size_t cols, size_t first_weight,
                      float* out) {
  const DF df;
  const size_t last_weight = first_weight + rows - 1;
  const double total =
      0.5 * static_cast<double>(rows) * static_cast<double>(first_weight + last_weight);
  const VF divisor = hn::Set(df, static_cast<float>(total));
  FoldRows(
      x, stride, rows, cols, hn::Zero(df),
      [&](VF a, VF v, size_t r)
          HWY_ATTR { return hn::MulAdd(v, hn::Set(df, static_cast<float>(first_weight + r)), a); },
      [&](VF a) HWY_ATTR { return hn::Div(a, divisor); }, out);
}

// A NaN stays, and of two equal zeros the first, on every target.
void MaxRows(const float* x, size_t stride, size_t rows, size_t cols, float* out) {
  const DF df;
  FoldRows(
      x, stride, rows, cols, hn::Set(df, -__builtin_huge_valf()),
      [](VF a, VF v, size_t)
          HWY_ATTR { return hn::IfThenElse(hn::Or(hn::Gt(v, a), hn::IsNaN(v)), v, a); },
      [](VF a) HWY_ATTR { return a; }, out);
}

void CopyRow(const float* x, size_t cols, float* out) {
  MapRow(x, out, cols, [](VF v) HWY_ATTR { return v; });
}

void PoolRows(Pooling pooling, const float* x, size_t stride, size_t first, size_t tokens,
              size_t cols, float* out) {
  const DF df;
  if (first >= tokens) {
    return MapRow(out, out, cols, [df](VF) HWY_ATTR { return hn::Zero(df); });
  }
  const size_t rows = tokens - first;
  const float* start = x + first * stride;
  const float count = static_cast<float>(rows);
  switch (pooling) {
    case Pooling::kCls:
      return CopyRow(start, cols, out);
    case Pooling::kMax:
      return MaxRows(start, stride, rows, cols, out);
    case Pooling::kMean:
      return SumRows(start, stride, rows, cols, count, out);
    case Pooling::kMeanSqrt:
      return SumRows(start, stride, rows, cols, SquareRoot(count), out);
    case Pooling::kWeightedMean:
      return WeightedMeanRows(start, stride, rows, cols, first + 1, out);
    case Pooling::kLastToken:
      return CopyRow(start + (rows - 1) * stride, cols, out);
  }
}

float DotRow(const float* a, const float* b, size_t n) {
  const DF df;
  return ReduceRow(
      n, hn::Zero(df),
      [&](VF sum, size_t c)
          HWY_ATTR { return hn::MulAdd(hn::LoadU(df, a + c), hn::LoadU(df, b + c), sum); },
      [&](VF sum, size_t c, size_t count) HWY_ATTR {
        return hn::MulAdd(hn::LoadN(df, a + c, count), hn::LoadN(df, b + c, count), sum);
      },
      AddLanes());
}

void NormalizeRow(float* x, size_t cols) {
  constexpr float kSmallest = 1e-12f;
  const DF df;
  const float norm = SquareRoot(DotRow(x, x, cols));
  const VF divisor = hn::Set(df, norm < kSmallest ? kSmallest : norm);
  MapRow(x, x, cols, [&](VF v) HWY_ATTR { return hn::Div(v, divisor); });
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pozor {
HWY_EXPORT(PoolRows);
HWY_EXPORT(DotRow);
HWY_EXPORT(NormalizeRow);

void Pool(Pooling pooling, const float* x, size_t stride, size_t first, size_t tokens, size_t cols,
          float* out) {
  HWY_DYNAMIC_DISPATCH(PoolRows)(pooling, x, stride, first, tokens, cols, out);
}

void L2Normalize(float* x, size_t cols) { HWY_DYNAMIC_DISPATCH(NormalizeRow)(x, cols); }

float Dot(const float* a, const float* b, size_t n) {
  return HWY_DYNAMIC_DISPATCH(DotRow)(a, b, n);
}

}  // namespace pozor
#endif
