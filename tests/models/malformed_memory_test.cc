// What a hostile file may cost: each is opened in a process of its own, which ends by itself within
// a second and takes less than 64 MB more than a process that opens nothing and the file itself.
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "models/formats/file.h"
#include "models/formats/folder.h"
#include "models/formats/gguf.h"
#include "models/formats/onnx.h"
#include "models/formats/safetensors.h"
#include "models/formats/torch_file.h"
#include "models/json.h"
#include "models/text/tokenizer.h"
#include "pozor/pozor.hpp"
#include "tests/models/golden.h"
#include "tests/support/cpu_time.h"

namespace pozor {
namespace {

namespace fs = std::filesystem;
using test::DataPath;

constexpr size_t kMostBytes = size_t{64} << 20;

struct Cost {
  int code = 0;  // 0: loaded, 1: refused
  bool ended = false;
  double seconds = 0;  // of a processor
  size_t bytes = 0;    // the largest resident set
};

// Loads or refuses the file as a user of its kind would.
Status Open(const std::string& kind, const std::string& path) {
  if (kind == "folder") return Model::Load(path).status();
  if (kind == "safetensors") return OpenSafetensors(path).status();
  if (kind == "pytorch_model.bin") return OpenTorchFile(path).status();
  if (kind == "gguf") return OpenGguf(path).status();
  if (kind == "onnx") {
    const Result<ModelFolder> folder = ModelFolder::Open(fs::path(path).parent_path().string());
    return folder.ok() ? OpenOnnx(*folder, fs::path(path).filename().string()).status()
                       : folder.status();
  }
  const Result<std::string> json = ReadWholeFile(path, size_t{1} << 30);
  if (!json.ok()) return json.status();
  const auto tokenizer = Tokenizer::FromJson(*json, path);
  if (!tokenizer.ok()) return tokenizer.status();
  return (*tokenizer)
      ->Encode("x \xE2\x82\xAC aaa! " + std::string(40, 'a') + "!", nullptr, {})
      .status();
}

double Seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

Cost InAProcess(const std::function<Status()>& work) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(work().ok() ? 0 : 1);
  int state = 0;
  rusage usage = {};
  REQUIRE(::wait4(child, &state, 0, &usage) == child);
  return {.code = WIFEXITED(state) ? WEXITSTATUS(state) : -1,
          .ended = WIFEXITED(state) && WEXITSTATUS(state) <= 1,
          .seconds = Seconds(usage.ru_utime) + Seconds(usage.ru_stime),
          .bytes = static_cast<size_t>(usage.ru_maxrss) << 10};
}

struct Item {
  std::string kind, path, expect;
};

// The files that the manifest names, and those of the tokenizers.
std::vector<Item> ListItems() {
  std::vector<Item> items;
  const JsonDocument manifest = ReadJsonFile(DataPath("malformed/manifest.json")).value();
  for (const JsonValue& item : manifest->Find("items")->items()) {
    items.push_back({std::string(item.Find("kind")->as_string()),
                     DataPath("malformed/" + std::string(item.Find("path")->as_string())),
                     std::string(item.Find("expect")->as_string())});
  }
  for (const auto& entry : fs::directory_iterator(DataPath("tokenizers/malformed"))) {
    items.push_back({"tokenizer.json", entry.path().string(), ""});
  }
  return items;
}

TEST_CASE("a hostile file costs its process little time and memory") {
  const size_t nothing = InAProcess([] { return Status(); }).bytes;
  const std::vector<Item> items = ListItems();
  CHECK(items.size() > 170);
  size_t most = 0;
  double longest = 0;
  for (const Item& item : items) {
    CAPTURE(item.path);
    CAPTURE(item.expect);
    REQUIRE(fs::exists(item.path));
    const Cost cost = InAProcess([&] { return Open(item.kind, item.path); });
    CHECK(cost.ended);
    if (item.expect.starts_with("must")) CHECK(cost.code == 0);
    const bool may_load = item.expect.find("or a clean") != std::string::npos;
    if (item.expect.starts_with("error") && !may_load) CHECK(cost.code == 1);
    CHECK(cost.seconds < test::kFewCpuSeconds);
    const size_t size = fs::is_directory(item.path) ? 0 : fs::file_size(item.path);
    const size_t used = cost.bytes > nothing + size ? cost.bytes - nothing - size : 0;
    CHECK(used < kMostBytes);
    most = std::max(most, used);
    longest = std::max(longest, cost.seconds);
  }
  MESSAGE(items.size() << " files, at most " << longest << " s and " << (most >> 10)
                       << " KiB more");
}

}  // namespace
}  // namespace pozor
