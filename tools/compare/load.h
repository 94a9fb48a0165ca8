// Results to compare: files of `pozor bench`, and Google Benchmark's JSON.
#ifndef POZOR_TOOLS_COMPARE_LOAD_H_
#define POZOR_TOOLS_COMPARE_LOAD_H_

#include <string>
#include <string_view>
#include <vector>

#include "pozor/status.h"
#include "tools/bench/result.h"

namespace pozor::tools {

struct LoadedResult {
  std::string path;
  std::string label;  // short name of the file, different for each
  BenchResult result;
  std::vector<Row> every_batch;  // rows of all batches, where the result keeps the best alone
  bool is_pozor = true;          // false: Google Benchmark
};

// Either format, told apart by its first members.
Result<LoadedResult> LoadResult(const std::string& path);
Result<LoadedResult> ParseResult(std::string_view json, const std::string& path);

// Files, and the *.json of folders; labels are made different.
Result<std::vector<LoadedResult>> LoadResults(const std::vector<std::string>& paths);

// The engines of one result as results of their own, labelled by their names, `base` first (empty:
// the first in the file): rows of one run compare with each other. Of several batches each engine
// keeps its best one, row by row. NotFound if `base` is no engine.
Result<std::vector<LoadedResult>> SplitEngines(const LoadedResult& loaded, const std::string& base);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_COMPARE_LOAD_H_
