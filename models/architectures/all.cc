// The list of architectures: a new one is its own file, a line here, and a golden.
#include "models/architectures/architecture.h"

#define POZOR_ARCHITECTURES(X) \
  X(kBert)                     \
  X(kRoberta)                  \
  X(kXlmRoberta)               \
  X(kCamembert)                \
  X(kDistilBert)               \
  X(kElectra)                  \
  X(kAlbert)                   \
  X(kMpnet)                    \
  X(kDeberta)                  \
  X(kDebertaV2)                \
  X(kBigBird)                  \
  X(kModernBert)               \
  X(kNomicBert)                \
  X(kNomicMoe)                 \
  X(kGte)                      \
  X(kGteHub)                   \
  X(kJinaV3)                   \
  X(kJinaBert)                 \
  X(kRoFormer)                 \
  X(kLongformer)               \
  X(kTransformer)              \
  X(kMarian)                   \
  X(kGpt2)                     \
  X(kLlama)                    \
  X(kMistral)                  \
  X(kQwen2)                    \
  X(kEuroBert)                 \
  X(kQwen3)                    \
  X(kGemma3)                   \
  X(kT5)                       \
  X(kMt5)                      \
  X(kSqueezeBert)              \
  X(kMobileBert)

namespace pozor {

#define POZOR_DECLARE(name) extern const Architecture name;
POZOR_ARCHITECTURES(POZOR_DECLARE)
#undef POZOR_DECLARE

std::span<const Architecture* const> AllArchitectures() {
#define POZOR_ADDRESS(name) &name,
  static constexpr const Architecture* kAll[] = {POZOR_ARCHITECTURES(POZOR_ADDRESS)};
#undef POZOR_ADDRESS
  return kAll;
}

}  // namespace pozor
