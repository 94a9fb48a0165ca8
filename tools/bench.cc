#include "tools/bench.h"

#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "tools/bench/markdown.h"
#include "tools/bench/text.h"

namespace pozor::tools {
namespace {

Status WriteWhole(const std::string& path, const std::string& text) {
  const std::string temporary = path + ".part";
  std::FILE* file = std::fopen(temporary.c_str(), "wb");
  bool written = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr && std::fclose(file) != 0) written = false;
  std::error_code error;
  if (written) std::filesystem::rename(temporary, path, error);
  if (!written || error) {
    return IoError(path + ": cannot be written; check the folder and the free space");
  }
  return {};
}

}  // namespace

Status RunBenchVerb(BenchRequest request) {
  const bool progress = !request.quiet && isatty(2) != 0;
  if (progress) {
    request.options.note = [](const std::string& text) {
      std::fprintf(stderr, "\r\033[K%s", text.c_str());
      std::fflush(stderr);
    };
  }
  std::error_code error;
  request.options.program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  Result<BenchResult> result = RunBench(request.options);
  if (progress) std::fprintf(stderr, "\r\033[K");
  if (!result.ok()) return result.status();
  result->command = request.command;
  if (request.output == "-") {
    std::fputs(ToJson(*result).c_str(), stdout);
    return {};
  }
  std::fputs(ToMarkdown(*result).c_str(), stdout);
  return request.output.empty() ? Status() : WriteWhole(request.output, ToJson(*result));
}

}  // namespace pozor::tools
