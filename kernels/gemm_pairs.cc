// int8 micro-kernels of 16-bit multiply-add pairs, for x86 CPUs without a byte dot product.
//
// Bytes of a K group of four are taken as 16-bit pairs (0, 2) and (1, 3): weights by two shifts of
// the packed vector, activations beforehand. Per 16 sums that is 2.2 instructions for two products
// where f32 takes one for one: 1.4 times its speed with three vector ports, no gain with two.
#include <utility>

#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_pairs.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/gemm_prepared-inl.h"
#include "kernels/simd-inl.h"
#include "kernels/vnni-inl.h"

#if HWY_ARCH_X86

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

using VI = hn::Vec<DI32>;

// The K loop of kRows rows and kVectors vectors of columns. pairs: [kRows, steps, 2] at row_stride;
// panel: at the tile's first column.
template <size_t kRows, size_t kVectors>
void MultiplyTilePairs(const int32_t* HWY_RESTRICT pairs, size_t row_stride,
                       const int8_t* HWY_RESTRICT panel, size_t steps, int32_t* HWY_RESTRICT sums) {
  const DI32 di;
  const D16 d16;
  VI acc[kRows][kVectors];
  HWY_UNROLL(16)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) acc[i][v] = hn::Zero(di);
  }
  for (; steps != 0; --steps, panel += 4 * kPanelColumns, pairs += 2) {
    hn::Vec<D16> even[kVectors], odd[kVectors];
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      const auto bytes = hn::Load(d16, reinterpret_cast<const int16_t*>(panel + 4 * kLanes * v));
      even[v] = hn::ShiftRight<8>(hn::ShiftLeft<8>(bytes));
      odd[v] = hn::ShiftRight<8>(bytes);
    }
    HWY_UNROLL(16)
    for (size_t i = 0; i < kRows; ++i) {
      const auto pair0 = hn::BitCast(d16, hn::Set(di, pairs[i * row_stride]));
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        acc[i][v] = hn::Add(acc[i][v], hn::WidenMulPairwiseAdd(di, pair0, even[v]));
      }
      const auto pair1 = hn::BitCast(d16, hn::Set(di, pairs[i * row_stride + 1]));
      HWY_UNROLL(4)
      for (size_t v = 0; v < kVectors; ++v) {
        acc[i][v] = hn::Add(acc[i][v], hn::WidenMulPairwiseAdd(di, pair1, odd[v]));
      }
    }
  }
  HWY_UNROLL(16)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) POZOR_KEEP_IN_REGISTER(acc[i][v]);
  }
  HWY_UNROLL(16)
  for (size_t i = 0; i < kRows; ++i) {
    HWY_UNROLL(4)
    for (size_t v = 0; v < kVectors; ++v) {
      hn::Store(acc[i][v], di, sums + i * kPanelColumns + v * kLanes);
    }
  }
}

using MultiplyTileFunction = void (*)(const int32_t*, size_t, const int8_t*, size_t, int32_t*);

template <size_t kRows, size_t kVectors>
struct PairTable {
  MultiplyTileFunction tile[kRows];

  template <size_t... kRow>
  constexpr void Fill(std::index_sequence<kRow...>) {
    ((tile[kRow] = &MultiplyTilePairs<kRow + 1, kVectors>), ...);
  }
  constexpr PairTable() : tile() { Fill(std::make_index_sequence<kRows>()); }
};

template <size_t kRows, size_t kVectors>
struct PairMicro {
  static constexpr size_t kMaxRows = kRows;
  static constexpr size_t kInputBytes = 2;
  static constexpr int32_t kZeroShift = 0;

  // [rows, inputs / 4, 2] pairs
  static void Prepare(const QuantizedRows& rows, size_t count, size_t inputs, char* to) {
    const hn::FixedTag<int32_t, 4> d32;
    const hn::FixedTag<uint16_t, 8> d16;
    int32_t* pairs = reinterpret_cast<int32_t*>(to);
    for (size_t r = 0; r < count; ++r) {
      const uint8_t* q = rows.values + r * rows.stride;
      for (size_t i = 0; i < inputs; i += 16, pairs += 8) {
        const auto bytes = hn::Load(d16, reinterpret_cast<const uint16_t*>(q + i));
        const auto even = hn::And(bytes, hn::Set(d16, 255));
        const auto odd = hn::ShiftRight<8>(bytes);
        hn::StoreInterleaved2(hn::BitCast(d32, even), hn::BitCast(d32, odd), d32, pairs);
      }
    }
  }

  static void Multiply(const PreparedGroup& group, size_t count, const int8_t* panel,
                       int32_t* sums) {
    static constexpr PairTable<kRows, kVectors> kTable;
    const int32_t* pairs = reinterpret_cast<const int32_t*>(group.rows) + group.begin / 2;
    for (size_t j = 0; j < kPanelColumns; j += kVectors * kLanes) {
      kTable.tile[count - 1](pairs, group.inputs / 2, panel + 4 * j, group.steps, sums + j);
    }
  }
};

}  // namespace

#if HWY_TARGET == HWY_AVX3
void GemmPairsRows16(const GemmArgs& args) { MultiplyPrepared<PairMicro<16, 1>>(args); }
#elif HWY_TARGET == HWY_AVX2
void GemmPairsRows12(const GemmArgs& args) { MultiplyPrepared<PairMicro<12, 1>>(args); }
#else
void GemmPairsRows3(const GemmArgs& args) { MultiplyPrepared<PairMicro<3, 2>>(args); }
#endif

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_ARCH_X86
