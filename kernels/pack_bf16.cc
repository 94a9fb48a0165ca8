#include "kernels/pack.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pack_bf16.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/bf16-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

// rows[count][16] of f32 as pairs of neighbouring rows: pairs[count / 2][16][2], count even.
void RoundPairs(const float* HWY_RESTRICT rows, size_t count, Bf16* HWY_RESTRICT pairs) {
  const DF df;
  const DU32 du;
  for (size_t r = 0; r < count; r += 2) {
    for (size_t j = 0; j < kPanelColumns; j += kLanes) {
      const float* at = rows + r * kPanelColumns + j;
      const auto even = hn::ShiftRight<16>(RoundToBf16(hn::Load(df, at)));
      const auto odd =
          hn::And(RoundToBf16(hn::Load(df, at + kPanelColumns)), hn::Set(du, 0xFFFF0000u));
      uint32_t* to = reinterpret_cast<uint32_t*>(pairs + (r * kPanelColumns + 2 * j));
      hn::Store(hn::Or(even, odd), du, to);
    }
  }
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pozor {

HWY_EXPORT(RoundPairs);

void PackBf16(const WeightView& weight, const int32_t* columns, size_t packed_n, size_t panel_begin,
              size_t panel_end, Bf16* panels) {
  constexpr size_t kRows = 32;  // a tile: what panels are padded to
  alignas(kAlignment) float rows[kRows * kPanelColumns];
  const size_t panel_size = PackedPanelBytes(PackedLayout::kBf16x16x2, weight.k) / sizeof(Bf16);
  for (size_t p = panel_begin; p < panel_end; ++p) {
    const size_t first = p * kPanelColumns;
    for (size_t k = 0; k < weight.k; k += kRows) {
      WeightView part = weight;
      part.data += k * weight.k_stride;
      part.k = weight.k - k < kRows ? weight.k - k : kRows;
      for (size_t i = part.k * kPanelColumns; i < kRows * kPanelColumns; ++i) rows[i] = 0.0f;
      if (columns == nullptr) {
        part.data += first * weight.n_stride;
        part.n = weight.n > first ? weight.n - first : 0;
      }
      PackF32(part, columns == nullptr ? nullptr : columns + first, packed_n - first, 0, 1, rows);
      HWY_DYNAMIC_DISPATCH(RoundPairs)(rows, kRows, panels + p * panel_size + k * kPanelColumns);
    }
  }
}

}  // namespace pozor
#endif  // HWY_ONCE
