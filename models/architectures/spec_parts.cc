// Pieces of specs that architectures are put together from.
#include <algorithm>
#include <string>

#include "engine/distances.h"
#include "models/architectures/architecture.h"

namespace pozor {

EncoderSpec ReadSizes(Config& config, const SizeKeys& keys) {
  EncoderSpec spec;
  spec.hidden = config.Size(keys.hidden, kMostHidden, "columns of the hidden rows");
  spec.heads = config.Size(keys.heads, kMostHeads, "attention heads");
  if (!keys.head_dim.empty()) {
    spec.head_dim =
        config.SizeOr(keys.head_dim, keys.absent_head_dim, kMostHidden, "columns of a head");
  }
  if (spec.head_dim == 0) spec.head_dim = spec.hidden / spec.heads;
  if (spec.head_dim == spec.hidden / spec.heads && spec.hidden % spec.heads != 0) {
    config.Fail(Corrupt(config.name() + ": " + std::string(keys.heads) + " " +
                        std::to_string(spec.heads) + " does not divide " +
                        std::string(keys.hidden) + " " + std::to_string(spec.hidden) +
                        "; check the configuration"));
  }
  if (!keys.intermediate.empty()) {
    spec.intermediate =
        config.Size(keys.intermediate, kMostIntermediate, "columns of the feed-forward");
  }
  spec.layers.resize(config.Size(keys.layers, kMostLayers, "layers"));
  spec.embeddings.size = spec.hidden;
  spec.embeddings.vocab_size = config.Size("vocab_size", kMostVocabulary, "rows of the word table");
  if (!keys.positions.empty()) {
    spec.embeddings.max_positions =
        config.Size(keys.positions, kMostPositions, "positions that a text can have");
  }
  return spec;
}

void UseRotaryPositions(EncoderSpec* spec) {
  spec->embeddings.position_kind = PositionKind::kNone;
  spec->token_limit = std::min(spec->embeddings.max_positions, kLongestDistance);
}

LinearRef DenseWith(const std::string& stem, bool has) {
  LinearRef ref = Dense(stem);
  if (!has) ref.bias = {};
  return ref;
}

NormRef NormWith(const std::string& stem, bool has) {
  NormRef ref = Norm(stem);
  if (!has) ref.beta = {};
  return ref;
}

LinearRef PartOf(LinearRef fused, size_t index, size_t count, size_t parts) {
  for (TensorRef* ref : {&fused.weight, &fused.bias}) {
    if (!ref->present()) continue;
    ref->row_begin = index * count;
    ref->row_count = count;
    ref->fused_rows = parts * count;
  }
  return fused;
}

LinearRef Dense(const std::string& stem) {
  LinearRef ref;
  ref.weight.name = stem + ".weight";
  ref.bias.name = stem + ".bias";
  return ref;
}

NormRef Norm(const std::string& stem) {
  NormRef ref;
  ref.gamma.name = stem + ".weight";
  ref.beta.name = stem + ".bias";
  return ref;
}

}  // namespace pozor
