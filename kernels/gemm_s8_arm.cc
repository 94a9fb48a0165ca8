// int8 micro-kernels of AArch64: the widening multiplies of every CPU, SDOT and SMMLA. Activations
// lose 128 beforehand and are signed. The two extensions come by inline assembly, so that no other
// function of this file can use them.
#include <cstring>
#include <utility>

#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_s8_arm.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/gemm_prepared-inl.h"
#include "kernels/simd-inl.h"

#if HWY_ARCH_ARM_A64 && HWY_TARGET == HWY_STATIC_TARGET

#include <arm_neon.h>

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

// Sixteen inputs of a row, 128 taken off.
HWY_INLINE int8x16_t LoadSigned(const uint8_t* q) {
  return vreinterpretq_s8_u8(veorq_u8(vld1q_u8(q), vdupq_n_u8(128)));
}

// [rows, inputs] signed bytes
void PrepareRows(const QuantizedRows& rows, size_t count, size_t inputs, char* to) {
  int8_t* out = reinterpret_cast<int8_t*>(to);
  for (size_t r = 0; r < count; ++r) {
    const uint8_t* q = rows.values + r * rows.stride;
    for (size_t i = 0; i < inputs; i += 16, out += 16) vst1q_s8(out, LoadSigned(q + i));
  }
}

const int8_t* GroupRows(const PreparedGroup& group) {
  return reinterpret_cast<const int8_t*>(group.rows) + group.begin;
}

// Four inputs of a row in every 32-bit lane.
HWY_INLINE int8x16_t LoadFour(const int8_t* a) {
  int32_t four;
  std::memcpy(&four, a, sizeof(four));
  return vreinterpretq_s8_s32(vdupq_n_s32(four));
}

// Products of eight inputs are added up in 16 bits two by two, |a w| <= 128 * 127 each, and widened
// in pairs: a sum's four lanes are two columns.
template <size_t kRows>
void MultiplyTileWidening(const int8_t* a, size_t a_stride, const int8_t* b, size_t steps,
                          int32_t* sums) {
  int32x4_t acc[kRows][8];
  HWY_UNROLL(2)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (size_t v = 0; v < 8; ++v) acc[r][v] = vdupq_n_s32(0);
  }
  for (; steps != 0; steps -= 2, a += 8, b += 8 * kPanelColumns) {
    int8x16_t a0[kRows], a1[kRows];
    HWY_UNROLL(2)
    for (size_t r = 0; r < kRows; ++r) {
      a0[r] = LoadFour(a + r * a_stride);
      a1[r] = LoadFour(a + r * a_stride + 4);
    }
    HWY_UNROLL(4)
    for (size_t v = 0; v < 4; ++v) {
      const int8x16_t b0 = vld1q_s8(b + 16 * v), b1 = vld1q_s8(b + 4 * kPanelColumns + 16 * v);
      HWY_UNROLL(2)
      for (size_t r = 0; r < kRows; ++r) {
        int16x8_t low = vmull_s8(vget_low_s8(a0[r]), vget_low_s8(b0));
        int16x8_t high = vmull_high_s8(a0[r], b0);
        low = vmlal_s8(low, vget_low_s8(a1[r]), vget_low_s8(b1));
        high = vmlal_high_s8(high, a1[r], b1);
        acc[r][2 * v] = vpadalq_s16(acc[r][2 * v], low);
        acc[r][2 * v + 1] = vpadalq_s16(acc[r][2 * v + 1], high);
      }
    }
  }
  HWY_UNROLL(2)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < 4; ++v) {
      vst1q_s32(sums + r * kPanelColumns + 4 * v, vpaddq_s32(acc[r][2 * v], acc[r][2 * v + 1]));
    }
  }
}

struct WideningMicro {
  static constexpr size_t kMaxRows = 2;
  static constexpr size_t kInputBytes = 1;
  static constexpr int32_t kZeroShift = 128;
  static constexpr auto Prepare = &PrepareRows;

  static void Multiply(const PreparedGroup& group, size_t count, const int8_t* panel,
                       int32_t* sums) {
    const auto tile = count == 2 ? &MultiplyTileWidening<2> : &MultiplyTileWidening<1>;
    tile(GroupRows(group), group.inputs, panel, group.steps, sums);
  }
};

// sum += a's four inputs of lane kLane times each column's.
template <int kLane>
HWY_INLINE void AddDot(int32x4_t& sum, int8x16_t b, int8x16_t a) {
  asm(".arch armv8.2-a+dotprod\n\tsdot %0.4s, %1.16b, %2.4b[%3]"
      : "+w"(sum)
      : "w"(b), "w"(a), "i"(kLane));
}

template <size_t kRows, int kLane>
HWY_INLINE void AddDotStep(int32x4_t (&acc)[kRows][4], const int8x16_t (&a)[kRows],
                           const int8_t* b) {
  HWY_UNROLL(4)
  for (size_t v = 0; v < 4; ++v) {
    const int8x16_t column = vld1q_s8(b + 16 * v);
    HWY_UNROLL(8)
    for (size_t r = 0; r < kRows; ++r) AddDot<kLane>(acc[r][v], column, a[r]);
  }
}

template <size_t kRows>
void MultiplyTileDot(const int8_t* a, size_t a_stride, const int8_t* b, size_t steps,
                     int32_t* sums) {
  int32x4_t acc[kRows][4];
  HWY_UNROLL(8)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < 4; ++v) acc[r][v] = vdupq_n_s32(0);
  }
  for (; steps != 0; steps -= 4, a += 16, b += 16 * kPanelColumns) {
    int8x16_t rows[kRows];
    HWY_UNROLL(8)
    for (size_t r = 0; r < kRows; ++r) rows[r] = vld1q_s8(a + r * a_stride);
    AddDotStep<kRows, 0>(acc, rows, b);
    AddDotStep<kRows, 1>(acc, rows, b + 4 * kPanelColumns);
    AddDotStep<kRows, 2>(acc, rows, b + 8 * kPanelColumns);
    AddDotStep<kRows, 3>(acc, rows, b + 12 * kPanelColumns);
  }
  HWY_UNROLL(8)
  for (size_t r = 0; r < kRows; ++r) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < 4; ++v) vst1q_s32(sums + r * kPanelColumns + 4 * v, acc[r][v]);
  }
}

using ArmTileFunction = void (*)(const int8_t*, size_t, const int8_t*, size_t, int32_t*);

struct DotTable {
  ArmTileFunction tile[6];

  template <size_t... kRow>
  constexpr void Fill(std::index_sequence<kRow...>) {
    ((tile[kRow] = &MultiplyTileDot<kRow + 1>), ...);
  }
  constexpr DotTable() : tile() { Fill(std::make_index_sequence<6>()); }
};

struct DotMicro {
  static constexpr size_t kMaxRows = 6;
  static constexpr size_t kInputBytes = 1;
  static constexpr int32_t kZeroShift = 128;
  static constexpr auto Prepare = &PrepareRows;

  static void Multiply(const PreparedGroup& group, size_t count, const int8_t* panel,
                       int32_t* sums) {
    static constexpr DotTable kTable;
    kTable.tile[count - 1](GroupRows(group), group.inputs, panel, group.steps, sums);
  }
};

// sum[2, 2] += a [2, 8] times b [2, 8] transposed.
HWY_INLINE void AddProduct2x2(int32x4_t& sum, int8x16_t a, int8x16_t b) {
  asm(".arch armv8.2-a+i8mm\n\tsmmla %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(a), "w"(b));
}

// kPairs pairs of rows by eight columns; a: [kPairs, inputs / 8, 2, 8].
template <size_t kPairs>
void MultiplyTileMatrix(const int8_t* a, size_t pair_stride, const int8_t* b, size_t steps,
                        int32_t* sums) {
  int32x4_t acc[kPairs][4];
  HWY_UNROLL(8)
  for (size_t p = 0; p < kPairs; ++p) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < 4; ++v) acc[p][v] = vdupq_n_s32(0);
  }
  for (; steps != 0; steps -= 2, a += 16, b += 8 * kPanelColumns) {
    // Four columns' inputs 0-3 and 4-7, put side by side.
    int8x16_t columns[4];
    HWY_UNROLL(2)
    for (size_t v = 0; v < 2; ++v) {
      const int32x4_t b0 = vreinterpretq_s32_s8(vld1q_s8(b + 16 * v));
      const int32x4_t b1 = vreinterpretq_s32_s8(vld1q_s8(b + 4 * kPanelColumns + 16 * v));
      columns[2 * v] = vreinterpretq_s8_s32(vzip1q_s32(b0, b1));
      columns[2 * v + 1] = vreinterpretq_s8_s32(vzip2q_s32(b0, b1));
    }
    HWY_UNROLL(8)
    for (size_t p = 0; p < kPairs; ++p) {
      const int8x16_t rows = vld1q_s8(a + p * pair_stride);
      HWY_UNROLL(4)
      for (size_t v = 0; v < 4; ++v) AddProduct2x2(acc[p][v], rows, columns[v]);
    }
  }
  HWY_UNROLL(8)
  for (size_t p = 0; p < kPairs; ++p) {
    int32_t* row = sums + 2 * p * kPanelColumns;
    HWY_UNROLL(2)
    for (size_t v = 0; v < 2; ++v) {
      const int32x4_t left = acc[p][2 * v], right = acc[p][2 * v + 1];
      vst1q_s32(row + 4 * v, vcombine_s32(vget_low_s32(left), vget_low_s32(right)));
      vst1q_s32(row + kPanelColumns + 4 * v,
                vcombine_s32(vget_high_s32(left), vget_high_s32(right)));
    }
  }
}

struct MatrixTable {
  ArmTileFunction tile[6];

  template <size_t... kPair>
  constexpr void Fill(std::index_sequence<kPair...>) {
    ((tile[kPair] = &MultiplyTileMatrix<kPair + 1>), ...);
  }
  constexpr MatrixTable() : tile() { Fill(std::make_index_sequence<6>()); }
};

struct MatrixMicro {
  static constexpr size_t kMaxRows = 12;
  static constexpr size_t kInputBytes = 1;
  static constexpr int32_t kZeroShift = 128;

  // [pairs of rows, inputs / 8, 2, 8] signed bytes; an odd row is its own partner
  static void Prepare(const QuantizedRows& rows, size_t count, size_t inputs, char* to) {
    int8_t* out = reinterpret_cast<int8_t*>(to);
    for (size_t r = 0; r < count; r += 2) {
      const uint8_t* q0 = rows.values + r * rows.stride;
      const uint8_t* q1 = r + 1 < count ? q0 + rows.stride : q0;
      for (size_t i = 0; i < inputs; i += 16, out += 32) {
        const int64x2_t row0 = vreinterpretq_s64_s8(LoadSigned(q0 + i));
        const int64x2_t row1 = vreinterpretq_s64_s8(LoadSigned(q1 + i));
        vst1q_s8(out, vreinterpretq_s8_s64(vzip1q_s64(row0, row1)));
        vst1q_s8(out + 16, vreinterpretq_s8_s64(vzip2q_s64(row0, row1)));
      }
    }
  }

  static void Multiply(const PreparedGroup& group, size_t count, const int8_t* panel,
                       int32_t* sums) {
    static constexpr MatrixTable kTable;
    const int8_t* rows = reinterpret_cast<const int8_t*>(group.rows) + 2 * group.begin;
    for (size_t j = 0; j < kPanelColumns; j += 8) {
      kTable.tile[DivCeil(count, 2) - 1](rows, 2 * group.inputs, panel + 4 * j, group.steps,
                                         sums + j);
    }
  }
};

}  // namespace

void GemmS8Widening(const GemmArgs& args) { MultiplyPrepared<WideningMicro>(args); }
void GemmS8Dot(const GemmArgs& args) { MultiplyPrepared<DotMicro>(args); }
void GemmS8Matrix(const GemmArgs& args) { MultiplyPrepared<MatrixMicro>(args); }

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_ARCH_ARM_A64 && HWY_TARGET == HWY_STATIC_TARGET
