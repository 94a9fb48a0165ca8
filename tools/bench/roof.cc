#include "tools/bench/roof.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>

#include "engine/machine.h"
#include "engine/memory.h"
#include "engine/roofline.h"
#include "kernels/gemm.h"
#include "kernels/pack.h"

namespace pozor::tools {
namespace {

using Clock = std::chrono::steady_clock;

double SecondsSince(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Sum of the rates that `body(thread)` returns on threads that start together.
double RateOfTeam(size_t threads, const std::function<double(size_t)>& body) {
  if (threads == 1) return body(0);
  std::vector<double> rates(threads);
  std::atomic<size_t> ready{0};
  std::vector<std::thread> team;
  team.reserve(threads);
  for (size_t i = 0; i < threads; ++i) {
    team.emplace_back([&, i] {
      ready.fetch_add(1);
      while (ready.load(std::memory_order_acquire) != threads) std::this_thread::yield();
      rates[i] = body(i);
    });
  }
  for (std::thread& thread : team) thread.join();
  double sum = 0;
  for (const double rate : rates) sum += rate;
  return sum;
}

double BestOf(double seconds, const std::function<double()>& window) {
  const Clock::time_point start = Clock::now();
  double best = 0;
  do {
    best = std::max(best, window());
  } while (SecondsSince(start) < seconds);
  return best;
}

std::string_view TypesOf(std::string_view name) { return name.substr(name.rfind('-') + 1); }

bool BoundsPrecision(std::string_view loop, std::string_view precision) {
  const std::string_view types = TypesOf(loop);
  if (precision == "int8") return types.find('8') != std::string_view::npos;
  return types == precision;
}

struct Level {
  const char* name;
  size_t bytes;
};

// Buffers of each of `threads` threads. All of them together stay within half of L3 for its entry,
// and go beyond all caches for DRAM's.
std::vector<Level> Levels(size_t threads) {
  constexpr size_t kLargest = size_t{512} << 20;
  const CacheSizes caches = DetectCaches();
  std::vector<Level> levels;
  if (caches.l1d != 0) levels.push_back({"L1", caches.l1d / 2});
  if (caches.l2 != 0) levels.push_back({"L2", caches.l2 / 2});
  // A share: on a virtual machine other guests use the same cache.
  const size_t share = std::min({caches.l3 / 4, 8 * caches.l2, caches.l3 / 2 / threads});
  if (share > caches.l2) levels.push_back({"L3", share});
  const size_t last = std::max(caches.l2, caches.l3);
  if (last != 0 && last < kLargest) {
    const size_t all = std::min(4 * last, kLargest);
    levels.push_back({"DRAM", std::max(all / threads, 4 * caches.l2)});
  }
  return levels;
}

// Bytes a second that `threads` threads read together, each its own buffer of `bytes`.
double ReadRate(size_t threads, size_t bytes, double seconds) {
  std::vector<std::unique_ptr<AlignedBuffer>> buffers;
  for (size_t i = 0; i < threads; ++i) {
    buffers.push_back(std::make_unique<AlignedBuffer>(bytes, /*huge_pages=*/true));
    // Untouched memory is one shared zero page and would be read from L1.
    std::memset(buffers.back()->data(), 1, bytes);
  }
  // A window of about 16 MiB: many sweeps of a small buffer, the next slice of a large one.
  constexpr size_t kWindow = size_t{16} << 20;
  const size_t slice = std::min(bytes, kWindow), sweeps = std::max<size_t>(1, kWindow / bytes);
  size_t offset = 0;
  return BestOf(seconds, [&] {
    const double rate = RateOfTeam(threads, [&](size_t thread) {
      const char* begin = buffers[thread]->As<char>() + offset;
      const Clock::time_point start = Clock::now();
      volatile uint64_t sink = 0;
      for (size_t i = 0; i < sweeps; ++i) sink = sink ^ ReadSweep(begin, slice);
      return static_cast<double>(sweeps * slice) / SecondsSince(start);
    });
    offset = offset + 2 * slice <= bytes ? offset + slice : 0;
    return rate;
  });
}

}  // namespace

std::vector<ComputeRoof> MeasureComputeRoofs(std::span<const size_t> threads, double seconds) {
  std::vector<ComputeRoof> roofs;
  for (const PeakLoop& loop : AllPeakLoops()) {
    if (!IsCpuTierSupported(loop.tier)) continue;
    for (const size_t count : threads) {
      const double rate = BestOf(seconds, [&] {
        return RateOfTeam(count, [&](size_t) { return MeasurePeakWindow(loop, 1e-3); });
      });
      roofs.push_back({std::string(loop.name), count, rate * 1e-9});
    }
  }
  return roofs;
}

std::vector<BandwidthRoof> MeasureBandwidthRoofs(std::span<const size_t> threads, double seconds) {
  std::vector<BandwidthRoof> roofs;
  for (const size_t count : threads) {
    for (const Level& level : Levels(count)) {
      const size_t bytes = RoundUp(level.bytes, 1024);
      roofs.push_back({level.name, bytes, count, ReadRate(count, bytes, seconds) * 1e-9});
    }
  }
  return roofs;
}

const PeakLoop* RoofLoop(std::string_view precision, CpuTier tier) {
  const PeakLoop* best = nullptr;
  for (const PeakLoop& loop : AllPeakLoops()) {
    if (!TierAdmits(tier, loop.tier) || !IsCpuTierSupported(loop.tier)) continue;
    if (!BoundsPrecision(loop.name, precision)) continue;
    if (best == nullptr || loop.tier > best->tier) best = &loop;
  }
  if (best == nullptr && precision.starts_with("bf16")) return RoofLoop("f32", tier);
  return best;
}

double ProbeRoof(size_t threads) {
  static const PeakLoop* const loop = RoofLoop("f32", SupportedCpuTiers().back());
  if (loop == nullptr) return 0;
  double best = 0;
  for (int window = 0; window < 2; ++window) {
    const double rate =
        RateOfTeam(threads, [](size_t) { return MeasurePeakWindow(*loop, 0.5e-3); });
    best = std::max(best, rate / static_cast<double>(threads));
  }
  return best * 1e-9;
}

std::vector<KernelRecord> MeasureKernels(size_t hidden, size_t intermediate, double seconds) {
  struct Shape {
    size_t k, n;
  };
  std::vector<KernelRecord> records;
  for (const Shape shape : {Shape{hidden, 3 * hidden}, Shape{hidden, hidden},
                            Shape{hidden, intermediate}, Shape{intermediate, hidden}}) {
    const size_t panels = DivCeil(shape.n, kPanelColumns);
    AlignedBuffer packed(panels * PackedPanelBytes(PackedLayout::kF32x16, shape.k), true);
    const std::vector<float> weight(shape.k * shape.n, 0.01f);
    PackF32({weight.data(), shape.k, shape.n, 1, shape.k}, nullptr, shape.n, 0, panels,
            reinterpret_cast<float*>(packed.data()));
    PackedMatrix matrix;
    matrix.panels = packed.data();
    matrix.k = shape.k;
    matrix.n = shape.n;
    for (const size_t m : {1, 8, 32, 128}) {
      const std::vector<float> a(m * shape.k, 0.5f);
      std::vector<float> c(m * panels * kPanelColumns);
      GemmArgs args;
      args.a = a.data();
      args.a_stride = shape.k;
      args.m = m;
      args.b = &matrix;
      args.panel_end = panels;
      args.epilogue.c = c.data();
      args.epilogue.c_stride = panels * kPanelColumns;
      const double flops = 2 * static_cast<double>(m) * static_cast<double>(shape.k * shape.n);
      Gemm(args);
      const double rate = BestOf(seconds, [&] {
        const Clock::time_point start = Clock::now();
        Gemm(args);
        return flops / SecondsSince(start);
      });
      const double values = static_cast<double>(shape.k * shape.n + m * (shape.k + shape.n));
      records.push_back({std::string(FindGemmKernel(PackedLayout::kF32x16, m).name), m, shape.n,
                         shape.k, rate * 1e-9, values * sizeof(float)});
    }
  }
  return records;
}

}  // namespace pozor::tools
