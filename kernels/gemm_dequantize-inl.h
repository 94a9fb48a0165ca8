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

// zero * column_sum as one 16-bit multiply-add of pairs: (z, 128 z) (low, high) with column_sum =
// low + 128 high.
constexpr size_t kMaxPairedInputs = 32768;  // above, `high` might not fit
constexpr int32_t ZeroPair(int32_t zero) { return zero * ((128 << 16) + 1); }

// -column_sum as a pair, for a multiple of 16 columns, aligned.
HWY_INLINE void SumPairs(const int32_t* sums, size_t columns, int32_t* pairs) {
  const DI32 di;
  for (size_t j = 0; j < columns; j += kLanes) {
    const auto negative = hn::Neg(hn::Load(di, sums + j));
    const auto low = hn::And(negative, hn::Set(di, 127));
    const auto high = hn::ShiftLeft<16>(hn::ShiftRight<7>(negative));
    hn::Store(hn::Or(low, high), di, pairs + j);
  }
}

// The integer sums of a finished tile.
struct SumTile {
  const int32_t* sums;  // [groups, rows, columns]
  size_t group_stride;
  size_t columns;      // a multiple of 16
  int32_t zero_shift;  // sums are of (q - zero_shift) w: 0, or 128
};

// The vector at column j of row r of a tile, before its column scales: float(sum - zero *
// column_sum).
inline VF DequantizedSum(const SumTile& in, size_t group, size_t r, size_t j, const RowScale& row,
                         hn::Vec<DI32> column_sums) {
  const DI32 di;
  const int32_t* sums = in.sums + group * in.group_stride + r * in.columns;
  const auto zero = hn::Set(di, row.zero - in.zero_shift);
  return hn::ConvertTo(DF(), hn::Sub(hn::Load(di, sums + j), hn::Mul(zero, column_sums)));
}

// values[rows, columns] = the dequantised tile with its bias, the formulas of gemm.h. Row after row
// of a vector of columns, whose constants stay in registers.
inline void DequantizeTile(const GemmArgs& args, const FinishedTile& tile, const SumTile& in,
                           float* HWY_RESTRICT values) {
  const DF df;
  const DI32 di;
  const PackedMatrix& b = *args.b;
  const size_t groups = b.groups(), padded_n = b.panel_count() * kPanelColumns;
  const RowScale* rows = args.quantized.scales + tile.row * groups;
  for (size_t j = 0; j < in.columns; j += kLanes) {
    const size_t n = tile.panel * kPanelColumns + j;
    const VF bias =
        args.epilogue.bias == nullptr ? hn::Zero(df) : hn::Load(df, args.epilogue.bias + n);
    const VF scales = hn::Load(df, b.column_scales + n);
    const auto sums = hn::Load(di, b.column_sums + n);
    if (groups == 1) {
      for (size_t r = 0; r < tile.rows; ++r) {
        const VF scaled = hn::Mul(DequantizedSum(in, 0, r, j, rows[r], sums), scales);
        const VF x = hn::MulAdd(scaled, hn::Set(df, rows[r].scale), bias);
        hn::Store(x, df, values + r * in.columns + j);
      }
      continue;
    }
    const VF last_scales = hn::Load(df, b.column_scales + padded_n + n);
    const auto last_sums = hn::Load(di, b.column_sums + padded_n + n);
    for (size_t r = 0; r < tile.rows; ++r) {
      const RowScale& first = rows[2 * r];
      const RowScale& last = rows[2 * r + 1];
      VF x = hn::Mul(DequantizedSum(in, 0, r, j, first, sums), scales);
      x = hn::Add(hn::Mul(x, hn::Set(df, first.scale)), bias);
      const VF scaled = hn::Mul(DequantizedSum(in, 1, r, j, last, last_sums), last_scales);
      x = hn::MulAdd(scaled, hn::Set(df, last.scale), x);
      hn::Store(x, df, values + r * in.columns + j);
    }
  }
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POZOR_KERNELS_GEMM_DEQUANTIZE_INL_H_
