// AMX tiles by inline assembly: g++'s intrinsics misplace tiles, clang's want the instruction set
// for the whole function. Only reachable through a row that has checked the CPU.
#if defined(POZOR_KERNELS_AMX_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_AMX_INL_H_
#undef POZOR_KERNELS_AMX_INL_H_
#else
#define POZOR_KERNELS_AMX_INL_H_
#endif

#include <cstring>

#include "kernels/simd-inl.h"

#if HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {

inline constexpr size_t kTileRows = 16;
inline constexpr size_t kTileRowBytes = 64;
inline constexpr size_t kTileBytes = kTileRows * kTileRowBytes;

// What LDTILECFG reads.
struct alignas(64) TileConfig {
  uint8_t palette = 1;
  uint8_t start_row = 0;
  uint8_t reserved[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(TileConfig) == 64);

// Eight whole tiles, set once a thread; compared, because other code of the process may use tiles.
inline void ConfigureTiles() {
  static constexpr TileConfig kConfig;
  TileConfig current;
  asm volatile("sttilecfg %0" : "=m"(current));
  if (std::memcmp(&current, &kConfig, sizeof(kConfig)) == 0) return;
  asm volatile("ldtilecfg %0" ::"m"(kConfig));
}

template <int kTile>
HWY_INLINE void ZeroTile() {
  asm volatile("tilezero %%tmm%c0" ::"i"(kTile));
}

template <int kTile>
HWY_INLINE void LoadTile(const uint8_t* rows, size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(rows), "r"(stride), "i"(kTile) : "memory");
}

template <int kTile>
HWY_INLINE void StoreTileTo(void* rows, size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(rows), "r"(stride), "i"(kTile) : "memory");
}

struct Bytes {
  using Sum = int32_t;
  static constexpr size_t kStep = 64;  // inputs in 64 bytes
  static constexpr size_t kParts = 1;  // of a value: tiles of A and B for a step

  template <int kC, int kA, int kB>
  static HWY_INLINE void Dot() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
  }
};

struct Halves {
  using Sum = float;
  static constexpr size_t kStep = 32;
  static constexpr size_t kParts = 1;

  template <int kC, int kA, int kB>
  static HWY_INLINE void Dot() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(kC), "i"(kA), "i"(kB));
  }
};

// High and low parts, one behind the other.
struct SplitHalves : Halves {
  static constexpr size_t kParts = 2;
};

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET == HWY_AVX3

#endif  // POZOR_KERNELS_AMX_INL_H_
