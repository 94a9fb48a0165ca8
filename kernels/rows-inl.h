// Loops over rows of any length and alignment.
//
// Maps work element by element. Reductions keep 16 virtual lanes (column c goes to lane c % 16, in
// ascending order) and add them up by one tree, so that their bits do not depend on the width of a
// vector: 1 x 16, 2 x 8 and 4 x 4 lanes agree.
#if defined(POZOR_KERNELS_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_ROWS_INL_H_
#undef POZOR_KERNELS_ROWS_INL_H_
#else
#define POZOR_KERNELS_ROWS_INL_H_
#endif

#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// y[i] = map(x[i]); x may be y.
template <class Map>
HWY_INLINE void MapRow(const float* x, float* y, size_t n, const Map& map) {
  const DF df;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(map(hn::LoadU(df, x + i)), df, y + i);
  }
  if (i < n) hn::StoreN(map(hn::LoadN(df, x + i, n - i)), df, y + i, n - i);
}

// z[i] = map(x[i], y[i]); z may be either.
template <class Map>
HWY_INLINE void MapRow2(const float* x, const float* y, float* z, size_t n, const Map& map) {
  const DF df;
  size_t i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    hn::StoreU(map(hn::LoadU(df, x + i), hn::LoadU(df, y + i)), df, z + i);
  }
  if (i < n) {
    hn::StoreN(map(hn::LoadN(df, x + i, n - i), hn::LoadN(df, y + i, n - i)), df, z + i, n - i);
  }
}

struct AddLanes {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Add(a, b);
  }
};

struct MaxLanes {
  template <class V>
  HWY_INLINE V operator()(V a, V b) const {
    return hn::Max(a, b);
  }
};

// The tree: lane i with i + 8, then i + 4, i + 2, i + 1. Accumulator g holds virtual lanes
// [g * kLanes, (g + 1) * kLanes); those beyond kPanelVectors are not looked at.
template <class V, class Combine>
HWY_INLINE float CombineLanes(V a0, V a1, V a2, V a3, const Combine& combine) {
  const DF df;
  const hn::FixedTag<float, 4> d4;
  alignas(16) float lanes[4];
  if constexpr (kLanes == 16) {
    const hn::Half<DF> d8;
    const auto v8 = combine(hn::LowerHalf(d8, a0), hn::UpperHalf(d8, a0));
    hn::Store(combine(hn::LowerHalf(d4, v8), hn::UpperHalf(d4, v8)), d4, lanes);
  } else if constexpr (kLanes == 8) {
    const auto v8 = combine(a0, a1);
    hn::Store(combine(hn::LowerHalf(d4, v8), hn::UpperHalf(d4, v8)), d4, lanes);
  } else {
    hn::Store(combine(combine(a0, a2), combine(a1, a3)), df, lanes);
  }
  const hn::CappedTag<float, 1> d1;
  const auto even = combine(hn::Load(d1, lanes), hn::Load(d1, lanes + 2));
  const auto odd = combine(hn::Load(d1, lanes + 1), hn::Load(d1, lanes + 3));
  return hn::GetLane(combine(even, odd));
}

// Reduces columns [0, n): step(accumulator, column) takes in kLanes columns from `column`,
// tail(accumulator, column, count) the first `count` of them, leaving the other lanes as they are.
template <class Step, class Tail, class Combine>
HWY_INLINE float ReduceRow(size_t n, VF start, const Step& step, const Tail& tail,
                           const Combine& combine) {
  VF a0 = start, a1 = start, a2 = start, a3 = start;
  size_t c = 0;
  for (; c + 16 <= n; c += 16) {
    a0 = step(a0, c);
    if constexpr (kPanelVectors > 1) a1 = step(a1, c + kLanes);
    if constexpr (kPanelVectors > 2) a2 = step(a2, c + 2 * kLanes);
    if constexpr (kPanelVectors > 2) a3 = step(a3, c + 3 * kLanes);
  }
  if (c < n) a0 = tail(a0, c, HWY_MIN(n - c, kLanes));
  if constexpr (kPanelVectors > 1) {
    if (c + kLanes < n) a1 = tail(a1, c + kLanes, HWY_MIN(n - c - kLanes, kLanes));
  }
  if constexpr (kPanelVectors > 2) {
    if (c + 2 * kLanes < n) a2 = tail(a2, c + 2 * kLanes, HWY_MIN(n - c - 2 * kLanes, kLanes));
    if (c + 3 * kLanes < n) a3 = tail(a3, c + 3 * kLanes, HWY_MIN(n - c - 3 * kLanes, kLanes));
  }
  return CombineLanes(a0, a1, a2, a3, combine);
}

// 1 / sqrt(x) by true division and square root.
HWY_INLINE float InverseSqrt(float x) {
  const hn::CappedTag<float, 1> d1;
  return hn::GetLane(hn::Div(hn::Set(d1, 1.0f), hn::Sqrt(hn::Set(d1, x))));
}

HWY_INLINE float SquareRoot(float x) {
  const hn::CappedTag<float, 1> d1;
  return hn::GetLane(hn::Sqrt(hn::Set(d1, x)));
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POZOR_KERNELS_ROWS_INL_H_
