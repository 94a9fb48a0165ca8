// `pozor bench`: measures, prints Markdown, keeps everything as JSON.
#ifndef POZOR_TOOLS_BENCH_H_
#define POZOR_TOOLS_BENCH_H_

#include <string>

#include "pozor/status.h"
#include "tools/bench/driver.h"

namespace pozor::tools {

struct BenchRequest {
  BenchOptions options;
  std::string output;   // JSON file, "-" for standard output; empty: none
  std::string command;  // the command line, for the record
  bool quiet = false;
};

Status RunBenchVerb(BenchRequest request);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_BENCH_H_
