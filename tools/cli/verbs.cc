#include "tools/cli/verbs.h"

#include "tools/cli/command.h"

namespace pozor::tools {

std::span<const Verb> Verbs() {
  static constexpr Verb kVerbs[] = {
      {"encode", "texts to vectors", EncodeVerb},
  };
  return kVerbs;
}

}  // namespace pozor::tools
