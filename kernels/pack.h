// Packed weight layouts. K runs down a panel of 16 columns, in groups of 1 (f32), 2 (bf16) or
// 4 (int8): [n/16][k/group][16][group], zero-padded in both directions: n to 16, k to the group,
// to 32 in bf16 and to 64 in int8.
//
// Split bf16 is f32 but for its last bits: x = high + low, high the bf16 nearest to x and low the
// one nearest to x - high, with an error of at most |x| / 2^17. Where |x| is below 2^-109 low may
// be a denormal, which AMX takes for zero: then the error is at most 2^-126. What bf16 cannot hold,
// above 3.39e38, is infinite in high, and NaN in low.
#ifndef POZOR_KERNELS_PACK_H_
#define POZOR_KERNELS_PACK_H_

#include <cstddef>
#include <cstdint>

#include "kernels/types.h"

namespace pozor {

// Values are stored in prepared files: never renumber.
enum class PackedLayout : uint8_t {
  kF32x16 = 0,     // [n/16][k][16] f32
  kBf16x16x2 = 1,  // [n/16][k/2][16][2] bf16, rounded to nearest even
  kS8x16x4 = 2,    // [n/16][k/4][16][4] s8, with column scales and column sums
  // [n/16][k/32][2][16][16][2] bf16: a tile of high parts, the tile of their low parts. Read by AMX
  // kernels only.
  kSplitBf16x16x2 = 3,
};

struct BoundedS8;

// View of a packed matrix; the memory belongs to the engine. Every array is 64-byte aligned.
struct PackedMatrix {
  PackedLayout layout = PackedLayout::kF32x16;
  const void* panels = nullptr;
  size_t k = 0;  // rows of the weight: inputs
  size_t n = 0;  // columns in packed order, before padding to 16
  // Quantised layouts only. Inputs [0, split) and [split, k) have column scales of their own if
  // split, a multiple of 16, is not 0. [groups, panel_count * 16] each, else null.
  size_t split = 0;
  const float* column_scales = nullptr;
  const int32_t* column_sums = nullptr;  // sum over the group's k of the stored integers
  const BoundedS8* bounded = nullptr;    // the integers in two parts (bounded.h), or null

  size_t panel_count() const { return DivCeil(n, kPanelColumns); }
  size_t groups() const { return split == 0 ? 1 : 2; }
};

// Elements of K that a group holds: 1, 2 or 4.
size_t PackedGroup(PackedLayout layout);

// Bytes of one panel, a multiple of 64; panel p starts at panels + p * PackedPanelBytes().
size_t PackedPanelBytes(PackedLayout layout, size_t k);

// Where a weight's elements lie: element (k, n) is data[k * k_stride + n * n_stride].
// torch Linear [out, in]: k_stride 1, n_stride in. Conv1D [in, out]: k_stride out, n_stride 1.
struct WeightView {
  const float* data = nullptr;
  size_t k = 0;
  size_t n = 0;
  size_t k_stride = 0;
  size_t n_stride = 0;
};

// Packs columns [16 * panel_begin, 16 * panel_end) as f32. `columns` maps packed column to source
// column, -1 for a zero column; null is the identity. `panels` points to panel 0, 64-byte aligned.
void PackF32(const WeightView& weight, const int32_t* columns, size_t packed_n, size_t panel_begin,
             size_t panel_end, float* panels);

// The same as bf16: kBf16x16x2. A NaN stays one.
void PackBf16(const WeightView& weight, const int32_t* columns, size_t packed_n, size_t panel_begin,
              size_t panel_end, Bf16* panels);

// The same as high and low parts: kSplitBf16x16x2.
void PackSplitBf16(const WeightView& weight, const int32_t* columns, size_t packed_n,
                   size_t panel_begin, size_t panel_end, Bf16* panels);

// One of the three above, by the layout.
void PackPlain(PackedLayout layout, const WeightView& weight, const int32_t* columns,
               size_t packed_n, size_t panel_begin, size_t panel_end, void* panels);

// Where PackS8 puts its result, as PackedMatrix has it. All 64-byte aligned.
struct PackedS8 {
  int8_t* panels = nullptr;
  float* column_scales = nullptr;  // [groups, panel_count * 16]
  int32_t* column_sums = nullptr;  // [groups, panel_count * 16]
};

// Quantises and packs columns [16 * panel_begin, 16 * panel_end): for each column and group
//   scale = max|w| / 127,  integer = rne(w / scale) in [-127, 127], the same bits on every machine.
// A column below 1e-35 counts as zero; one with a NaN or an infinity gets the scale NaN. `columns`,
// `packed_n`: see PackF32; `split`: see PackedMatrix.
void PackS8(const WeightView& weight, const int32_t* columns, size_t packed_n, size_t split,
            size_t panel_begin, size_t panel_end, const PackedS8& out);

// Index of element (k, n) in the panels of a kS8x16x4 matrix with inputs [0, k_count): whoever
// rounds weights by other rules writes them there, adds up the sums, and leaves the padding zero.
constexpr size_t PackedS8Index(size_t k_count, size_t k, size_t n) {
  const size_t panel = n / kPanelColumns * RoundUp(k_count, 64) * kPanelColumns;
  return panel + k / 4 * 4 * kPanelColumns + n % kPanelColumns * 4 + k % 4;
}

}  // namespace pozor

#endif  // POZOR_KERNELS_PACK_H_
