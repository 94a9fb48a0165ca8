#include "kernels/norm_quantize.h"

#include "kernels/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm_quantize.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/norm-inl.h"
#include "kernels/quantize-inl.h"
#include "kernels/rows-inl.h"
#include "kernels/simd-inl.h"

// Bytes packed from vectors of unknown length would lie in another order: Arm uses its baseline.
#if HWY_ARCH_X86 || HWY_TARGET == HWY_STATIC_TARGET

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

HWY_INLINE VF LoadColumns(const float* x, size_t c, size_t count) {
  const DF df;
  return count == kLanes ? hn::LoadU(df, x + c) : hn::LoadN(df, x + c, count);
}

// n = (x - mean) * scale, to args.norm.out and, quantised, to `out`. The smoothed row is computed
// twice, once for its range: it lies in no buffer.
HWY_INLINE void ScaleAndQuantizeRow(const NormQuantizeArgs& args, const float* x, float mean,
                                    float scale, float* h, const QuantizedRows& out) {
  const DF df;
  const NormArgs& norm = args.norm;
  const VF center = hn::Set(df, mean), factor = hn::Set(df, scale);
  const auto unit = [&](size_t c, size_t count) HWY_ATTR {
    return hn::Mul(hn::Sub(LoadColumns(x, c, count), center), factor);
  };
  const auto smooth = [&](VF n, size_t c, size_t count) HWY_ATTR {
    const VF shift =
        args.smooth_beta == nullptr ? hn::Zero(df) : LoadColumns(args.smooth_beta, c, count);
    return hn::MulAdd(n, LoadColumns(args.smooth_gamma, c, count), shift);
  };
  const Columns columns = {0, norm.cols};
  const RowRange range = RangeOfColumns(
      columns, [&](size_t c) HWY_ATTR { return smooth(unit(c, kLanes), c, kLanes); },
      [&](size_t c, size_t count) HWY_ATTR { return smooth(unit(c, count), c, count); });
  const RowGrid grid = GridOfRange(range);
  *out.scales = grid.scale;
  const auto emit = [&](size_t c, size_t count) HWY_ATTR {
    const VF n = unit(c, count);
    if (h != nullptr) {
      const VF shift = norm.beta == nullptr ? hn::Zero(df) : LoadColumns(norm.beta, c, count);
      const VF y = hn::MulAdd(n, LoadColumns(norm.gamma, c, count), shift);
      count == kLanes ? hn::StoreU(y, df, h + c) : hn::StoreN(y, df, h + c, count);
    }
    return smooth(n, c, count);
  };
  QuantizeColumns(
      columns, grid, [&](size_t c) HWY_ATTR { return emit(c, kLanes); }, emit, out.values,
      RoundUp(norm.cols, 64));
}

template <bool kCentered>
void NormQuantizeRows(const NormQuantizeArgs& args) {
  const NormArgs& norm = args.norm;
  const float cols = static_cast<float>(norm.cols);
  float mean[kRowsAtOnce] = {}, scale[kRowsAtOnce];
  for (size_t row = 0; row < norm.rows; row += kRowsAtOnce) {
    const RowBlock block = StartRows<kCentered>(norm, row, mean);
    for (size_t r = 0; r < block.rows; ++r) {
      mean[r] = kCentered ? mean[r] / cols : 0.0f;
      scale[r] = SumSquares(block.x + r * block.x_stride, mean[r], norm.cols);
    }
    for (size_t r = 0; r < block.rows; ++r) {
      float* h = norm.out == nullptr ? nullptr : block.out + r * norm.out_stride;
      ScaleAndQuantizeRow(args, block.x + r * block.x_stride, mean[r],
                          InverseSqrt(scale[r] / cols + norm.epsilon), h, args.out.From(row + r));
    }
  }
}

void LayerNormQuantizeRows(const NormQuantizeArgs& args) { NormQuantizeRows<true>(args); }

void RmsNormQuantizeRows(const NormQuantizeArgs& args) {
  NormQuantizeArgs without_beta = args;
  without_beta.norm.beta = nullptr;
  NormQuantizeRows<false>(without_beta);
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
HWY_EXPORT(LayerNormQuantizeRows);
HWY_EXPORT(RmsNormQuantizeRows);
#define POZOR_DISPATCH HWY_DYNAMIC_DISPATCH
#endif

void LayerNormQuantize(const NormQuantizeArgs& args) {
  POZOR_DCHECK(args.out.groups == 1);
  POZOR_DCHECK(args.norm.out != nullptr || args.norm.residual == nullptr);
  POZOR_DISPATCH(LayerNormQuantizeRows)(args);
}

void RmsNormQuantize(const NormQuantizeArgs& args) {
  POZOR_DCHECK(args.out.groups == 1);
  POZOR_DCHECK(args.norm.out != nullptr || args.norm.residual == nullptr);
  POZOR_DISPATCH(RmsNormQuantizeRows)(args);
}

#undef POZOR_DISPATCH

}  // namespace pozor
#endif  // HWY_ONCE
