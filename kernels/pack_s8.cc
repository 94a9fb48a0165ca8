// Quantising and packing of int8 weights: done once a model, so plain loops over whole columns.
#include <cstring>

#include "kernels/check.h"
#include "kernels/pack.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pack_s8.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/simd-inl.h"

// Work done once a model: Arm uses its baseline.
#if HWY_ARCH_X86 || HWY_TARGET == HWY_STATIC_TARGET

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

// Inputs [begin, end) of a panel's columns, [k][16] in blocks of kBlock inputs.
constexpr size_t kBlock = 64;

struct PanelBlock {
  alignas(kAlignment) float values[kBlock * kPanelColumns];

  // Inputs [begin, begin + count) of the 16 source columns from `start` on; null: a zero column.
  void Load(const WeightView& weight, const float* const* start, size_t begin, size_t count) {
    for (size_t j = 0; j < kPanelColumns; ++j) {
      for (size_t k = 0; k < count; ++k) {
        values[k * kPanelColumns + j] =
            start[j] == nullptr ? 0.0f : start[j][(begin + k) * weight.k_stride];
      }
    }
  }
};

// max|w| of 16 columns over inputs [begin, end), as bit patterns: NaN above infinity.
void LargestOfColumns(const WeightView& weight, const float* const* start, size_t begin, size_t end,
                      PanelBlock* block, int32_t* largest) {
  const DF df;
  const DI32 di;
  for (size_t j = 0; j < kPanelColumns; ++j) largest[j] = 0;
  for (size_t k = begin; k < end; k += kBlock) {
    const size_t count = HWY_MIN(end - k, kBlock);
    block->Load(weight, start, k, count);
    for (size_t j = 0; j < kPanelColumns; j += kLanes) {
      auto max = hn::Load(di, largest + j);
      for (size_t i = 0; i < count; ++i) {
        const VF w = hn::Load(df, block->values + i * kPanelColumns + j);
        max = hn::Max(max, hn::BitCast(di, hn::Abs(w)));
      }
      hn::Store(max, di, largest + j);
    }
  }
}

// The 16 columns' scales, and divisors that are never zero.
void ScalesOfColumns(const int32_t* largest, float* scales, float* divisors) {
  constexpr float kLeast = 1e-35f;
  constexpr int32_t kInfinity = 0x7F800000;
  for (size_t j = 0; j < kPanelColumns; ++j) {
    float max;
    std::memcpy(&max, &largest[j], sizeof(max));
    const bool finite = largest[j] < kInfinity;
    const bool zero = finite && max < kLeast;
    scales[j] = !finite ? __builtin_nanf("") : zero ? 0.0f : max / 127.0f;
    divisors[j] = zero || !finite ? __builtin_huge_valf() : scales[j];
  }
}

// One group of one panel. `panel` is the panel's first byte.
void PackGroup(const WeightView& weight, const float* const* start, size_t begin, size_t end,
               int8_t* panel, float* scales, int32_t* sums) {
  const DF df;
  const DI32 di;
  PanelBlock block;
  alignas(kAlignment) int32_t integers[kPanelColumns];
  alignas(kAlignment) float divisors[kPanelColumns];
  LargestOfColumns(weight, start, begin, end, &block, integers);
  ScalesOfColumns(integers, scales, divisors);
  const VF round = hn::Set(df, 12582912.0f);  // leaves an integer in the low bits, ties to even
  for (size_t j = 0; j < kPanelColumns; ++j) sums[j] = 0;
  for (size_t k = begin; k < end; k += kBlock) {
    const size_t count = HWY_MIN(end - k, kBlock);
    block.Load(weight, start, k, count);
    for (size_t i = 0; i < count; ++i) {
      for (size_t j = 0; j < kPanelColumns; j += kLanes) {
        const VF w = hn::Load(df, block.values + i * kPanelColumns + j);
        const VF rounded = hn::Add(hn::Div(w, hn::Load(df, divisors + j)), round);
        hn::Store(hn::Sub(hn::BitCast(di, rounded), hn::BitCast(di, round)), di, integers + j);
      }
      int8_t* to = panel + (k + i) / 4 * 4 * kPanelColumns + (k + i) % 4;
      for (size_t j = 0; j < kPanelColumns; ++j) {
        const bool finite = divisors[j] != __builtin_huge_valf();
        const int32_t w8 = finite ? HWY_MIN(HWY_MAX(integers[j], -127), 127) : 0;
        to[4 * j] = static_cast<int8_t>(w8);
        sums[j] += w8;
      }
    }
  }
}

void PackS8Panels(const WeightView& weight, const int32_t* columns, size_t packed_n, size_t split,
                  size_t panel_begin, size_t panel_end, const PackedS8& out) {
  const size_t panel_bytes = PackedPanelBytes(PackedLayout::kS8x16x4, weight.k);
  const size_t padded_n = RoundUp(packed_n, kPanelColumns);
  for (size_t p = panel_begin; p < panel_end; ++p) {
    const float* start[kPanelColumns];
    for (size_t j = 0; j < kPanelColumns; ++j) {
      const size_t packed = p * kPanelColumns + j;
      int64_t source = -1;
      if (packed < packed_n) {
        source = columns == nullptr ? static_cast<int64_t>(packed) : int64_t{columns[packed]};
      }
      POZOR_DCHECK(source < static_cast<int64_t>(weight.n));
      start[j] = source < 0 ? nullptr : weight.data + static_cast<size_t>(source) * weight.n_stride;
    }
    int8_t* panel = out.panels + p * panel_bytes;
    std::memset(panel, 0, panel_bytes);
    for (size_t g = 0; g < (split == 0 ? 1u : 2u); ++g) {
      const size_t begin = g == 0 ? 0 : split, end = g == 0 && split != 0 ? split : weight.k;
      const size_t first = g * padded_n + p * kPanelColumns;
      PackGroup(weight, start, begin, end, panel, out.column_scales + first,
                out.column_sums + first);
    }
  }
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
HWY_EXPORT(PackS8Panels);
#define POZOR_DISPATCH HWY_DYNAMIC_DISPATCH
#endif

void PackS8(const WeightView& weight, const int32_t* columns, size_t packed_n, size_t split,
            size_t panel_begin, size_t panel_end, const PackedS8& out) {
  POZOR_DCHECK(split % 16 == 0 && split < (weight.k == 0 ? 1 : weight.k));
  POZOR_DISPATCH(PackS8Panels)
  (weight, columns, packed_n, split, panel_begin, panel_end, out);
}

#undef POZOR_DISPATCH

}  // namespace pozor
#endif  // HWY_ONCE
