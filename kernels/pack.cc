#include "kernels/pack.h"

#include "kernels/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pack.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

// Where the 16 source columns of a panel start; null for a zero column.
struct PanelColumns {
  const float* start[kPanelColumns];
  bool contiguous;  // 16 neighbours with n_stride 1
};

PanelColumns FindColumns(const WeightView& weight, const int32_t* columns, size_t packed_n,
                         size_t panel) {
  PanelColumns out;
  out.contiguous = weight.n_stride == 1;
  for (size_t j = 0; j < kPanelColumns; ++j) {
    const size_t packed = panel * kPanelColumns + j;
    int64_t source = -1;
    if (packed < packed_n) {
      source = columns == nullptr ? static_cast<int64_t>(packed) : int64_t{columns[packed]};
    }
    POZOR_DCHECK(source < static_cast<int64_t>(weight.n));
    out.start[j] =
        source < 0 ? nullptr : weight.data + static_cast<size_t>(source) * weight.n_stride;
    const bool follows =
        out.start[j] != nullptr && (j == 0 || (out.contiguous && out.start[j] == out.start[0] + j));
    out.contiguous = out.contiguous && follows;
  }
  return out;
}

// Rows [k_begin, k_end) of a panel, element by element.
void PackPanelRows(const WeightView& weight, const PanelColumns& columns, size_t k_begin,
                   size_t k_end, float* HWY_RESTRICT panel) {
  for (size_t k = k_begin; k < k_end; ++k) {
    for (size_t j = 0; j < kPanelColumns; ++j) {
      const float* start = columns.start[j];
      panel[k * kPanelColumns + j] = start == nullptr ? 0.0f : start[k * weight.k_stride];
    }
  }
}

// 16 neighbouring columns of a row-major [k, n] weight: a copy.
void PackPanelContiguous(const WeightView& weight, const PanelColumns& columns,
                         float* HWY_RESTRICT panel) {
  const DF df;
  for (size_t k = 0; k < weight.k; ++k) {
    const float* from = columns.start[0] + k * weight.k_stride;
    for (size_t j = 0; j < kPanelColumns; j += kLanes) {
      hn::Store(hn::LoadU(df, from + j), df, panel + k * kPanelColumns + j);
    }
  }
}

// 4 x 4 blocks of a [n, k] weight (torch Linear) turned over, 16 source rows at a time so that a
// panel is written once, front to back. Returns the number of rows done, a multiple of 4.
size_t PackPanelTransposed(const WeightView& weight, const PanelColumns& columns,
                           float* HWY_RESTRICT panel) {
  const hn::FixedTag<float, 4> d4;
  const hn::Repartition<double, decltype(d4)> d2;
  const size_t k_end = weight.k / 4 * 4;
  for (size_t k = 0; k < k_end; k += 4) {
    for (size_t j = 0; j < kPanelColumns; j += 4) {
      const auto row = [&](size_t r) HWY_ATTR {
        const float* start = columns.start[j + r];
        return start == nullptr ? hn::Zero(d4) : hn::LoadU(d4, start + k);
      };
      const auto r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
      const auto low01 = hn::BitCast(d2, hn::InterleaveLower(d4, r0, r1));
      const auto low23 = hn::BitCast(d2, hn::InterleaveLower(d4, r2, r3));
      const auto high01 = hn::BitCast(d2, hn::InterleaveUpper(d4, r0, r1));
      const auto high23 = hn::BitCast(d2, hn::InterleaveUpper(d4, r2, r3));
      float* to = panel + k * kPanelColumns + j;
      hn::Store(hn::BitCast(d4, hn::InterleaveLower(d2, low01, low23)), d4, to);
      hn::Store(hn::BitCast(d4, hn::InterleaveUpper(d2, low01, low23)), d4, to + kPanelColumns);
      hn::Store(hn::BitCast(d4, hn::InterleaveLower(d2, high01, high23)), d4,
                to + 2 * kPanelColumns);
      hn::Store(hn::BitCast(d4, hn::InterleaveUpper(d2, high01, high23)), d4,
                to + 3 * kPanelColumns);
    }
  }
  return k_end;
}

void PackF32Panels(const WeightView& weight, const int32_t* columns, size_t packed_n,
                   size_t panel_begin, size_t panel_end, float* HWY_RESTRICT panels) {
  for (size_t p = panel_begin; p < panel_end; ++p) {
    const PanelColumns panel_columns = FindColumns(weight, columns, packed_n, p);
    float* panel = panels + p * weight.k * kPanelColumns;
    if (panel_columns.contiguous) {
      PackPanelContiguous(weight, panel_columns, panel);
      continue;
    }
    size_t done = 0;
    if (weight.k_stride == 1) done = PackPanelTransposed(weight, panel_columns, panel);
    PackPanelRows(weight, panel_columns, done, weight.k, panel);
  }
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pozor {

HWY_EXPORT(PackF32Panels);

size_t PackedGroup(PackedLayout layout) {
  switch (layout) {
    case PackedLayout::kF32x16:
      return 1;
    case PackedLayout::kBf16x16x2:
    case PackedLayout::kSplitBf16x16x2:
      return 2;
    case PackedLayout::kS8x16x4:
      return 4;
  }
  return 0;
}

size_t PackedPanelBytes(PackedLayout layout, size_t k) {
  // A group of any layout takes 4 bytes a column and part. bf16 and int8: whole tiles of 16 groups.
  if (layout != PackedLayout::kF32x16) k = RoundUp(k, 16 * PackedGroup(layout));
  const size_t parts = layout == PackedLayout::kSplitBf16x16x2 ? 2 : 1;
  return DivCeil(k, PackedGroup(layout)) * kPanelColumns * 4 * parts;
}

void PackF32(const WeightView& weight, const int32_t* columns, size_t packed_n, size_t panel_begin,
             size_t panel_end, float* panels) {
  HWY_DYNAMIC_DISPATCH(PackF32Panels)
  (weight, columns, packed_n, panel_begin, panel_end, panels);
}

void PackPlain(PackedLayout layout, const WeightView& weight, const int32_t* columns,
               size_t packed_n, size_t panel_begin, size_t panel_end, void* panels) {
  switch (layout) {
    case PackedLayout::kF32x16:
      return PackF32(weight, columns, packed_n, panel_begin, panel_end,
                     static_cast<float*>(panels));
    case PackedLayout::kBf16x16x2:
      return PackBf16(weight, columns, packed_n, panel_begin, panel_end,
                      static_cast<Bf16*>(panels));
    case PackedLayout::kSplitBf16x16x2:
      return PackSplitBf16(weight, columns, packed_n, panel_begin, panel_end,
                           static_cast<Bf16*>(panels));
    case PackedLayout::kS8x16x4:
      break;
  }
  POZOR_CHECK(false && "a layout that needs scales");
}

}  // namespace pozor
#endif  // HWY_ONCE
