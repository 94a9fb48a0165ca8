// Google Benchmark's JSON (--benchmark_format=json) as rows: one a benchmark, one sample a
// repetition.
#ifndef POZOR_TOOLS_COMPARE_GOOGLE_BENCHMARK_H_
#define POZOR_TOOLS_COMPARE_GOOGLE_BENCHMARK_H_

#include "models/json.h"
#include "tools/bench/result.h"

namespace pozor::tools {

BenchResult ReadGoogleBenchmark(const JsonValue& root);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_COMPARE_GOOGLE_BENCHMARK_H_
