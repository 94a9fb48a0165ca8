// Attention of one head over lengths 8 to 8192: GFLOP/s of the two products (exponentials are not
// counted) and their share of the FMA peak measured just before. AttentionS8 is the same with
// int8 products. POZOR_CPU caps the tier.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>

#include "engine/memory.h"
#include "engine/roofline.h"
#include "kernels/attention.h"
#include "kernels/attention_s8.h"
#include "kernels/cpu.h"
#include "kernels/peak.h"
#include "kernels/types.h"

namespace {

// Best f32 rate of the active tier in a few short windows, in operations a second.
double PeakNow() {
  const pozor::PeakLoop* best = nullptr;
  for (const pozor::PeakLoop& loop : pozor::AllPeakLoops()) {
    const bool f32 = loop.name.find("f32") != loop.name.npos;
    if (f32 && loop.tier <= pozor::ActiveCpuTier()) best = &loop;
  }
  double peak = 0.0;
  for (int i = 0; best != nullptr && i < 5; ++i) {
    peak = std::max(peak, pozor::MeasurePeakWindow(*best, 2e-4));
  }
  return peak;
}

// q, k, v, out: [tokens, dim]; then scratch.
struct Buffers {
  size_t tokens, dim;
  pozor::AlignedBuffer memory;
  float *q, *k, *v, *out, *scratch;

  Buffers(size_t text_tokens, size_t head_dim)
      : tokens(text_tokens),
        dim(head_dim),
        memory((4 * tokens * dim + std::max(pozor::AttentionScratchFloats(tokens, dim),
                                            pozor::AttentionS8ScratchFloats(tokens, dim))) *
               sizeof(float)),
        q(memory.As<float>()),
        k(q + tokens * dim),
        v(k + tokens * dim),
        out(v + tokens * dim),
        scratch(out + tokens * dim) {
    uint32_t state = 1;
    for (float* x = q; x != out; ++x) {
      state = state * 1664525u + 1013904223u;
      *x = static_cast<float>(state >> 8) * 0x1p-23f - 1.0f;
    }
  }

  pozor::AttentionArgs Args() const {
    pozor::AttentionArgs args;
    args.q = q;
    args.k = k;
    args.v = v;
    args.head_dim = dim;
    args.head_stride = dim;
    args.tokens = tokens;
    args.query_end = tokens;
    args.out = out;
    args.out_stride = dim;
    return args;
  }
};

void Report(benchmark::State& state, size_t tokens, double flop, double peak) {
  using benchmark::Counter;
  const auto rate = Counter::kIsIterationInvariantRate;
  state.counters["FLOP/s"] = Counter(flop, rate);
  if (peak > 0.0) state.counters["of_peak"] = Counter(flop / peak, rate);
  state.counters["tokens/s"] = Counter(static_cast<double>(tokens), rate);
}

using AttentionFunction = void (*)(const pozor::AttentionArgs&, float*);

void BenchAttention(benchmark::State& state, AttentionFunction attention, size_t tokens,
                    size_t dim) {
  const Buffers buffers(tokens, dim);
  const pozor::AttentionArgs args = buffers.Args();
  const double peak = PeakNow();
  for (auto _ : state) {
    attention(args, buffers.scratch);
    benchmark::ClobberMemory();
  }
  const auto n = static_cast<double>(tokens);
  Report(state, tokens, 4.0 * n * n * static_cast<double>(dim), peak);
}

// Every query sees itself and 64 keys on each side: tokens/s must not fall with the length.
void BenchWindow(benchmark::State& state, size_t tokens, size_t dim) {
  constexpr size_t kWindow = 64;
  const Buffers buffers(tokens, dim);
  pozor::AttentionArgs args = buffers.Args();
  args.window = kWindow;
  const double peak = PeakNow();
  for (auto _ : state) {
    pozor::Attention(args, buffers.scratch);
    benchmark::ClobberMemory();
  }
  const double keys = static_cast<double>(std::min(2 * kWindow + 1, tokens));
  Report(state, tokens, 4.0 * static_cast<double>(tokens * dim) * keys, peak);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string error = pozor::ApplyCpuTierFromEnvironment();
  if (!error.empty()) {
    std::cerr << error << '\n';
    return 2;
  }
  for (const size_t dim : {32, 64}) {
    const std::string suffix = "/dim:" + std::to_string(dim) + "/tokens:";
    for (const size_t tokens : {8, 16, 20, 32, 40, 64, 128, 256, 300, 512, 1024, 2048, 8192}) {
      benchmark::RegisterBenchmark(
          ("Attention" + suffix + std::to_string(tokens)).c_str(),
          [=](benchmark::State& state) { BenchAttention(state, pozor::Attention, tokens, dim); });
      benchmark::RegisterBenchmark(
          ("AttentionS8" + suffix + std::to_string(tokens)).c_str(),
          [=](benchmark::State& state) { BenchAttention(state, pozor::AttentionS8, tokens, dim); });
    }
    for (const size_t tokens : {128, 512, 2048, 8192}) {
      benchmark::RegisterBenchmark(
          ("AttentionWindow64" + suffix + std::to_string(tokens)).c_str(),
          [=](benchmark::State& state) { BenchWindow(state, tokens, dim); });
    }
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
