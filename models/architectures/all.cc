// The list of architectures. A new one is its own file, one line in each list here, and a golden.
#include "models/architectures/architecture.h"

namespace pozor {

extern const Architecture kBert;

std::span<const Architecture* const> AllArchitectures() {
  static constexpr const Architecture* kAll[] = {
      &kBert,
  };
  return kAll;
}

}  // namespace pozor
