// Every GEMM kernel of the table on the products of MiniLM, BERT-base and BERT-large.
//
// Each measured window stands between two windows of the peak loop of the same tier; windows beside
// which the core ran below its peak (a busy sibling thread, another machine on the same chip) are
// dropped. FLOP/s and % of peak are medians of those kept; `kept` says how many percent those are.
// Names: gemm/<kernel>/<K>x<N>/m<rows>/<hot|cold>[/gelu]. Cold rotates over copies of the weights
// that exceed the last cache's share of a model in use. An int8 row on a CPU without byte dot
// products is measured against the f32 peak. Example:
//   gemm_bench --benchmark_filter='avx512-.*8x48.*/384x1536/m128/'
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "engine/bounded_weights.h"
#include "engine/memory.h"
#include "kernels/cpu.h"
#include "kernels/gemm.h"
#include "kernels/peak.h"

namespace {

using pozor::AlignedBuffer;
using pozor::GemmArgs;
using pozor::GemmKernel;
using pozor::PeakLoop;

struct Product {
  size_t k, n, m;
  bool cold, gelu;
};

// CPU time of this thread: another process on the core does not count.
double ThreadSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

AlignedBuffer Filled(size_t floats) {
  AlignedBuffer buffer(floats * sizeof(float), /*huge_pages=*/true);
  float* values = buffer.As<float>();
  for (size_t i = 0; i < floats; ++i) values[i] = static_cast<float>(i % 1021) * 0x1p-10f - 0.5f;
  return buffer;
}

// `copies` times `bytes` int8 weights, distributed as a trained model's: how many exceed the bounds
// of kernels/bounded.h counts.
AlignedBuffer FilledWeights(size_t bytes, size_t copies) {
  AlignedBuffer buffer(bytes * copies, /*huge_pages=*/true);
  int8_t* values = buffer.As<int8_t>();
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 35);
  for (size_t i = 0; i < bytes; ++i) {
    values[i] = static_cast<int8_t>(std::clamp(normal(random), -127.0f, 127.0f));
  }
  for (size_t i = 1; i < copies; ++i) std::memcpy(values + i * bytes, values, bytes);
  return buffer;
}

// Rate of the tier's peak loop over about 20 us, in FLOP/s.
double PeakRate(const PeakLoop& loop) {
  constexpr size_t kIterations = 3000;
  const double start = ThreadSeconds();
  loop.run(kIterations);
  return static_cast<double>(kIterations) * loop.ops_per_iteration / (ThreadSeconds() - start);
}

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// One product and its buffers.
class Runner {
 public:
  Runner(const Product& product, const GemmKernel& kernel)
      : weight_bytes_(pozor::DivCeil(product.n, pozor::kPanelColumns) *
                      pozor::PackedPanelBytes(kernel.layout, product.k)),
        copies_(product.cold ? std::max<size_t>(2, kColdBytes / weight_bytes_) : 1),
        weights_(kernel.layout == pozor::PackedLayout::kS8x16x4
                     ? FilledWeights(weight_bytes_, copies_)
                     : Filled(copies_ * weight_bytes_ / sizeof(float))),
        a_(Filled(product.m * product.k)),
        c_(Filled(product.m * product.n)),
        bias_(Filled(pozor::RoundUp(product.n, pozor::kPanelColumns))),
        quantized_(product.m * pozor::QuantizedStride(product.k)),
        scales_(product.m, {0.01f, 117}),
        sums_(Filled(bias_.size() / sizeof(float))) {
    matrix_ = {.layout = kernel.layout, .k = product.k, .n = product.n};
    if (kernel.name.ends_with("-bounded")) Bound();
    matrix_.column_scales = bias_.As<float>();
    matrix_.column_sums = sums_.As<int32_t>();
    args_.a = a_.As<float>();
    args_.a_stride = product.k;
    args_.quantized = {quantized_.As<uint8_t>(), pozor::QuantizedStride(product.k), scales_.data()};
    args_.m = product.m;
    args_.b = &matrix_;
    args_.panel_end = matrix_.panel_count();
    args_.epilogue.bias = bias_.As<float>();
    args_.epilogue.c = c_.As<float>();
    args_.epilogue.c_stride = product.n;
    if (product.gelu) args_.epilogue.activation = pozor::Activation::kGelu;
  }
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  void Run(const GemmKernel& kernel) {
    matrix_.panels = weights_.As<char>() + next_ * weight_bytes_;
    if (!views_.empty()) matrix_.bounded = &views_[next_];
    next_ = (next_ + 1) % copies_;
    kernel.run(args_);
  }

 private:
  static constexpr size_t kColdBytes = size_t{96} << 20;

  void Bound() {
    bounded_.reserve(copies_);
    for (size_t i = 0; i < copies_; ++i) {
      matrix_.panels = weights_.As<char>() + i * weight_bytes_;
      bounded_.emplace_back(matrix_);
      views_.push_back(bounded_.back().view());
    }
  }

  size_t weight_bytes_, copies_, next_ = 0;
  AlignedBuffer weights_, a_, c_, bias_, quantized_;
  std::vector<pozor::RowScale> scales_;
  AlignedBuffer sums_;
  std::vector<pozor::BoundedWeights> bounded_;
  std::vector<pozor::BoundedS8> views_;
  pozor::PackedMatrix matrix_;
  GemmArgs args_;
};

void BenchGemm(benchmark::State& state, const GemmKernel& kernel, const PeakLoop& loop,
               const Product& product) {
  struct Window {
    double peak_before, rate, peak_after;
  };
  Runner runner(product, kernel);
  runner.Run(kernel);
  const double flops = 2.0 * static_cast<double>(product.m * product.k * product.n);
  const auto products = static_cast<size_t>(std::max(1.0, 60e-6 * PeakRate(loop) / flops));
  std::vector<Window> windows;
  double peak = PeakRate(loop);
  for (auto _ : state) {
    const double start = ThreadSeconds();
    for (size_t i = 0; i < products; ++i) runner.Run(kernel);
    const double seconds = ThreadSeconds() - start;
    const double after = PeakRate(loop);
    windows.push_back({peak, flops * static_cast<double>(products) / seconds, after});
    peak = after;
    state.SetIterationTime(seconds);
  }

  // The best tenth is left out: a window cut short by the clock can read above the peak.
  std::vector<double> peaks;
  peaks.reserve(windows.size());
  for (const Window& window : windows) peaks.push_back(window.peak_after);
  std::sort(peaks.begin(), peaks.end());
  const double best = peaks[peaks.size() * 9 / 10];
  std::vector<double> rates, shares;
  for (const Window& window : windows) {
    if (std::min(window.peak_before, window.peak_after) < 0.94 * best) continue;
    rates.push_back(window.rate);
    shares.push_back(200 * window.rate / (window.peak_before + window.peak_after));
  }
  state.counters["FLOP/s"] = Median(rates);
  state.counters["%peak"] = Median(shares);
  state.counters["kept"] =
      100 * static_cast<double>(rates.size()) / static_cast<double>(windows.size());
}

// What the last part of a loop's name says of types that are the kernel's.
bool BoundsKernel(const std::string& types, const GemmKernel& kernel) {
  if (kernel.layout == pozor::PackedLayout::kSplitBf16x16x2) return types == "bf16x3";
  return kernel.name.find("-" + types) != kernel.name.npos;
}

// The loop that bounds a kernel: the best of its types up to its tier, or, where the CPU has no
// instruction for them, of f32.
const PeakLoop* FindPeak(const GemmKernel& kernel) {
  const PeakLoop *of_types = nullptr, *of_f32 = nullptr;
  for (const PeakLoop& loop : pozor::AllPeakLoops()) {
    if (loop.tier > kernel.tier) continue;
    const std::string types(loop.name.substr(loop.name.rfind('-') + 1));
    if (types == "f32") of_f32 = &loop;
    if (BoundsKernel(types, kernel)) of_types = &loop;
  }
  if (kernel.tier == pozor::CpuTier::kAvx512 && of_types != of_f32) return of_f32;  // no VNNI
  return of_types != nullptr ? of_types : of_f32;
}

void Register(const GemmKernel& kernel, const PeakLoop& loop, const Product& product) {
  const std::string name = "gemm/" + std::string(kernel.name) + "/" + std::to_string(product.k) +
                           "x" + std::to_string(product.n) + "/m" + std::to_string(product.m) +
                           (product.cold ? "/cold" : "/hot") + (product.gelu ? "/gelu" : "");
  benchmark::RegisterBenchmark(name.c_str(), BenchGemm, kernel, loop, product)
      ->UseManualTime()
      ->Iterations(100)
      ->Unit(benchmark::kMicrosecond);
}

void RegisterAll() {
  // QKV, attention output, feed-forward up and down of MiniLM, BERT-base and BERT-large.
  constexpr size_t kShapes[][2] = {{384, 1152},  {384, 384},   {384, 1536},  {1536, 384},
                                   {768, 2304},  {768, 768},   {768, 3072},  {3072, 768},
                                   {1024, 3072}, {1024, 1024}, {1024, 4096}, {4096, 1024}};
  for (const GemmKernel& kernel : pozor::AllGemmKernels()) {
    const PeakLoop* loop = FindPeak(kernel);
    if (!pozor::CpuRunsTier(kernel.tier) || loop == nullptr) continue;
    for (const auto& [k, n] : kShapes) {
      for (const size_t m : {1, 2, 4, 8, 12, 16, 32, 64, 128, 256}) {
        for (const bool cold : {false, true}) Register(kernel, *loop, {k, n, m, cold, false});
        if (n > 3 * k && m >= 12) Register(kernel, *loop, {k, n, m, false, true});
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  RegisterAll();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
}
