// The ceilings alone: arithmetic loops of every tier, read sweeps at sizes from L1 to memory.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstring>
#include <string>

#include "engine/memory.h"
#include "kernels/cpu.h"
#include "kernels/peak.h"

namespace {

void BenchPeak(benchmark::State& state, const pozor::PeakLoop& loop) {
  constexpr size_t kIterations = 10000;
  for (auto _ : state) loop.run(kIterations);
  state.counters["FLOP/s"] =
      benchmark::Counter(loop.ops_per_iteration * static_cast<double>(kIterations),
                         benchmark::Counter::kIsIterationInvariantRate);
}

void BenchReads(benchmark::State& state) {
  const auto bytes = static_cast<size_t>(state.range(0));
  const pozor::AlignedBuffer buffer(bytes, /*huge_pages=*/true);
  std::memset(buffer.data(), 1, bytes);
  for (auto _ : state) benchmark::DoNotOptimize(pozor::ReadSweep(buffer.data(), bytes));
  state.SetBytesProcessed(static_cast<int64_t>(bytes) * state.iterations());
}

}  // namespace

int main(int argc, char** argv) {
  const auto tiers = pozor::SupportedCpuTiers();
  for (const pozor::PeakLoop& loop : pozor::AllPeakLoops()) {
    if (std::find(tiers.begin(), tiers.end(), loop.tier) == tiers.end()) continue;
    benchmark::RegisterBenchmark(("peak/" + std::string(loop.name)).c_str(), BenchPeak, loop);
  }
  benchmark::RegisterBenchmark("read", BenchReads)->RangeMultiplier(4)->Range(16 << 10, 256 << 20);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
