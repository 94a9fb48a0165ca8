#include "models/architectures/deberta_family.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/distances.h"
#include "models/architectures/bert_family.h"

namespace pozor {
namespace {

void ReadEmbeddings(Config& config, EncoderSpec* spec) {
  EmbeddingSpec& embeddings = spec->embeddings;
  embeddings.word.name = "embeddings.word_embeddings.weight";
  embeddings.norm = Norm("embeddings.LayerNorm");
  embeddings.size =
      config.SizeOr("embedding_size", spec->hidden, kMostHidden,
                    "columns of the tables; projected to hidden_size before the norm");
  if (embeddings.size != spec->hidden) {
    embeddings.projection = DenseWith("embeddings.embed_proj", false);
    embeddings.norm_place = EmbeddingNorm::kAfterProjection;
  }
  embeddings.type_count =
      config.SizeOr("type_vocab_size", 0, kMostVocabulary, "rows of the segment table; 0: none");
  if (embeddings.type_count > 0) embeddings.type.name = "embeddings.token_type_embeddings.weight";
  if (config.FlagOr("position_biased_input", true, "true: a learned row for each position")) {
    embeddings.position.name = "embeddings.position_embeddings.weight";
  } else {
    embeddings.position_kind = PositionKind::kNone;
    spec->token_limit = std::min(embeddings.max_positions, kLongestDistance);
  }
}

DebertaScores ReadScores(Config& config) {
  DebertaScores scores;
  const auto effect = "c2p: queries score positions; p2c: positions score keys";
  for (const std::string& type : config.Parts("pos_att_type", effect)) {
    bool* score = type == "c2p"   ? &scores.query_positions
                  : type == "p2c" ? &scores.key_positions
                                  : nullptr;
    if (score != nullptr && !*score) {
      *score = true;
      continue;
    }
    config.Fail(Unsupported(config.name() + ": pos_att_type has \"" + type + "\"" +
                            (score == nullptr ? ", only c2p and p2c are supported"
                                              : " twice; check the configuration")));
  }
  return scores;
}

void ReadRelativePositions(Config& config, const DebertaScores& scores, EncoderSpec* spec) {
  const bool relative =
      config.FlagOr("relative_attention", false, "true: positions score by how far apart they are");
  const size_t span = config.SizeOrNone("max_relative_positions", kMostPositions,
                                        "the largest distance; -1: as many as there are positions");
  if (relative != (scores.query_positions || scores.key_positions)) {
    config.Fail(
        Unsupported(config.name() +
                    (relative ? ": relative_attention is true and pos_att_type names no score"
                              : ": relative_attention is false and pos_att_type names scores") +
                    "; check the configuration"));
  }
  if (!relative) return;
  RelativePositionSpec& positions = spec->relative_positions;
  positions.span = span == 0 ? spec->embeddings.max_positions : span;
  positions.table.name = "encoder.rel_embeddings.weight";
}

}  // namespace

EncoderSpec DebertaSpec(Config& config, const SizeKeys& keys, DebertaScores* scores) {
  EncoderSpec spec = ReadSizes(config, keys);
  spec.activation = config.ActivationOr("hidden_act", "gelu", "activation of the feed-forward");
  spec.norm_epsilon = config.PositiveOr("layer_norm_eps", 1e-7, "epsilon of every LayerNorm");
  ReadEmbeddings(config, &spec);
  *scores = ReadScores(config);
  ReadRelativePositions(config, *scores, &spec);
  const int terms = 1 + scores->query_positions + scores->key_positions;
  spec.score_scale = 1.0f / std::sqrt(static_cast<float>(spec.head_dim * size_t(terms)));
  for (size_t i = 0; i < spec.layers.size(); ++i) {
    spec.layers[i] = BertLayer("encoder.layer." + std::to_string(i) + ".");
  }
  config.Refuse("z_steps", "a second pass through the last layer", {"0", "1"});
  constexpr std::string_view kHeadKeys[] = {"pooler_dropout", "pooler_hidden_act",
                                            "pooler_hidden_size", "legacy", "padding_idx"};
  config.Ignore(kHeadKeys, "of heads and training");
  return spec;
}

}  // namespace pozor
