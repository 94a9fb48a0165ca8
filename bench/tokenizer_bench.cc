// Tokens and bytes a second of a tokenizer on one thread.
//
//   tokenizer_bench [--benchmark_...] FOLDER TEXT...
//
// FOLDER is a model folder (or one with a tokenizer.json alone), TEXT a file with a text a line.
// Each text is encoded as the engine does it: specials added, ids appended to one list.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <fstream>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "models/text/tokenizer.h"

namespace {

using pozor::Tokenizer;

std::vector<std::string> ReadLines(const std::string& path) {
  std::ifstream file(path);
  std::vector<std::string> lines;
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

void Append(benchmark::State& state, const Tokenizer& tokenizer,
            const std::vector<std::string>& lines) {
  pozor::TokenizeScratch scratch;
  std::vector<int32_t> ids, types;
  size_t bytes = 0, tokens = 0;
  for (auto _ : state) {
    for (const std::string& line : lines) {
      ids.clear();
      types.clear();
      const auto stats = tokenizer.Append(line, nullptr, {}, scratch, &ids, &types);
      if (!stats.ok()) {
        state.SkipWithError(stats.status().message().c_str());
        return;
      }
      tokens += stats->tokens;
      bytes += line.size();
      benchmark::DoNotOptimize(ids.data());
    }
  }
  using benchmark::Counter;
  state.counters["tokens/s"] = Counter(static_cast<double>(tokens), Counter::kIsRate);
  state.counters["bytes/s"] = Counter(static_cast<double>(bytes), Counter::kIsRate);
}

void Load(benchmark::State& state, const std::string& folder) {
  for (auto _ : state) {
    auto tokenizer = Tokenizer::Load(folder, nullptr);
    benchmark::DoNotOptimize(tokenizer.ok());
  }
}

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (argc < 3) {
    std::cerr << "usage: tokenizer_bench FOLDER TEXT...\n";
    return 2;
  }
  const std::string folder = argv[1];
  auto tokenizer = Tokenizer::Load(folder, nullptr);
  if (!tokenizer.ok()) {
    std::cerr << tokenizer.status().message() << '\n';
    return 1;
  }
  const std::shared_ptr<Tokenizer> shared = std::move(*tokenizer);
  benchmark::RegisterBenchmark("load", [&](auto& state) { Load(state, folder); });
  for (int i = 2; i < argc; ++i) {
    const std::string path = argv[i];
    benchmark::RegisterBenchmark(("append/" + path.substr(path.rfind('/') + 1)).c_str(),
                                 [shared, lines = ReadLines(path)](benchmark::State& state) {
                                   Append(state, *shared, lines);
                                 });
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
