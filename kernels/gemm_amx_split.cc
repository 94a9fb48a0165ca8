// AMX micro-kernel of split bf16: high parts are multiplied with both parts of the other side, and
// all three products are added to one sum; low by low, at most 2^-16 of a term, is left out.
//
// Sums follow the hardware's rules, as those of bf16 do (gemm_amx.cc).
#include <cstddef>

#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_amx_split.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/amx-inl.h"
#include "kernels/bf16-inl.h"
#include "kernels/gemm_amx-inl.h"
#include "kernels/simd-inl.h"

#if HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

template <>
HWY_INLINE void StageRow<SplitHalves>(const float* x, size_t k, size_t padded_k, uint8_t* to) {
  SplitRowToBf16(x, k, padded_k, reinterpret_cast<Bf16*>(to));
}

// High by low, high by high, low by high: neighbours share two of their tiles, and a sum waits for
// itself as long as four tiles allow. The order is the same for any number of tiles.
template <size_t kRowTiles, size_t kPanels>
struct TileStep<SplitHalves, kRowTiles, kPanels> {
  const uint8_t *a0, *a1, *b0, *b1;
  size_t stride0, stride1;

  HWY_INLINE void Run() const {
    LoadTile<4>(a0, stride0);
    if constexpr (kRowTiles == 2) LoadTile<5>(a1, stride1);
    LoadPanels(kTileBytes);
    MultiplyAll();
    LoadPanels(0);
    MultiplyAll();
    LoadTile<4>(a0 + kTileRowBytes, stride0);
    if constexpr (kRowTiles == 2) LoadTile<5>(a1 + kTileRowBytes, stride1);
    MultiplyAll();
  }

 private:
  HWY_INLINE void LoadPanels(size_t offset) const {
    LoadTile<6>(b0 + offset, kTileRowBytes);
    if constexpr (kPanels == 2) LoadTile<7>(b1 + offset, kTileRowBytes);
  }
  HWY_INLINE void MultiplyAll() const {
    SplitHalves::Dot<0, 4, 6>();
    if constexpr (kPanels == 2) SplitHalves::Dot<1, 4, 7>();
    if constexpr (kRowTiles == 2) {
      SplitHalves::Dot<2, 5, 6>();
      if constexpr (kPanels == 2) SplitHalves::Dot<3, 5, 7>();
    }
  }
};

}  // namespace

void GemmAmxSplitBf16(const GemmArgs& args) {
  if (args.m == 0) return;
  ConfigureTiles();
  MultiplyHalves<SplitHalves>(args);
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET == HWY_AVX3
