#include <algorithm>
#include <cstdlib>

#include "tools/bench.h"
#include "tools/bench/text.h"
#include "tools/bench/worker.h"
#include "tools/cli/options.h"
#include "tools/cli/report.h"
#include "tools/cli/signals.h"
#include "tools/cli/verbs.h"

namespace pozor::tools {
namespace {

// "NAME[:PRECISION[:BATCH,...]]=COMMAND"
PeerSpec ParsePeer(const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos || equals + 1 == text.size()) {
    throw CLI::ValidationError("'" + text + "' is not NAME[:PRECISION[:BATCH,...]]=COMMAND");
  }
  const std::vector<std::string> parts = SplitText(text.substr(0, equals), ':');
  PeerSpec peer;
  peer.name = parts[0];
  peer.command = text.substr(equals + 1);
  if (parts.size() > 1) peer.precision = parts[1];
  if (parts.size() > 2) peer.batches.clear();
  const std::vector<std::string> batches =
      parts.size() > 2 ? SplitText(parts[2], ',') : std::vector<std::string>();
  for (const std::string& batch : batches) {
    peer.batches.push_back(std::strtoul(batch.c_str(), nullptr, 10));
  }
  const bool empty = std::find(peer.batches.begin(), peer.batches.end(), 0) != peer.batches.end();
  if (peer.name.empty() || empty) {
    throw CLI::ValidationError("'" + text + "' is not NAME[:PRECISION[:BATCH,...]]=COMMAND");
  }
  return peer;
}

void AddSweeps(VerbParser& parser, BenchOptions* options) {
  CLI::App& app = parser.app();
  app.add_option("--threads", options->threads, "e.g. 1,2,4 (1 and all that are granted)")
      ->delimiter(',')
      ->check(CLI::PositiveNumber)
      ->type_name("N,...");
  app.add_option("--cpu", options->tiers, "e.g. avx2,avx512; 'all' of this machine (auto)")
      ->delimiter(',')
      ->type_name("TIER,...");
  app.add_option("--precision", options->precisions,
                 "e.g. f32,int8 (f32; a prepared model: its own)")
      ->delimiter(',')
      ->check(CLI::IsMember({"f32", "bf16", "int8", "bf16x3"}))
      ->type_name("P,...");
  AddTaskOption(parser, &options->task);
  app.add_option("--batch-tokens", options->batch_tokens, "tokens of a micro-batch (the default)")
      ->delimiter(',')
      ->type_name("N,...");
  app.add_option("--workload", options->workloads,
                 "fixed-N, query-N[@MS apart], mix or file:PATH[@STRIDE]; any number")
      ->delimiter(',')
      ->type_name("W,...");
  app.add_option_function<std::vector<std::string>>(
         "--texts",
         [options](const std::vector<std::string>& paths) {
           for (const std::string& path : paths) options->workloads.push_back("file:" + path);
         },
         "a file of texts, one a line; as --workload file:FILE")
      ->type_name("FILE");
  app.add_option("--suite", options->suite, "which workloads, how many rounds (standard)")
      ->check(CLI::IsMember({"quick", "standard", "full"}))
      ->type_name("quick|standard|full");
}

void AddMethod(VerbParser& parser, BenchRequest* request) {
  CLI::App& app = parser.app();
  BenchOptions& options = request->options;
  parser.AddCount("--max-length", &options.max_length, "tokens of a text, specials included");
  parser.AddCount("--rounds", &options.rounds, "of each row in each process");
  parser.AddCount("--processes", &options.processes, "starts of each engine");
  app.add_option("--seed", options.seed, "of the texts (1)")->type_name("N");
  app.add_flag("--pin", options.pin, "engines of N threads run on the first N CPUs");
  app.add_flag("--in-process", options.in_process, "no child processes (one tier and precision)");
  app.add_flag("--redact", options.redact, "leave the host's name out of the record");
  app.add_option_function<std::vector<std::string>>(
         "--peer",
         [&options](const std::vector<std::string>& peers) {
           for (const std::string& peer : peers) options.peers.push_back(ParsePeer(peer));
         },
         "NAME[:PRECISION[:BATCH,...]]=COMMAND: another engine's worker, in the same rounds; "
         "{model}, "
         "{threads} and {max_length} are filled in")
      ->type_name("SPEC");
  app.add_flag("--only-peers", options.only_peers, "no rows of Pozor itself");
  app.add_option("-o,--output", request->output, "JSON file; '-' is standard output")
      ->type_name("OUT");
  app.add_flag("--quiet", request->quiet, "no progress");
}

}  // namespace

int BenchVerb(std::span<char* const> arguments) {
  VerbParser parser("bench",
                    "How fast a model runs on this machine, and how near that is to what the "
                    "machine can do.",
                    "pozor bench all-MiniLM-L6-v2 -o result.json\n"
                    "  pozor bench all-MiniLM-L6-v2 --suite quick --cpu all --threads 1");
  BenchRequest request;
  parser.AddModelAndInputs(true, 0);
  AddSweeps(parser, &request.options);
  AddMethod(parser, &request);
  if (const auto code = parser.Parse(arguments)) return *code;
  request.options.model = parser.model();
  request.command = "pozor bench";
  for (const char* word : arguments) request.command += std::string(" ") + word;
  CancelOnSignals();
  const int code = ExitCodeOf(RunBenchVerb(std::move(request)));
  return code == 0 ? FinishStandardOutput(0) : code;
}

int BenchWorkerVerb(std::span<char* const> arguments) {
  VerbParser parser("bench-worker",
                    "An engine for a benchmark driver: commands of tab-separated fields on "
                    "standard input, one JSON object a line on standard output.",
                    "printf 'latency\\t10\\tA dog runs.\\n' | pozor bench-worker all-MiniLM-L6-v2");
  WorkerOptions options;
  parser.AddModelAndInputs(true, 0);
  parser.AddCount("--threads", &options.encode.threads, "what the machine grants this process");
  parser.AddCount("--batch-tokens", &options.encode.batch_tokens, "tokens computed at once");
  parser.AddCount("--max-length", &options.encode.max_length,
                  "tokens of a text, specials included");
  AddLoadOptions(parser, &options.load);
  if (const auto code = parser.Parse(arguments)) return *code;
  options.model = parser.model();
  return RunWorker(options);
}

}  // namespace pozor::tools
