#include "tools/bench/plan.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "engine/machine.h"
#include "kernels/cpu.h"
#include "tools/bench/channel.h"
#include "tools/bench/text.h"

namespace pozor::tools {
namespace {

// Rounds of each process and processes, by suite.
struct Effort {
  size_t rounds, processes;
};
Effort EffortOf(const std::string& suite) {
  if (suite == "quick") return {8, 2};
  if (suite == "full") return {16, 4};
  return {12, 3};
}

bool ParseNumber(std::string_view text, size_t* value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
  return error == std::errc() && end == text.data() + text.size();
}

void Replace(std::string* text, std::string_view from, const std::string& to) {
  for (size_t at = text->find(from); at != std::string::npos;
       at = text->find(from, at + to.size())) {
    text->replace(at, from.size(), to);
  }
}

// 1, 2, 4, ... and all that the machine grants; only the ends for the smaller suites.
std::vector<size_t> DefaultThreads(const std::string& suite) {
  const size_t most = PlanThreads().threads;
  std::vector<size_t> threads = {1};
  for (size_t count = 2; suite == "full" && count < most; count *= 2) threads.push_back(count);
  if (most > 1) threads.push_back(most);
  return threads;
}

constexpr size_t kLongestPause = 1000;  // milliseconds

}  // namespace

std::vector<std::string> SuiteWorkloads(const std::string& suite, size_t max_length) {
  if (suite == "quick") return {"fixed-16", "fixed-128", "mix", "query-8"};
  std::vector<std::string> names;
  const size_t longest = suite == "full" ? max_length : std::min<size_t>(max_length, 512);
  for (size_t length = 8; length < longest; length *= 2) {
    names.push_back("fixed-" + std::to_string(length));
  }
  names.push_back("fixed-" + std::to_string(longest));
  names.emplace_back("mix");
  for (const size_t length : {8, 32, 128}) {
    if (length <= longest) names.push_back("query-" + std::to_string(length));
  }
  names.emplace_back("query-8@20");
  return names;
}

BenchOptions Resolve(BenchOptions options) {
  const Effort effort = EffortOf(options.suite);
  if (options.rounds == 0) options.rounds = effort.rounds;
  if (options.processes == 0) options.processes = effort.processes;
  if (options.threads.empty()) options.threads = DefaultThreads(options.suite);
  if (options.precisions.empty()) options.precisions = {"auto"};
  if (options.batch_tokens.empty()) options.batch_tokens = {0};
  const bool every =
      std::find(options.tiers.begin(), options.tiers.end(), "all") != options.tiers.end();
  if (every) {
    options.tiers.clear();
    for (const CpuTier tier : SupportedCpuTiers()) options.tiers.emplace_back(CpuTierName(tier));
  }
  if (options.tiers.empty()) options.tiers = {"auto"};
  return options;
}

std::vector<EnginePlan> PlanEngines(const BenchOptions& options) {
  std::vector<EnginePlan> engines;
  for (const size_t threads : options.threads) {
    for (const std::string& tier : options.tiers) {
      for (const std::string& precision : options.precisions) {
        EnginePlan engine;
        engine.asked = engine.precision = precision;
        engine.tier = tier;
        engine.threads = threads;
        engine.batches = options.batch_tokens;
        if (!options.only_peers) engines.push_back(engine);
      }
    }
    for (const PeerSpec& peer : options.peers) {
      EnginePlan engine;
      engine.is_pozor = false;
      engine.name = peer.name;
      engine.precision = peer.precision;
      engine.threads = threads;
      engine.batches = peer.batches;
      engine.command = peer.command;
      engines.push_back(engine);
    }
  }
  return engines;
}

Result<WorkloadName> ParseWorkload(const std::string& name) {
  WorkloadName parsed;
  const auto wrong = [&name] {
    return InvalidArgument(name +
                           ": no such workload; give fixed-N, query-N, query-N@MS, mix or "
                           "file:PATH");
  };
  if (name == "mix") {
    parsed.kind = "mix";
    return parsed;
  }
  if (name.starts_with("file:")) {
    parsed.kind = "file";
    const std::vector<std::string> parts = SplitText(name.substr(5), '@');
    parsed.path = parts[0];
    if (parts.size() > 2 || (parts.size() == 2 && !ParseNumber(parts[1], &parsed.stride))) {
      return wrong();
    }
    return parsed;
  }
  const size_t dash = name.rfind('-');
  if (dash == std::string::npos) return wrong();
  parsed.kind = name.substr(0, dash);
  const bool known = parsed.kind == "fixed" || parsed.kind == "query";
  const std::vector<std::string> numbers = SplitText(name.substr(dash + 1), '@');
  if (!known || !ParseNumber(numbers[0], &parsed.length) || parsed.length == 0) return wrong();
  if (numbers.size() == 1) return parsed;
  const bool pauses = parsed.kind == "query" && numbers.size() == 2 &&
                      ParseNumber(numbers[1], &parsed.pause_ms) && parsed.pause_ms <= kLongestPause;
  if (!pauses) return wrong();
  return parsed;
}

size_t CountTexts(const WorkloadName& name, size_t threads, double flops_per_token) {
  constexpr double kFlops = 16e9;
  constexpr double kFewestTokens = 256;
  constexpr double kMeanOfMix = 36;
  if (name.kind == "query") return 1;
  const double length = name.kind == "mix" ? kMeanOfMix : static_cast<double>(name.length);
  const double tokens = std::max(kFewestTokens, kFlops / std::max(1.0, flops_per_token));
  const double texts = std::ceil(tokens * static_cast<double>(threads) / length);
  const size_t fewest = (name.kind == "mix" ? 8 : 2) * threads;
  return std::max(fewest, static_cast<size_t>(texts));
}

std::vector<std::string> EngineCommand(const EnginePlan& engine, const BenchOptions& options) {
  if (!engine.is_pozor) {
    std::string command = engine.command;
    Replace(&command, "{model}", options.model);
    Replace(&command, "{threads}", std::to_string(engine.threads));
    Replace(&command, "{max_length}", std::to_string(options.max_length));
    return ShellWords(command);
  }
  std::vector<std::string> words = {
      options.program, "bench-worker", options.model, "--threads", std::to_string(engine.threads),
  };
  if (engine.asked != "auto") words.insert(words.end(), {"--precision", engine.asked});
  if (!options.task.empty()) words.insert(words.end(), {"--task", options.task});
  if (engine.tier != "auto") words.insert(words.end(), {"--cpu", engine.tier});
  if (options.max_length != 0) {
    words.insert(words.end(), {"--max-length", std::to_string(options.max_length)});
  }
  return words;
}

std::string TextOf(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.Find(key);
  return value == nullptr ? "" : std::string(value->as_string());
}

double NumberOf(const JsonValue& object, std::string_view key) {
  const JsonValue* value = object.Find(key);
  return value == nullptr ? 0 : value->as_double();
}

size_t CountOf(const JsonValue& object, std::string_view key) {
  const double value = NumberOf(object, key);
  return value > 0 && value <= 0x1p53 ? static_cast<size_t>(value) : 0;
}

ModelRecord ReadModelRecord(const JsonValue& info) {
  const auto count = [&info](std::string_view key) { return CountOf(info, key); };
  ModelRecord model;
  model.path = TextOf(info, "path");
  model.name = TextOf(info, "name");
  // Two folders of one model are the same row: its own last name, not the path.
  const std::filesystem::path name = std::filesystem::path(model.name).lexically_normal();
  model.name =
      name.has_filename() ? name.filename().string() : name.parent_path().filename().string();
  model.architecture = TextOf(info, "architecture");
  model.hash = TextOf(info, "hash");
  model.layers = count("layers");
  model.hidden = count("hidden");
  model.heads = count("heads");
  model.intermediate = count("intermediate");
  model.parameters = count("parameters");
  model.max_length = count("max_length");
  model.flops_per_token = NumberOf(info, "flops_per_token");
  model.flops_per_square = NumberOf(info, "flops_per_token_and_key");
  return model;
}

}  // namespace pozor::tools
