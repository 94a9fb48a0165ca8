// Splitting int8 weights in a bounded part and rests: done once a model.
#include "kernels/bounded.h"

#include <cstring>

#include "kernels/check.h"
#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/bounded.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/simd-inl.h"

#if HWY_ARCH_X86

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

constexpr int kLargestSum = 128;     // of a four's weights of one sign
constexpr size_t kInputsOfStep = 8;  // two fours of each column, a step of a panel: [2][16][4]
constexpr size_t kFours = 2 * kPanelColumns;

// Four 2c + f of a step is that of inputs (0, 1, 4, 5) + 2f of column c: here from its first weight
// on, and there from its first input on.
constexpr size_t kPlaceOfWeight[4] = {0, 1, 4 * kPanelColumns, 4 * kPanelColumns + 1};
constexpr size_t kInputOfWeight[4] = {0, 1, 4, 5};

// What the positive and the negative weights of each four of a step amount to, and bit masks of
// those that exceed the bound.
struct FourSums {
  alignas(kAlignment) int16_t above[kFours];
  alignas(kAlignment) int16_t below[kFours];
  uint32_t large_above = 0, large_below = 0;
};

void SumFours(const int8_t* step, FourSums* sums) {
  const hn::CappedTag<int8_t, 32> d8;
  const hn::RebindToUnsigned<decltype(d8)> du8;
  const hn::RepartitionToWide<decltype(d8)> d16;
  constexpr size_t kFoursOfVector = HWY_MAX_LANES_D(decltype(d16));
  const auto one = hn::Set(d8, 1);
  const auto zero = hn::Zero(d8);
  const auto sums_of_pairs = [&](auto bytes) HWY_ATTR {
    return hn::SatWidenMulPairwiseAdd(d16, hn::BitCast(du8, bytes), one);
  };
  // The magnitude of negative bytes; that of -128 is 128, unsigned.
  const auto below_zero = [&](auto bytes) HWY_ATTR {
    return hn::IfThenElseZero(hn::Lt(bytes, zero), hn::Neg(bytes));
  };
  const auto mask_of_large = [&](auto of_fours) HWY_ATTR {
    uint8_t bits[8] = {};
    hn::StoreMaskBits(d16, hn::Gt(of_fours, hn::Set(d16, kLargestSum)), bits);
    return uint32_t{bits[0]} | uint32_t{bits[1]} << 8;
  };
  sums->large_above = sums->large_below = 0;
  for (size_t i = 0; i < kFours; i += kFoursOfVector) {
    const auto first = hn::Load(d8, step + 2 * i);
    const auto second = hn::Load(d8, step + 4 * kPanelColumns + 2 * i);
    const auto above =
        hn::Add(sums_of_pairs(hn::Max(first, zero)), sums_of_pairs(hn::Max(second, zero)));
    const auto below = hn::Add(sums_of_pairs(below_zero(first)), sums_of_pairs(below_zero(second)));
    hn::Store(above, d16, sums->above + i);
    hn::Store(below, d16, sums->below + i);
    sums->large_above |= mask_of_large(above) << i;
    sums->large_below |= mask_of_large(below) << i;
  }
}

// Rests of the columns of a panel's group, as they are met.
struct ColumnRests {
  RestFour* fours;  // [16, capacity]
  size_t capacity;
  uint32_t counts[kPanelColumns];  // of rests

  void Clear() {
    for (size_t c = 0; c < kPanelColumns; ++c) counts[c] = 0, StartFour(c, 0);
  }
  void StartFour(size_t column, size_t four) {
    fours[column * capacity + four] = {{static_cast<uint16_t>(column * kMaxBoundedInputs), 0, 0, 0},
                                       {0, 0, 0, 0}};
  }
  void Add(size_t column, size_t k, int value) {
    const size_t index = counts[column]++;
    if (index % 4 == 0) StartFour(column, index / 4);
    RestFour& four = fours[column * capacity + index / 4];
    four.place[index % 4] = static_cast<uint16_t>(four.place[index % 4] + k);
    four.value[index % 4] = static_cast<int16_t>(value);
  }
};

// Takes `excess` off the largest weights of one sign of a four. `step` is the panel's at input k.
template <int kSign>
void BoundFour(size_t four, int excess, size_t k, int8_t* step, ColumnRests* rests) {
  int8_t* weights = step + 2 * four;
  k += 2 * (four % 2);
  while (excess > 0) {
    int largest = INT32_MIN;  // magnitude, and which of the four it is
    for (int i = 0; i < 4; ++i) {
      largest = HWY_MAX(largest, kSign * weights[kPlaceOfWeight[i]] * 4 + i);
    }
    const int which = largest & 3, taken = kSign * HWY_MIN(excess, largest >> 2);
    int8_t& weight = weights[kPlaceOfWeight[which]];
    weight = static_cast<int8_t>(weight - taken);
    rests->Add(four / 2, k + kInputOfWeight[which], taken);
    excess -= kSign * taken;
  }
}

// Inputs [begin, end) of a panel.
void BoundGroup(size_t begin, size_t end, int8_t* panel, ColumnRests* rests) {
  rests->Clear();
  FourSums sums;
  for (size_t k = begin; k < end; k += kInputsOfStep) {
    int8_t* step = panel + k * kPanelColumns;
    SumFours(step, &sums);
    for (uint32_t left = sums.large_above; left != 0; left &= left - 1) {
      const auto four = static_cast<size_t>(__builtin_ctz(left));
      BoundFour<1>(four, sums.above[four] - kLargestSum, k, step, rests);
    }
    for (uint32_t left = sums.large_below; left != 0; left &= left - 1) {
      const auto four = static_cast<size_t>(__builtin_ctz(left));
      BoundFour<-1>(four, sums.below[four] - kLargestSum, k, step, rests);
    }
  }
}

size_t BoundPanelOf(const BoundPanelArgs& args) {
  const PackedMatrix& b = *args.matrix;
  const size_t bytes = PackedPanelBytes(b.layout, b.k), padded = bytes / kPanelColumns;
  std::memcpy(args.bounded, static_cast<const int8_t*>(b.panels) + args.panel * bytes, bytes);
  ColumnRests rests = {args.scratch, padded / 4 + 1, {}};
  RestFour* to = args.rests;
  for (size_t g = 0; g < b.groups(); ++g) {
    const RestFour* first = to;
    const bool last = g + 1 == b.groups();
    BoundGroup(g == 0 ? 0 : b.split, last ? padded : b.split, args.bounded, &rests);
    for (size_t c = 0; c < kPanelColumns; ++c) {
      const size_t fours = HWY_MAX(1, DivCeil(rests.counts[c], 4));
      std::memcpy(to, rests.fours + c * rests.capacity, fours * sizeof(RestFour));
      to += fours;
    }
    args.counts[g] = static_cast<uint32_t>(to - first);
  }
  return static_cast<size_t>(to - args.rests);
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_ARCH_X86

#if HWY_ONCE
namespace pozor {

#if HWY_ARCH_X86

HWY_EXPORT(BoundPanelOf);

size_t BoundPanel(const BoundPanelArgs& args) {
  POZOR_DCHECK(args.matrix->layout == PackedLayout::kS8x16x4);
  POZOR_DCHECK(args.matrix->k <= kMaxBoundedInputs && args.matrix->split % 16 == 0);
  return HWY_DYNAMIC_DISPATCH(BoundPanelOf)(args);
}

#else

size_t BoundPanel(const BoundPanelArgs&) { POZOR_CHECK(false); }

#endif

bool PrefersBoundedS8() {
  return FindGemmKernel(PackedLayout::kS8x16x4, 128).name.ends_with("-bounded");
}

}  // namespace pozor
#endif  // HWY_ONCE
