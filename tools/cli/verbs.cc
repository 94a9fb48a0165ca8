#include "tools/cli/verbs.h"

#include "tools/cli/command.h"

namespace pozor::tools {

std::span<const Verb> Verbs() {
  static constexpr Verb kVerbs[] = {
      {"encode", "texts to vectors", EncodeVerb},
      {"tokenize", "texts to ids, tokens and offsets", TokenizeVerb},
      {"attention", "what every head of a model looks at: files, a page, tables", AttentionVerb},
      {"info", "this machine, and a model as it is understood", InfoVerb},
      {"quantize", "a model folder with prepared int8 weights, checked against f32", QuantizeVerb},
      {"verify", "a model's results against recorded ones", VerifyVerb},
      {"bench", "how fast a model runs here, and how near the machine's roof", BenchVerb},
      {"compare", "benchmark results side by side", CompareVerb},
      {"bench-worker", "an engine for benchmark drivers", BenchWorkerVerb},
  };
  return kVerbs;
}

}  // namespace pozor::tools
