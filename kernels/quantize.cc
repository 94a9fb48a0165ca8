#include "kernels/quantize.h"

#include "kernels/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/quantize.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/quantize-inl.h"
#include "kernels/simd-inl.h"

// Bytes packed from vectors of unknown length would lie in another order: Arm uses its baseline.
#if HWY_ARCH_X86 || HWY_TARGET == HWY_STATIC_TARGET

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

template <bool kShifted>
void QuantizeEach(const QuantizeArgs& args) {
  const DF df;
  const size_t padded = RoundUp(args.cols, 64);
  for (size_t r = 0; r < args.rows; ++r) {
    const float* x = args.x + r * args.x_stride;
    const auto value = [&](size_t c) HWY_ATTR {
      VF v = hn::LoadU(df, x + c);
      if constexpr (kShifted) {
        v = hn::MulAdd(v, hn::LoadU(df, args.column_scale + c),
                       hn::LoadU(df, args.column_shift + c));
      }
      return v;
    };
    const auto tail = [&](size_t c, size_t count) HWY_ATTR {
      VF v = hn::LoadN(df, x + c, count);
      if constexpr (kShifted) {
        v = hn::MulAdd(v, hn::LoadN(df, args.column_scale + c, count),
                       hn::LoadN(df, args.column_shift + c, count));
      }
      return v;
    };
    const QuantizedRows out = args.out.From(r);
    for (size_t g = 0; g < out.groups; ++g) {
      const bool last = g + 1 == out.groups;
      const Columns columns = {g == 0 ? 0 : args.split, last ? args.cols : args.split};
      const RowGrid grid = GridOfRange(RangeOfColumns(columns, value, tail));
      out.scales[g] = grid.scale;
      QuantizeColumns(columns, grid, value, tail, out.values, last ? padded : args.split);
    }
  }
}

void QuantizeAll(const QuantizeArgs& args) {
  args.column_scale == nullptr ? QuantizeEach<false>(args) : QuantizeEach<true>(args);
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_ARCH_X86 || HWY_TARGET == HWY_STATIC_TARGET

#if HWY_ONCE
namespace pozor {

#if HWY_ARCH_ARM
#define POZOR_DISPATCH HWY_STATIC_DISPATCH
#else
HWY_EXPORT(QuantizeAll);
#define POZOR_DISPATCH HWY_DYNAMIC_DISPATCH
#endif

void QuantizeRows(const QuantizeArgs& args) {
  POZOR_DCHECK(args.out.groups == 1 || (args.split % 16 == 0 && args.split < args.cols));
  POZOR_DCHECK(args.out.stride >= RoundUp(args.cols, 64));
  POZOR_DISPATCH(QuantizeAll)(args);
}

#undef POZOR_DISPATCH

}  // namespace pozor
#endif  // HWY_ONCE
