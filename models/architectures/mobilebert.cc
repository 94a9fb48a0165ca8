// MobileBERT (Sun et al. 2020): layers on narrow rows between bottlenecks, with several
// feed-forwards each, gains and shifts in place of norms, and a small word table that is read by
// trigrams.
#include <string>

#include "models/architectures/bert_family.h"

namespace pozor {
namespace {

constexpr std::string_view kMobileBertPassengers[] = {
    "embeddings.position_ids",
    "embeddings.embedding_transformation.*",   // if words are neither widened nor read by three
    "encoder.layer.*.bottleneck.attention.*",  // if everything reads the other bottleneck
    "pooler.*",
    "cls.*",
    "classifier.*",
    "qa_outputs.*",
};

constexpr size_t kMostFeedForwards = 64;

struct Shape {
  bool bottleneck, shared;  // shared: queries and keys have a bottleneck of their own
  size_t feed_forwards;
};

Shape ReadShape(Config& config, EncoderSpec* spec) {
  Shape shape;
  shape.bottleneck =
      config.FlagOr("use_bottleneck", true, "true: layers work on rows of intra_bottleneck_size");
  const size_t columns =
      config.SizeOr("intra_bottleneck_size", 128, kMostHidden, "columns of the rows inside layers");
  if (shape.bottleneck) spec->bottleneck = columns;
  const bool one = config.FlagOr("use_bottleneck_attention", false,
                                 "true: Q, K and V all read the layer's narrow rows");
  const bool shared = config.FlagOr("key_query_shared_bottleneck", true,
                                    "true: queries and keys have a bottleneck of their own");
  if (shape.bottleneck && !one && !shared) {
    config.Fail(Unsupported(config.name() +
                            ": key_query_shared_bottleneck and use_bottleneck_attention are both "
                            "false, which the reference cannot run either; check the "
                            "configuration"));
  }
  shape.shared = shape.bottleneck && !one;
  shape.feed_forwards = config.Size("num_feedforward_networks", kMostFeedForwards,
                                    "feed-forwards one after another in each layer");
  const size_t inside = spec->layer_columns();
  const size_t said =
      config.SizeOr("true_hidden_size", inside, kMostHidden, "columns that layers work on");
  if (said != inside || inside % spec->heads != 0) {
    config.Fail(Corrupt(config.name() + ": layers on rows of " + std::to_string(inside) +
                        " columns fit neither " + std::to_string(spec->heads) +
                        " heads nor a true_hidden_size of " + std::to_string(said) +
                        "; check the configuration"));
  }
  spec->head_dim = inside / spec->heads;
  return shape;
}

void ReadEmbeddings(Config& config, EncoderSpec* spec) {
  EmbeddingSpec& embeddings = spec->embeddings;
  embeddings.size = config.SizeOr("embedding_size", 128, kMostHidden, "columns of the word table");
  embeddings.trigrams =
      config.FlagOr("trigram_input", true, "true: a token's row is made of it and its neighbours");
  embeddings.projects_words = embeddings.trigrams || embeddings.size != spec->hidden;
  embeddings.type_count =
      config.SizeOr("type_vocab_size", 2, kMostVocabulary, "rows of the segment table");
  embeddings.word.name = "embeddings.word_embeddings.weight";
  embeddings.position.name = "embeddings.position_embeddings.weight";
  embeddings.type.name = "embeddings.token_type_embeddings.weight";
  if (embeddings.projects_words)
    embeddings.projection = Dense("embeddings.embedding_transformation");
  embeddings.norm = Norm("embeddings.LayerNorm");
}

// The parts of a layer: attention with a feed-forward, further feed-forwards, and BERT's own last.
std::vector<LayerSpec> Parts(const std::string& stem, const Shape& shape) {
  const LayerSpec bert = BertLayer(stem);
  std::vector<LayerSpec> parts(shape.feed_forwards);
  parts.front() = bert;
  for (size_t i = 0; i + 1 < parts.size(); ++i) {
    const std::string further = stem + "ffn." + std::to_string(i) + ".";
    parts[i].ffn_up = Dense(further + "intermediate.dense");
    parts[i].ffn_down = Dense(further + "output.dense");
    parts[i].ffn_norm = Norm(further + "output.LayerNorm");
    parts[i + 1].continues = true;
  }
  LayerSpec& last = parts.back();
  last.ffn_up = bert.ffn_up;
  last.ffn_down = bert.ffn_down;
  last.ffn_norm = bert.ffn_norm;
  if (!shape.bottleneck) return parts;
  parts.front().narrow = Dense(stem + "bottleneck.input.dense");
  parts.front().narrow_norm = Norm(stem + "bottleneck.input.LayerNorm");
  if (shape.shared) {
    parts.front().narrow_query = Dense(stem + "bottleneck.attention.dense");
    parts.front().narrow_query_norm = Norm(stem + "bottleneck.attention.LayerNorm");
  }
  last.widen = Dense(stem + "output.bottleneck.dense");
  last.widen_norm = Norm(stem + "output.bottleneck.LayerNorm");
  return parts;
}

EncoderSpec MakeSpec(Config& config, const WeightReader&) {
  EncoderSpec spec = ReadSizes(config, {});
  spec.activation = config.ActivationOr("hidden_act", "relu", "activation of the feed-forwards");
  spec.norm_kind = NormKind::kAffine;
  config.Refuse("normalization_type", "norms other than gains and shifts", {"no_norm"});
  constexpr std::string_view kUnused[] = {"layer_norm_eps", "classifier_activation"};
  config.Ignore(kUnused, "no_norm has no epsilon; the pooler is there or not");
  ReadEmbeddings(config, &spec);
  const Shape shape = ReadShape(config, &spec);
  const size_t layers = spec.layers.size();
  spec.layers.clear();
  for (size_t i = 0; i < layers; ++i) {
    const std::vector<LayerSpec> parts = Parts("encoder.layer." + std::to_string(i) + ".", shape);
    spec.layers.insert(spec.layers.end(), parts.begin(), parts.end());
  }
  return spec;
}

}  // namespace

extern const Architecture kMobileBert;
const Architecture kMobileBert = {
    .model_type = "mobilebert",
    .class_name = "MobileBert",
    .description = "MobileBERT",
    .make_spec = MakeSpec,
    .anchor = "embeddings.word_embeddings.weight",
    .passengers = kMobileBertPassengers,
    .pooler_weight = "pooler.dense.weight",
    .pooler_bias = "pooler.dense.bias",
};

}  // namespace pozor
