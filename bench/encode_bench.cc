// End to end: texts in, unit vectors out. Arguments: tokens of a text, texts of a call, threads.
//
//   POZOR_BENCH_MODEL=path/to/model encode_bench --benchmark_filter='Encode/128'
//
// Without POZOR_BENCH_MODEL there is nothing to run.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "pozor/pozor.hpp"

namespace pozor {
namespace {

const Model* LoadOnce() {
  static const std::unique_ptr<Model> model = [] {
    const char* name = std::getenv("POZOR_BENCH_MODEL");
    if (name == nullptr) return std::unique_ptr<Model>();
    return std::make_unique<Model>(Model::Load(name).value());
  }();
  return model.get();
}

// About `tokens` tokens: words that are one token in any vocabulary, and the two specials.
std::string TextOf(int64_t tokens) {
  std::string text = "the";
  for (int64_t i = 3; i < tokens; ++i) text += i % 2 == 0 ? " the" : " of";
  return text;
}

void Encode(benchmark::State& state) {
  const Model* model = LoadOnce();
  if (model == nullptr) {
    state.SkipWithError("POZOR_BENCH_MODEL is not set");
    return;
  }
  const std::string text = TextOf(state.range(0));
  const std::vector<std::string_view> texts(static_cast<size_t>(state.range(1)), text);
  EncodeOptions options;
  options.threads = static_cast<size_t>(state.range(2));
  options.max_length = static_cast<size_t>(state.range(0));
  std::vector<float> vectors(texts.size() * model->Dimensions(options));
  uint64_t tokens = 0;
  for (auto _ : state) {
    const auto stats =
        model->EncodeInto(texts, vectors.data(), vectors.size() / texts.size(), options);
    if (!stats.ok()) {
      state.SkipWithError(stats.status().message().c_str());
      return;
    }
    tokens += stats->tokens;
    benchmark::DoNotOptimize(vectors.data());
  }
  state.counters["tokens/s"] =
      benchmark::Counter(static_cast<double>(tokens), benchmark::Counter::kIsRate);
}

BENCHMARK(Encode)
    ->ArgNames({"tokens", "texts", "threads"})
    ->ArgsProduct({{8, 16, 32, 64, 128, 256}, {1, 32}, {1, 2}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace pozor

BENCHMARK_MAIN();
