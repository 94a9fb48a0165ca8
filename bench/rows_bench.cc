// Row kernels in bytes read and written a second: norms, activations, softmax, embedding, pooling.
// POZOR_CPU caps the tier.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include "engine/memory.h"
#include "kernels/activation.h"
#include "kernels/cpu.h"
#include "kernels/embed.h"
#include "kernels/norm.h"
#include "kernels/pool.h"
#include "kernels/softmax.h"

namespace {

constexpr size_t kRows = 128;  // tokens of a micro-batch

class Floats {
 public:
  explicit Floats(size_t n) : memory_(n * sizeof(float)), data_(memory_.As<float>()) {
    uint32_t state = 1;
    for (size_t i = 0; i < n; ++i) {
      state = state * 1664525u + 1013904223u;
      data_[i] = static_cast<float>(state >> 8) * 0x1p-22f - 2.0f;
    }
  }
  float* get() const { return data_; }

 private:
  pozor::AlignedBuffer memory_;
  float* data_;
};

// floats: read and written in one iteration; elements: results, for a time per element.
void Report(benchmark::State& state, size_t floats, size_t elements) {
  using benchmark::Counter;
  const auto rate = Counter::kIsIterationInvariantRate;
  state.counters["bytes/s"] = Counter(static_cast<double>(floats * sizeof(float)), rate);
  state.counters["s/element"] =
      Counter(static_cast<double>(elements), Counter::kIsIterationInvariantRate | Counter::kInvert);
}

void BenchNorm(benchmark::State& state, size_t cols, bool rms, bool residual) {
  const Floats x(kRows * cols), r(kRows * cols), out(kRows * cols), gamma(cols), beta(cols);
  pozor::NormArgs args;
  args.x = x.get();
  args.x_stride = args.residual_stride = args.out_stride = cols;
  if (residual) args.residual = r.get();
  args.gamma = gamma.get();
  args.beta = beta.get();
  args.epsilon = 1e-12f;
  args.rows = kRows;
  args.cols = cols;
  args.out = out.get();
  for (auto _ : state) {
    if (rms) {
      pozor::RmsNorm(args);
    } else {
      pozor::LayerNorm(args);
    }
    benchmark::ClobberMemory();
  }
  Report(state, kRows * cols * (residual ? 3 : 2), kRows * cols);
}

void BenchActivation(benchmark::State& state, pozor::Activation activation) {
  constexpr size_t kElements = 4096;
  const Floats x(kElements), y(kElements);
  for (auto _ : state) {
    pozor::Activate(activation, x.get(), y.get(), kElements);
    benchmark::ClobberMemory();
  }
  Report(state, 2 * kElements, kElements);
}

void BenchSoftmax(benchmark::State& state, size_t cols) {
  const Floats x(kRows * cols);
  for (auto _ : state) {  // of its own result: the work does not depend on the values
    pozor::Softmax(x.get(), kRows, cols, cols);
    benchmark::ClobberMemory();
  }
  Report(state, 2 * kRows * cols, kRows * cols);
}

void BenchEmbed(benchmark::State& state, size_t cols) {
  constexpr size_t kWords = 30522, kPositions = 512;
  const Floats word(kWords * cols), position(kPositions * cols), type(2 * cols), out(kRows * cols);
  std::vector<int32_t> ids, positions;
  pozor::EmbedArgs args;
  args.word = word.get();
  args.position = position.get();
  args.type = type.get();
  args.tokens = kRows;
  args.cols = cols;
  args.out = out.get();
  args.out_stride = cols;
  uint32_t random = 1;
  for (auto _ : state) {
    state.PauseTiming();
    ids.clear();
    positions.clear();
    for (size_t t = 0; t < kRows; ++t) {
      random = random * 1664525u + 1013904223u;
      ids.push_back(static_cast<int32_t>((random >> 8) % kWords));
      positions.push_back(static_cast<int32_t>(t));
    }
    args.ids = ids.data();
    args.positions = positions.data();
    state.ResumeTiming();
    pozor::EmbedSum(args);
    benchmark::ClobberMemory();
  }
  Report(state, 4 * kRows * cols, kRows * cols);
}

void BenchPool(benchmark::State& state, pozor::Pooling pooling, size_t cols) {
  const Floats x(kRows * cols), out(cols);
  for (auto _ : state) {
    pozor::Pool(pooling, x.get(), cols, 0, kRows, cols, out.get());
    benchmark::ClobberMemory();
  }
  Report(state, kRows * cols, kRows * cols);
}

void BenchNormalize(benchmark::State& state, size_t cols) {
  const Floats x(cols);
  for (auto _ : state) {
    pozor::L2Normalize(x.get(), cols);
    benchmark::ClobberMemory();
  }
  Report(state, 3 * cols, cols);
}

void RegisterActivations() {
  using pozor::Activation;
  struct Row {
    const char* name;
    Activation activation;
  };
  static constexpr Row kActivations[] = {
      {"none", Activation::kNone},          {"gelu", Activation::kGelu},
      {"gelu_tanh", Activation::kGeluTanh}, {"quick_gelu", Activation::kQuickGelu},
      {"relu", Activation::kRelu},          {"silu", Activation::kSilu},
      {"tanh", Activation::kTanh},          {"sigmoid", Activation::kSigmoid},
      {"mish", Activation::kMish},          {"elu", Activation::kElu},
  };
  for (const Row& row : kActivations) {
    benchmark::RegisterBenchmark(("Activate/" + std::string(row.name)).c_str(), BenchActivation,
                                 row.activation);
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::string error = pozor::ApplyCpuTierFromEnvironment();
  if (!error.empty()) {
    std::cerr << error << '\n';
    return 2;
  }
  for (const size_t cols : {384, 768, 1024}) {
    const std::string suffix = "/cols:" + std::to_string(cols);
    benchmark::RegisterBenchmark(("LayerNorm" + suffix).c_str(), BenchNorm, cols, false, false);
    benchmark::RegisterBenchmark(("LayerNormResidual" + suffix).c_str(), BenchNorm, cols, false,
                                 true);
    benchmark::RegisterBenchmark(("RmsNorm" + suffix).c_str(), BenchNorm, cols, true, false);
    benchmark::RegisterBenchmark(("EmbedSum" + suffix).c_str(), BenchEmbed, cols);
    benchmark::RegisterBenchmark(("PoolMean" + suffix).c_str(), BenchPool, pozor::Pooling::kMean,
                                 cols);
    benchmark::RegisterBenchmark(("PoolMax" + suffix).c_str(), BenchPool, pozor::Pooling::kMax,
                                 cols);
    benchmark::RegisterBenchmark(("L2Normalize" + suffix).c_str(), BenchNormalize, cols);
  }
  for (const size_t cols : {16, 64, 512}) {
    benchmark::RegisterBenchmark(("Softmax/cols:" + std::to_string(cols)).c_str(), BenchSoftmax,
                                 cols);
  }
  RegisterActivations();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
