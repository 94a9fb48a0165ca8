// The two sweeps over a row that quantise it: its range, then its bytes.
#if defined(POZOR_KERNELS_QUANTIZE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_QUANTIZE_INL_H_
#undef POZOR_KERNELS_QUANTIZE_INL_H_
#else
#define POZOR_KERNELS_QUANTIZE_INL_H_
#endif

#include <cstring>

#include "kernels/quantize.h"
#include "kernels/simd-inl.h"

#if !HWY_TARGET_IS_SVE  // see PackBytes

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using DU32 = hn::RebindToUnsigned<DF>;

// Columns [begin, end) of a row. Values come from value(column), kLanes of them, and at the end
// from tail(column, count), whose further lanes must be zero.
struct Columns {
  size_t begin, end;
};

// The extremes of a row as bit patterns, which order NaN beyond infinity.
struct RowRange {
  int32_t high;  // bits of max(0, max x)
  uint32_t low;  // bits of min x if it is negative, else anything below 2^31
};

template <class Value, class Tail>
HWY_INLINE RowRange RangeOfColumns(Columns columns, const Value& value, const Tail& tail) {
  const DI32 di;
  const DU32 du;
  auto high0 = hn::Zero(di), high1 = high0;
  auto low0 = hn::Zero(du), low1 = low0;
  size_t c = columns.begin;
  for (; c + 2 * kLanes <= columns.end; c += 2 * kLanes) {
    const VF x0 = value(c), x1 = value(c + kLanes);
    high0 = hn::Max(high0, hn::BitCast(di, x0));
    low0 = hn::Max(low0, hn::BitCast(du, x0));
    high1 = hn::Max(high1, hn::BitCast(di, x1));
    low1 = hn::Max(low1, hn::BitCast(du, x1));
  }
  for (; c < columns.end; c += kLanes) {
    const size_t count = HWY_MIN(columns.end - c, kLanes);
    const VF x = count == kLanes ? value(c) : tail(c, count);
    high0 = hn::Max(high0, hn::BitCast(di, x));
    low0 = hn::Max(low0, hn::BitCast(du, x));
  }
  return {hn::ReduceMax(di, hn::Max(high0, high1)), hn::ReduceMax(du, hn::Max(low0, low1))};
}

// A row's scale and what its second sweep needs.
struct RowGrid {
  RowScale scale;
  float inverse;
};

HWY_INLINE RowGrid GridOfRange(RowRange range) {
  constexpr float kLeastRange = 1e-35f, kMostRange = 3e38f;
  constexpr int32_t kInfinity = 0x7F800000;
  constexpr uint32_t kSign = 0x80000000u, kMinusInfinity = 0xFF800000u;
  RowGrid grid = {};
  float high, low = 0.0f;
  std::memcpy(&high, &range.high, sizeof(high));
  if (range.low >= kSign) std::memcpy(&low, &range.low, sizeof(low));
  const float width = high - low;
  if (range.high >= kInfinity || range.low >= kMinusInfinity || width > kMostRange) {
    grid.scale.scale = __builtin_nanf("");
    return grid;
  }
  if (width < kLeastRange) return grid;
  grid.inverse = 255.0f / width;
  grid.scale.scale = width * (1.0f / 255.0f);
  // Rounds to an integer, ties to even: the sum's unit in the last place is 1.
  constexpr float kRound = 12582912.0f;
  grid.scale.zero = static_cast<int32_t>(-low * grid.inverse + kRound - kRound);
  return grid;
}

// rne(x * inverse) + zero in [0, 255] as integers: the product and 1.5 * 2^23 are added with one
// rounding, and the integer is the low bits of the sum.
struct Rounder {
  float inverse;
  int32_t offset;

  HWY_INLINE explicit Rounder(const RowGrid& grid)
      : inverse(grid.inverse), offset(grid.scale.zero - 0x4B400000) {}

  HWY_INLINE hn::Vec<DI32> operator()(VF x) const {
    const DF df;
    const VF rounded = hn::MulAdd(x, hn::Set(df, inverse), hn::Set(df, 12582912.0f));
    return hn::Add(hn::BitCast(DI32(), rounded), hn::Set(DI32(), offset));
  }
};

inline constexpr size_t kByteBlock = 4 * kLanes;  // columns that fill a vector of bytes
using DU8 = hn::Repartition<uint8_t, DF>;

// Four vectors of integers, saturated to bytes, in order: on targets whose packing works within
// 128-bit blocks.
HWY_INLINE hn::Vec<DU8> PackBytes(hn::Vec<DI32> v0, hn::Vec<DI32> v1, hn::Vec<DI32> v2,
                                  hn::Vec<DI32> v3) {
  const hn::Repartition<int16_t, DF> d16;
  const DU8 d8;
  const auto bytes = hn::ReorderDemote2To(d8, hn::ReorderDemote2To(d16, v0, v1),
                                          hn::ReorderDemote2To(d16, v2, v3));
#if HWY_ARCH_X86
  const DI32 di;
  // Within each 128-bit block stand four bytes of each argument.
  if constexpr (kLanes == 16) {
    alignas(64) static constexpr int32_t kOrder[16] = {0, 4, 8,  12, 1, 5, 9,  13,
                                                       2, 6, 10, 14, 3, 7, 11, 15};
    return hn::BitCast(
        d8, hn::TableLookupLanes(hn::BitCast(di, bytes), hn::SetTableIndices(di, kOrder)));
  } else if constexpr (kLanes == 8) {
    alignas(32) static constexpr int32_t kOrder[8] = {0, 4, 1, 5, 2, 6, 3, 7};
    return hn::BitCast(
        d8, hn::TableLookupLanes(hn::BitCast(di, bytes), hn::SetTableIndices(di, kOrder)));
  }
#endif
  return bytes;
}

// Bytes of columns [begin, end) to `to`, and up to `end_bytes` whatever follows.
template <class Value, class Tail>
HWY_INLINE void QuantizeColumns(Columns columns, const RowGrid& grid, const Value& value,
                                const Tail& tail, uint8_t* to, size_t end_bytes) {
  const DU8 d8;
  const Rounder round(grid);
  size_t c = columns.begin;
  for (; c + kByteBlock <= columns.end; c += kByteBlock) {
    const auto bytes = PackBytes(round(value(c)), round(value(c + kLanes)),
                                 round(value(c + 2 * kLanes)), round(value(c + 3 * kLanes)));
    hn::StoreU(bytes, d8, to + c);
  }
  for (; c < columns.end; c += kLanes) {
    const size_t count = HWY_MIN(columns.end - c, kLanes);
    const VF x = count == kLanes ? value(c) : tail(c, count);
    const auto integers = round(x);
    alignas(kAlignment) uint8_t bytes[kByteBlock];
    hn::Store(PackBytes(integers, integers, integers, integers), d8, bytes);
    std::memcpy(to + c, bytes, HWY_MIN(kLanes, end_bytes - c));
  }
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // !HWY_TARGET_IS_SVE

#endif  // POZOR_KERNELS_QUANTIZE_INL_H_
