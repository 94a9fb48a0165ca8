#include "tests/support/amx_emulator.h"

#include <atomic>
#include <bit>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <optional>

#if defined(__x86_64__) && defined(__linux__)
#include <ucontext.h>
#endif

namespace pozor::test {

bool RunsHere(const GemmKernel& kernel) {
  return CpuRunsTier(kernel.tier) || (kernel.tier == CpuTier::kAmx && AmxEmulator::Alive());
}

AmxTier::AmxTier() {
  if (!AmxEmulator::Available()) return;
  EmulateCpuTier(CpuTier::kAmx);
  SetCpuTierCap(CpuTier::kAmx);
}

AmxTier::~AmxTier() {
  ClearCpuTierCap();
  EmulateCpuTier(std::nullopt);
}

#if defined(__x86_64__) && defined(__linux__)

namespace {

constexpr int kTiles = 8;
constexpr int kMaxRows = 16;
constexpr int kMaxRowBytes = 64;

struct Tile {
  uint8_t bytes[kMaxRows][kMaxRowBytes];
};

// The 64 bytes of a tile configuration in memory.
struct Config {
  uint8_t palette;
  uint8_t start_row;
  uint8_t reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};
static_assert(sizeof(Config) == 64);

struct TileState {
  Config config;
  Tile tiles[kTiles];
};
thread_local TileState state;
std::atomic<unsigned long> emulated{0};

// A VEX instruction of map 0F38.
struct Instruction {
  uint8_t opcode;
  uint8_t prefix;  // 0: none, 1: 66, 2: F3, 3: F2
  int reg, rm;     // ModRM, extended
  int vvvv;
  bool memory;
  uintptr_t address;  // of a memory operand
  bool has_index;
  uintptr_t stride;  // index register times scale
  uintptr_t base;    // base and displacement
  int length;
};

uintptr_t Register(const ucontext_t& context, int number) {
  static constexpr int kOrder[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                   REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                   REG_R12, REG_R13, REG_R14, REG_R15};
  return static_cast<uintptr_t>(context.uc_mcontext.gregs[kOrder[number]]);
}

template <class T>
T ReadAt(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(value));
  return value;
}

// Registers hold addresses as numbers.
void* AtAddress(uintptr_t address) {
  return reinterpret_cast<void*>(address);  // NOLINT(performance-no-int-to-ptr): as they are
}

// The memory operand that ModRM `mod`, `rm` and what follows at `at` name.
void DecodeMemory(const ucontext_t& context, const uint8_t* start, const uint8_t* at, int mod,
                  int rm, int extend_index, int extend_base, Instruction* out) {
  bool has_base = true;
  int base = rm + extend_base;
  if (rm == 4) {
    const uint8_t sib = *at++;
    const int index = (sib >> 3 & 7) + extend_index;
    base = (sib & 7) + extend_base;
    has_base = !((sib & 7) == 5 && mod == 0);
    out->has_index = true;
    if (index != 4) out->stride = Register(context, index) << (sib >> 6);
  }
  const bool relative = rm == 5 && mod == 0;
  int64_t displacement = 0;
  if (mod == 1) {
    displacement = ReadAt<int8_t>(at);  // NOLINT(bugprone-signed-char-misuse): it has a sign
    at += 1;
  } else if (mod == 2 || relative || !has_base) {
    displacement = ReadAt<int32_t>(at);
    at += 4;
  }
  out->length = static_cast<int>(at - start);
  out->base = static_cast<uintptr_t>(displacement);
  if (relative) {
    out->base += reinterpret_cast<uintptr_t>(at);
  } else if (has_base) {
    out->base += Register(context, base);
  }
  out->address = out->base + out->stride;
}

// False if it is no 128-bit VEX instruction of map 0F38 with W0.
bool Decode(const ucontext_t& context, Instruction* out) {
  const auto next = static_cast<uintptr_t>(context.uc_mcontext.gregs[REG_RIP]);
  const auto* start = static_cast<const uint8_t*>(AtAddress(next));
  constexpr uint8_t kThreeByteVex = 0xC4;
  if (start[0] != kThreeByteVex || (start[1] & 0x1F) != 2) return false;
  if ((start[2] & 0x84) != 0) return false;  // W, L
  *out = {};
  const int extend_reg = (start[1] & 0x80) != 0 ? 0 : 8;
  const int extend_index = (start[1] & 0x40) != 0 ? 0 : 8;
  const int extend_base = (start[1] & 0x20) != 0 ? 0 : 8;
  out->prefix = start[2] & 3;
  out->vvvv = ~(start[2] >> 3) & 15;
  out->opcode = start[3];
  const uint8_t modrm = start[4];
  const int mod = modrm >> 6, rm = modrm & 7;
  out->reg = (modrm >> 3 & 7) + extend_reg;
  out->rm = rm + extend_base;
  out->memory = mod != 3;
  out->length = 5;
  if (out->memory) {
    DecodeMemory(context, start, start + 5, mod, rm, extend_index, extend_base, out);
  }
  return true;
}

bool IsConfigured(int tile) {
  return tile < kTiles && state.config.palette == 1 && state.config.rows[tile] != 0;
}

int Rows(int tile) { return state.config.rows[tile]; }
int RowBytes(int tile) { return state.config.row_bytes[tile]; }

// Zeros beyond a tile's configured size.
void ClearRest(int tile) {
  for (int r = 0; r < kMaxRows; ++r) {
    const int used = r < Rows(tile) ? RowBytes(tile) : 0;
    std::memset(state.tiles[tile].bytes[r] + used, 0, static_cast<size_t>(kMaxRowBytes - used));
  }
}

bool LoadConfig(const Instruction& in) {
  Config config;
  std::memcpy(&config, AtAddress(in.address), sizeof(config));
  if (config.palette > 1) return false;
  for (int t = 0; t < 16; ++t) {
    const bool empty = config.rows[t] == 0 && config.row_bytes[t] == 0;
    const bool whole = t < kTiles && config.rows[t] >= 1 && config.rows[t] <= kMaxRows &&
                       config.row_bytes[t] >= 1 && config.row_bytes[t] <= kMaxRowBytes;
    if (config.palette == 1 && !empty && !whole) return false;
  }
  std::memset(&state, 0, sizeof(state));
  if (config.palette == 1) state.config = config;
  return true;
}

bool Load(const Instruction& in) {
  if (!in.has_index || !IsConfigured(in.reg)) return false;
  for (int r = 0; r < Rows(in.reg); ++r) {
    const uintptr_t row = in.base + static_cast<uintptr_t>(r) * in.stride;
    std::memcpy(state.tiles[in.reg].bytes[r], AtAddress(row),
                static_cast<size_t>(RowBytes(in.reg)));
  }
  ClearRest(in.reg);
  return true;
}

bool Store(const Instruction& in) {
  if (!in.has_index || !IsConfigured(in.reg)) return false;
  for (int r = 0; r < Rows(in.reg); ++r) {
    const uintptr_t row = in.base + static_cast<uintptr_t>(r) * in.stride;
    std::memcpy(AtAddress(row), state.tiles[in.reg].bytes[r],
                static_cast<size_t>(RowBytes(in.reg)));
  }
  return true;
}

// c += a b: tiles distinct and of agreeing shapes, whole dwords.
bool CanMultiply(int c, int a, int b) {
  if (!IsConfigured(c) || !IsConfigured(a) || !IsConfigured(b)) return false;
  if (c == a || c == b || a == b) return false;
  if (RowBytes(c) % 4 != 0 || RowBytes(a) % 4 != 0 || RowBytes(b) % 4 != 0) return false;
  return Rows(c) == Rows(a) && RowBytes(c) == RowBytes(b) && RowBytes(a) / 4 == Rows(b);
}

int32_t ByteOf(const Tile& tile, int row, int byte, bool is_signed) {
  const uint8_t value = tile.bytes[row][byte];
  return is_signed ? static_cast<int8_t>(value) : value;
}

bool MultiplyBytes(const Instruction& in) {
  const int c = in.reg, a = in.rm, b = in.vvvv;
  if (!CanMultiply(c, a, b)) return false;
  const bool a_signed = in.prefix >= 2, b_signed = (in.prefix & 1) != 0;  // uu us su ss
  for (int m = 0; m < Rows(c); ++m) {
    for (int n = 0; n < RowBytes(c) / 4; ++n) {
      uint8_t* at = state.tiles[c].bytes[m] + 4 * n;
      uint32_t sum = ReadAt<uint32_t>(at);
      for (int k = 0; k < RowBytes(a); ++k) {
        const int32_t x = ByteOf(state.tiles[a], m, k, a_signed);
        sum += static_cast<uint32_t>(x * ByteOf(state.tiles[b], k / 4, 4 * n + k % 4, b_signed));
      }
      std::memcpy(at, &sum, sizeof(sum));
    }
  }
  ClearRest(c);
  return true;
}

// The kernels around tiles need AVX-512 as well, and whole models take millions of these: compilers
// make vectors of the loops over columns. The namespace tells tools/check_spills.py.
namespace N_AVX512 {
#define POZOR_AVX512 __attribute__((target("avx512f")))

// Denormals count as zero on the way in and out.
POZOR_AVX512 inline float Flushed(float x) {
  const auto bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits & 0x7F800000u) == 0 ? bits & 0x80000000u : bits);
}

// The bf16 in the lower or the upper half of a word.
POZOR_AVX512 inline float Half(uint32_t word, bool upper) {
  return Flushed(std::bit_cast<float>(upper ? word & 0xFFFF0000u : word << 16));
}

POZOR_AVX512 bool MultiplyHalves(const Instruction& in) {
  const int c = in.reg, a = in.rm, b = in.vvvv;
  if (!CanMultiply(c, a, b)) return false;
  constexpr int kColumns = kMaxRowBytes / 4;  // those beyond the tile are zeros
  for (int m = 0; m < Rows(c); ++m) {
    float even[kColumns] = {}, odd[kColumns] = {}, sums[kColumns];
    for (int k = 0; k < RowBytes(a) / 4; ++k) {
      const auto x = ReadAt<uint32_t>(state.tiles[a].bytes[m] + 4 * k);
      const float x_even = Half(x, false), x_odd = Half(x, true);
      uint32_t y[kColumns];
      std::memcpy(y, state.tiles[b].bytes[k], sizeof(y));
      for (int n = 0; n < kColumns; ++n) {
        even[n] = Flushed(__builtin_fmaf(x_even, Half(y[n], false), even[n]));
        odd[n] = Flushed(__builtin_fmaf(x_odd, Half(y[n], true), odd[n]));
      }
    }
    std::memcpy(sums, state.tiles[c].bytes[m], sizeof(sums));
    for (int n = 0; n < kColumns; ++n) {
      sums[n] = Flushed(Flushed(sums[n]) + Flushed(even[n] + odd[n]));
    }
    std::memcpy(state.tiles[c].bytes[m], sums, sizeof(sums));
  }
  ClearRest(c);
  return true;
}

}  // namespace N_AVX512

bool Configure(const Instruction& in) {
  if (!in.memory && in.prefix == 0 && in.reg == 0 && in.rm == 0) {  // TILERELEASE
    std::memset(&state, 0, sizeof(state));
    return true;
  }
  if (in.memory && in.prefix == 0 && in.reg == 0) return LoadConfig(in);
  if (in.memory && in.prefix == 1 && in.reg == 0) {  // STTILECFG
    std::memcpy(AtAddress(in.address), &state.config, sizeof(state.config));
    return true;
  }
  if (!in.memory && in.prefix == 3 && in.rm == 0 && IsConfigured(in.reg)) {  // TILEZERO
    std::memset(&state.tiles[in.reg], 0, sizeof(Tile));
    return true;
  }
  return false;
}

bool Execute(const Instruction& in) {
  switch (in.opcode) {
    case 0x49:
      return Configure(in);
    case 0x4B:
      if (!in.memory) return false;
      if (in.prefix == 3 || in.prefix == 1) return Load(in);
      return in.prefix == 2 && Store(in);
    case 0x5C:
      return !in.memory && in.prefix == 2 && N_AVX512::MultiplyHalves(in);
    case 0x5E:
      return !in.memory && MultiplyBytes(in);
    default:
      return false;
  }
}

struct sigaction previous;
int alive = 0;  // emulators; tests make them on one thread

void OnIllegalInstruction(int, siginfo_t*, void* opaque) {
  auto* context = static_cast<ucontext_t*>(opaque);
  Instruction instruction;
  if (Decode(*context, &instruction) && Execute(instruction)) {
    context->uc_mcontext.gregs[REG_RIP] += instruction.length;
    emulated.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  sigaction(SIGILL, &previous, nullptr);  // the instruction is tried again, and reported
}

}  // namespace

AmxEmulator::AmxEmulator() {
  struct sigaction action = {};
  action.sa_sigaction = &OnIllegalInstruction;
  action.sa_flags = SA_SIGINFO;
  sigemptyset(&action.sa_mask);
  sigaction(SIGILL, &action, &previous);
  ++alive;
}

AmxEmulator::~AmxEmulator() {
  --alive;
  sigaction(SIGILL, &previous, nullptr);
}

bool AmxEmulator::Alive() { return alive > 0 && Available(); }

bool AmxEmulator::Available() { return CpuRunsTier(CpuTier::kAvx512); }

const char* AmxEmulator::Description() {
  if (!Available()) return "none: the kernels around AMX tiles need AVX-512";
  return CpuRunsTier(CpuTier::kAmx) ? "native AMX" : "emulated: no AMX";
}

unsigned long AmxEmulator::Count() { return emulated.load(std::memory_order_relaxed); }

#else

AmxEmulator::AmxEmulator() = default;
AmxEmulator::~AmxEmulator() = default;
bool AmxEmulator::Alive() { return false; }
bool AmxEmulator::Available() { return false; }
const char* AmxEmulator::Description() { return "none: AMX is x86-64's"; }
unsigned long AmxEmulator::Count() { return 0; }

#endif

}  // namespace pozor::test
