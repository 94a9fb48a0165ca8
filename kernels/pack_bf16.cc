#include "kernels/pack.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pack_bf16.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/bf16-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

constexpr size_t kTileRows = 32;
constexpr size_t kTileSize = kTileRows * kPanelColumns;

// Rounded values of two neighbouring rows as pairs.
HWY_INLINE void StorePairs(hn::Vec<DU32> even, hn::Vec<DU32> odd, Bf16* to) {
  const DU32 du;
  const auto upper = hn::And(odd, hn::Set(du, 0xFFFF0000u));
  hn::Store(hn::Or(hn::ShiftRight<16>(even), upper), du, reinterpret_cast<uint32_t*>(to));
}

// rows[32][16] of f32 as pairs of neighbouring rows: pairs[16][16][2].
void RoundTile(const float* HWY_RESTRICT rows, Bf16* HWY_RESTRICT pairs) {
  const DF df;
  for (size_t r = 0; r < kTileRows; r += 2) {
    for (size_t j = 0; j < kPanelColumns; j += kLanes) {
      const float* at = rows + r * kPanelColumns + j;
      StorePairs(RoundToBf16(hn::Load(df, at)), RoundToBf16(hn::Load(df, at + kPanelColumns)),
                 pairs + r * kPanelColumns + 2 * j);
    }
  }
}

// The same for both parts: pairs[2][16][16][2].
void SplitTile(const float* HWY_RESTRICT rows, Bf16* HWY_RESTRICT pairs) {
  const DF df;
  for (size_t r = 0; r < kTileRows; r += 2) {
    for (size_t j = 0; j < kPanelColumns; j += kLanes) {
      const float* at = rows + r * kPanelColumns + j;
      hn::Vec<DU32> even_high, even_low, odd_high, odd_low;
      SplitToBf16(hn::Load(df, at), even_high, even_low);
      SplitToBf16(hn::Load(df, at + kPanelColumns), odd_high, odd_low);
      Bf16* to = pairs + r * kPanelColumns + 2 * j;
      StorePairs(even_high, odd_high, to);
      StorePairs(even_low, odd_low, to + kTileSize);
    }
  }
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pozor {
namespace {

HWY_EXPORT(RoundTile);
HWY_EXPORT(SplitTile);

// Hands tiles of f32 rows to `convert`, which writes `tile_size` values for each.
template <class Convert>
void PackTiles(const WeightView& weight, const int32_t* columns, size_t packed_n,
               size_t panel_begin, size_t panel_end, size_t tile_size, Bf16* panels,
               const Convert& convert) {
  constexpr size_t kRows = 32;  // a tile: what panels are padded to
  alignas(kAlignment) float rows[kRows * kPanelColumns];
  const size_t panel_size = DivCeil(weight.k, kRows) * tile_size;
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
      convert(rows, panels + p * panel_size + k / kRows * tile_size);
    }
  }
}

}  // namespace

void PackBf16(const WeightView& weight, const int32_t* columns, size_t packed_n, size_t panel_begin,
              size_t panel_end, Bf16* panels) {
  const size_t tile_size = PackedPanelBytes(PackedLayout::kBf16x16x2, 1) / sizeof(Bf16);
  PackTiles(weight, columns, packed_n, panel_begin, panel_end, tile_size, panels,
            HWY_DYNAMIC_POINTER(RoundTile));
}

void PackSplitBf16(const WeightView& weight, const int32_t* columns, size_t packed_n,
                   size_t panel_begin, size_t panel_end, Bf16* panels) {
  const size_t tile_size = PackedPanelBytes(PackedLayout::kSplitBf16x16x2, 1) / sizeof(Bf16);
  PackTiles(weight, columns, packed_n, panel_begin, panel_end, tile_size, panels,
            HWY_DYNAMIC_POINTER(SplitTile));
}

}  // namespace pozor
#endif  // HWY_ONCE
