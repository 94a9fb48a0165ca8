#include "kernels/rotary.h"

#include "kernels/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/rotary.cc"
#include "hwy/foreach_target.h"
#include "kernels/rows-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

// Rows whose pairs stand half a row apart.
HWY_INLINE void RotateHalves(float* HWY_RESTRICT x, const float* HWY_RESTRICT cosines,
                             size_t half) {
  const DF df;
  const float* HWY_RESTRICT sines = cosines + half;
  size_t c = 0;
  for (; c + kLanes <= half; c += kLanes) {
    const VF low = hn::LoadU(df, x + c), high = hn::LoadU(df, x + half + c);
    const VF cosine = hn::LoadU(df, cosines + c), sine = hn::LoadU(df, sines + c);
    hn::StoreU(hn::NegMulAdd(high, sine, hn::Mul(low, cosine)), df, x + c);
    hn::StoreU(hn::MulAdd(low, sine, hn::Mul(high, cosine)), df, x + half + c);
  }
  if (c == half) return;
  const size_t count = half - c;
  const VF low = hn::LoadN(df, x + c, count), high = hn::LoadN(df, x + half + c, count);
  const VF cosine = hn::LoadN(df, cosines + c, count), sine = hn::LoadN(df, sines + c, count);
  hn::StoreN(hn::NegMulAdd(high, sine, hn::Mul(low, cosine)), df, x + c, count);
  hn::StoreN(hn::MulAdd(low, sine, hn::Mul(high, cosine)), df, x + half + c, count);
}

// Neighbours: even lanes hold x and cos, odd ones y and sin.
//   even: x cos - y sin    odd: y cos + x sin
HWY_INLINE VF RotateNeighbours(VF v, VF table) {
  const VF cosine = hn::DupEven(table), sine = hn::DupOdd(table);
  const VF other = hn::Shuffle2301(v);
  const VF product = hn::Mul(v, cosine);
  return hn::OddEven(hn::MulAdd(other, sine, product), hn::NegMulAdd(other, sine, product));
}

HWY_INLINE void RotateInterleaved(float* x, const float* table, size_t columns) {
  MapRow2(x, table, x, columns, [](VF v, VF t) HWY_ATTR { return RotateNeighbours(v, t); });
}

void RotateRows(const RotaryArgs& args) {
  for (size_t r = 0; r < args.rows; ++r) {
    float* row = args.x + r * args.x_stride;
    const float* table = args.table + static_cast<size_t>(args.positions[r]) * args.columns;
    if (args.pairs == RotaryPairs::kHalves) {
      RotateHalves(row, table, args.columns / 2);
    } else {
      RotateInterleaved(row, table, args.columns);
    }
  }
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pozor {
HWY_EXPORT(RotateRows);

void Rotate(const RotaryArgs& args) {
  POZOR_DCHECK(args.columns % 2 == 0 && args.pairs != RotaryPairs::kNone);
  HWY_DYNAMIC_DISPATCH(RotateRows)(args);
}

}  // namespace pozor
#endif
