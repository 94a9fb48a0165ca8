// The tile instructions themselves: on a CPU with AMX this pins the emulator's model of them to the
// hardware, elsewhere it tests the emulator.
#include <doctest/doctest.h>

#if defined(__x86_64__)

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "kernels/gemm.h"
#include "tests/support/amx_emulator.h"
#include "tests/support/random.h"

namespace pozor::test {
namespace {

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

// c [m, n] += a [m, k] b [k, n] in tiles 1, 2 and 3; k and n in dwords.
struct Sizes {
  int m, k, n;
};
constexpr Sizes kSizes[] = {{16, 16, 16}, {1, 1, 1}, {7, 3, 16}, {16, 5, 9}, {3, 16, 2}};

void Configure(const Sizes& s) {
  TileConfig config;
  config.rows[1] = config.rows[2] = static_cast<uint8_t>(s.m);
  config.rows[3] = static_cast<uint8_t>(s.k);
  config.row_bytes[1] = config.row_bytes[3] = static_cast<uint16_t>(4 * s.n);
  config.row_bytes[2] = static_cast<uint16_t>(4 * s.k);
  asm volatile("ldtilecfg %0" ::"m"(config));
}

constexpr size_t kStride = 80;  // bytes from row to row in memory
using Memory = std::vector<uint8_t>;

void LoadOperands(const Memory& a, const Memory& b, const Memory& c) {
  const size_t stride = kStride / 2;
  asm volatile("tileloadd (%0,%1,2), %%tmm2" ::"r"(a.data()), "r"(stride) : "memory");
  asm volatile("tileloaddt1 -16(%0,%1,1), %%tmm3" ::"r"(b.data() + 16), "r"(kStride) : "memory");
  // Registers that take the other bit of each field.
  const uint8_t* base = c.data() + 4096;
  asm volatile(
      "mov %0, %%r9\n\t mov %1, %%r10\n\t tileloadd -4096(%%r9,%%r10,1), %%tmm1" ::"r"(base),
      "r"(kStride)
      : "r9", "r10", "memory");
}

Memory RandomBytes(uint64_t seed) {
  Random random(seed);
  Memory memory(16 * kStride);
  for (uint8_t& byte : memory) byte = static_cast<uint8_t>(random.Index(256));
  return memory;
}

template <class T>
T At(const Memory& memory, int row, int index) {
  T value;
  std::memcpy(
      &value,
      memory.data() + static_cast<size_t>(row) * kStride + static_cast<size_t>(index) * sizeof(T),
      sizeof(T));
  return value;
}

template <class A, class B, class Multiply>
void CheckBytes(const Sizes& s, const Multiply& multiply) {
  const Memory a = RandomBytes(1), b = RandomBytes(2), c = RandomBytes(3);
  Memory got = RandomBytes(4);
  const Memory before = got;
  Configure(s);
  LoadOperands(a, b, c);
  multiply();
  asm volatile("tilestored %%tmm1, (%0,%1,1)" ::"r"(got.data()), "r"(kStride) : "memory");
  for (int m = 0; m < 16; ++m) {
    for (int n = 0; n < static_cast<int>(kStride) / 4; ++n) {
      uint32_t want = At<uint32_t>(before, m, n);
      if (m < s.m && n < s.n) {
        want = At<uint32_t>(c, m, n);
        for (int k = 0; k < 4 * s.k; ++k) {
          want += static_cast<uint32_t>(int{At<A>(a, m, k)} * At<B>(b, k / 4, 4 * n + k % 4));
        }
      }
      CHECK(At<uint32_t>(got, m, n) == want);
    }
  }
}

TEST_CASE("which AMX this is") {
  const std::string which = AmxEmulator::Description();
  MESSAGE(which);
}

TEST_CASE("dot products of bytes of either sign") {
  if (!AmxEmulator::Available()) return;
  const AmxEmulator amx;
  for (const Sizes& s : kSizes) {
    CheckBytes<uint8_t, uint8_t>(s, [] { asm volatile("tdpbuud %tmm3, %tmm2, %tmm1"); });
    CheckBytes<uint8_t, int8_t>(s, [] { asm volatile("tdpbusd %tmm3, %tmm2, %tmm1"); });
    CheckBytes<int8_t, uint8_t>(s, [] { asm volatile("tdpbsud %tmm3, %tmm2, %tmm1"); });
    CheckBytes<int8_t, int8_t>(s, [] { asm volatile("tdpbssd %tmm3, %tmm2, %tmm1"); });
  }
}

float Flushed(float x) {
  return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
}

float Half(const Memory& memory, int row, int index) {
  const uint32_t bits = uint32_t{At<uint16_t>(memory, row, index)} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return Flushed(value);
}

// Normal values with a few zeros, denormals and products that are denormal.
Memory RandomHalves(uint64_t seed) {
  Memory memory(16 * kStride);
  Random random(seed);
  const std::vector<float> values = NormalFloats(memory.size() / 2, seed);
  for (size_t i = 0; i < values.size(); ++i) {
    float value = values[i];
    if (random.Index(8) == 0) value *= 1e-20f;
    if (random.Index(16) == 0) value = 0;
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    if (random.Index(32) == 0) bits &= 0x807F0000u;
    const auto upper = static_cast<uint16_t>(bits >> 16);
    std::memcpy(memory.data() + 2 * i, &upper, sizeof(upper));
  }
  return memory;
}

TEST_CASE("dot products of bf16: even and odd inputs apart, then both, then the sum so far") {
  if (!AmxEmulator::Available()) return;
  const AmxEmulator amx;
  for (const Sizes& s : kSizes) {
    const Memory a = RandomHalves(5), b = RandomHalves(6);
    Memory c(16 * kStride), got(16 * kStride);
    const std::vector<float> start = NormalFloats(c.size() / 4, 7);
    std::memcpy(c.data(), start.data(), c.size());
    Configure(s);
    LoadOperands(a, b, c);
    asm volatile("tdpbf16ps %tmm3, %tmm2, %tmm1");
    asm volatile("tilestored %%tmm1, (%0,%1,1)" ::"r"(got.data()), "r"(kStride) : "memory");
    for (int m = 0; m < s.m; ++m) {
      for (int n = 0; n < s.n; ++n) {
        float even = 0, odd = 0;
        for (int k = 0; k < s.k; ++k) {
          even = Flushed(std::fma(Half(a, m, 2 * k), Half(b, k, 2 * n), even));
          odd = Flushed(std::fma(Half(a, m, 2 * k + 1), Half(b, k, 2 * n + 1), odd));
        }
        CHECK(At<float>(got, m, n) == Flushed(At<float>(c, m, n) + Flushed(even + odd)));
      }
    }
  }
}

TEST_CASE("configurations, zeros and release") {
  if (!AmxEmulator::Available()) return;
  const AmxEmulator amx;
  const Sizes s = {5, 4, 3};
  Configure(s);
  TileConfig stored;
  asm volatile("sttilecfg %0" : "=m"(stored));
  CHECK(int{stored.palette} == 1);
  CHECK(int{stored.rows[1]} == 5);
  CHECK(int{stored.row_bytes[2]} == 16);
  CHECK(int{stored.rows[0]} == 0);

  // A configuration zeroes all tiles; TILEZERO one.
  const Memory c = RandomBytes(8);
  LoadOperands(c, c, c);
  asm volatile("tilezero %tmm1");
  Memory got = RandomBytes(9);
  asm volatile("tilestored %%tmm1, (%0,%1,1)" ::"r"(got.data()), "r"(kStride) : "memory");
  CHECK(At<uint32_t>(got, 4, 2) == 0);
  asm volatile("tilestored %%tmm2, (%0,%1,1)" ::"r"(got.data()), "r"(kStride) : "memory");
  CHECK(At<uint32_t>(got, 4, 3) == At<uint32_t>(c, 4, 3));
  Configure(s);
  asm volatile("tilestored %%tmm2, (%0,%1,1)" ::"r"(got.data()), "r"(kStride) : "memory");
  CHECK(At<uint32_t>(got, 4, 3) == 0);

  asm volatile("tilerelease");
  asm volatile("sttilecfg %0" : "=m"(stored));
  CHECK(int{stored.palette} == 0);
}

TEST_CASE("every thread has tiles of its own") {
  if (!AmxEmulator::Available()) return;
  const AmxEmulator amx;
  Configure({2, 2, 2});
  int other = -1;
  std::thread([&other] {
    TileConfig stored;
    asm volatile("sttilecfg %0" : "=m"(stored));
    other = stored.palette;
  }).join();
  CHECK(other == 0);
  asm volatile("tilerelease");
}

TEST_CASE("kernels use tiles: the emulator sees them, or the CPU has them") {
  if (!AmxEmulator::Available()) return;
  const AmxEmulator amx;
  const unsigned long before = AmxEmulator::Count();
  const size_t k = 64, n = 32, m = 20;
  const std::vector<float> source = NormalFloats(k * n, 1), a = NormalFloats(m * k, 2);
  alignas(64) Bf16 panels[2 * 64 * 16];
  const WeightView view{.data = source.data(), .k = k, .n = n, .k_stride = 1, .n_stride = k};
  PackBf16(view, nullptr, n, 0, 2, panels);
  const PackedMatrix matrix{.layout = PackedLayout::kBf16x16x2, .panels = panels, .k = k, .n = n};
  std::vector<float> c(m * n);
  GemmArgs args;
  args.a = a.data();
  args.a_stride = k;
  args.m = m;
  args.b = &matrix;
  args.panel_end = 2;
  args.epilogue.c = c.data();
  args.epilogue.c_stride = n;
  for (const GemmKernel& kernel : AllGemmKernels()) {
    if (kernel.tier == CpuTier::kAmx && kernel.layout == PackedLayout::kBf16x16x2) kernel.run(args);
  }
  CHECK((AmxEmulator::Count() > before) == !CpuRunsTier(CpuTier::kAmx));
}

}  // namespace
}  // namespace pozor::test

#endif  // __x86_64__
