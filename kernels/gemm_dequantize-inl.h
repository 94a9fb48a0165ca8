// From exact integer sums to C: what every int8 micro-kernel does behind its K loop.
#if defined(POZOR_KERNELS_GEMM_DEQUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_GEMM_DEQUANTIZE_INL_H_
#undef POZOR_KERNELS_GEMM_DEQUANTIZE_INL_H_
#else
#define POZOR_KERNELS_GEMM_DEQUANTIZE_INL_H_
#endif

#include "kernels/gemm.h"
#include "kernels/gemm_epilogue-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// The integer sums of a finished tile.
struct SumTile {
  const int32_t* sums;  // [groups, rows, columns]
  size_t group_stride;
  size_t columns;      // a multiple of 16
  int32_t zero_shift;  // sums are of (q - zero_shift) w: 0, or 128
};

// values[rows, columns] = the dequantised tile with its bias, the formulas of gemm.h.
inline void DequantizeTile(const GemmArgs& args, const FinishedTile& tile, const SumTile& in,
                           float* HWY_RESTRICT values) {
  const DF df;
  const DI32 di;
  const PackedMatrix& b = *args.b;
  const size_t groups = b.groups(), padded_n = b.panel_count() * kPanelColumns;
  const size_t first = tile.panel * kPanelColumns;
  for (size_t j = 0; j < in.columns; j += kLanes) {
    const size_t n = first + j;
    const VF bias =
        args.epilogue.bias == nullptr ? hn::Zero(df) : hn::Load(df, args.epilogue.bias + n);
    for (size_t r = 0; r < tile.rows; ++r) {
      const RowScale* row = args.quantized.scales + (tile.row + r) * groups;
      VF x = bias;
      for (size_t g = 0; g < groups; ++g) {
        const int32_t* sums = in.sums + g * in.group_stride + r * in.columns;
        const auto zero = hn::Set(di, row[g].zero - in.zero_shift);
        const auto correction = hn::Mul(zero, hn::Load(di, b.column_sums + g * padded_n + n));
        const VF sum = hn::ConvertTo(df, hn::Sub(hn::Load(di, sums + j), correction));
        const VF scaled = hn::Mul(sum, hn::Load(df, b.column_scales + g * padded_n + n));
        const VF scale = hn::Set(df, row[g].scale);
        const bool last = g + 1 == groups;
        x = last ? hn::MulAdd(scaled, scale, x) : hn::Add(hn::Mul(scaled, scale), bias);
      }
      hn::Store(x, df, values + r * in.columns + j);
    }
  }
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POZOR_KERNELS_GEMM_DEQUANTIZE_INL_H_
