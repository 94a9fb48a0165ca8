// Encoder::Create: from a spec and named tensors to packed weights.
#include <algorithm>
#include <array>
#include <cmath>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "engine/distances.h"
#include "engine/executor.h"
#include "engine/forward.h"
#include "engine/machine.h"
#include "engine/precision_plan.h"
#include "engine/relative_positions.h"
#include "kernels/check.h"

namespace pozor {
namespace {

// Sizes beyond this are no encoder's; below it no product of two overflows.
constexpr size_t kLargestSize = size_t{1} << 24;
constexpr size_t kLongestComputedTable = size_t{1} << 16;
constexpr size_t kMostTaps = 255;

// What depends on distances needs a longest text, and layers may only repeat earlier ones.
Status CheckDistances(const EncoderSpec& spec) {
  const auto wrong = [&](const std::string& what) {
    return Unsupported(spec.architecture + ": " + what + "; check the model's config");
  };
  if (spec.kv_heads != 0 && spec.heads % spec.kv_heads != 0) {
    return wrong(std::to_string(spec.heads) + " heads cannot share " +
                 std::to_string(spec.kv_heads) + " of keys and values");
  }
  const EmbeddingSpec& embeddings = spec.embeddings;
  const bool positions = embeddings.position_kind != PositionKind::kNone;
  const size_t longest = positions ? embeddings.max_positions : spec.token_limit;
  const bool tables = spec.score_bias.kind != ScoreBias::kNone || !spec.rotaries.empty() ||
                      spec.relative_positions.span != 0;
  if (tables && (longest == 0 || longest > kLongestDistance)) {
    return wrong("texts of " + std::to_string(longest) + " tokens are too long for a table");
  }
  if (spec.score_bias.buckets < 4 || spec.score_bias.buckets % 2 != 0 ||
      spec.score_bias.buckets > kLargestSize ||
      spec.score_bias.max_distance <= spec.score_bias.buckets / 4) {
    return wrong(std::to_string(spec.score_bias.buckets) + " buckets up to distance " +
                 std::to_string(spec.score_bias.max_distance) + " cannot be");
  }
  for (const RotarySpec& rotary : spec.rotaries) {
    if (rotary.columns == 0 || rotary.columns % 2 != 0 || rotary.columns > spec.head_dim) {
      return wrong("rotation of " + std::to_string(rotary.columns) + " columns of a head of " +
                   std::to_string(spec.head_dim) + " cannot be");
    }
  }
  for (size_t l = 0; l < spec.layers.size(); ++l) {
    const LayerSpec& layer = spec.layers[l];
    const bool rotary = layer.rotary == kNone || layer.rotary < spec.rotaries.size();
    if (rotary && (layer.same_as == kNone || layer.same_as < l)) continue;
    return wrong("layer " + std::to_string(l) + " refers to what is not there");
  }
  return {};
}

// A convolution looks as far to one side as to the other.
Status CheckConvolution(const EncoderSpec& spec) {
  const LinearRef& linear = spec.convolution.linear;
  if (!linear.weight.present()) return {};
  const bool post = spec.norm_place == NormPlace::kPost;
  if (post && linear.taps % 2 == 1 && linear.taps <= kMostTaps) return {};
  return Unsupported(spec.architecture + ": a convolution over " + std::to_string(linear.taps) +
                     " tokens" + (post ? "" : " in a pre-norm model") +
                     " cannot be; check the model's config");
}

// What a layer behind a bottleneck cannot have.
bool IsAdorned(const LayerSpec& layer) {
  return layer.global_query.weight.present() || layer.experts.count != 0 ||
         layer.second_attention_norm.gamma.present() || layer.query_norm.gamma.present();
}

// The first part of every layer leads into the bottleneck, the last one out of it.
Status CheckParts(const EncoderSpec& spec) {
  const auto wrong = [&](const std::string& what) {
    return Unsupported(spec.architecture + ": " + what + " cannot be; check the model's config");
  };
  const bool narrow = spec.bottleneck != 0, post = spec.norm_place == NormPlace::kPost;
  for (size_t l = 0; l < spec.layers.size(); ++l) {
    const LayerSpec& layer = spec.layers[l];
    const bool first = !layer.continues;
    const bool last = l + 1 == spec.layers.size() || !spec.layers[l + 1].continues;
    const bool plain =
        post && !spec.convolution.linear.weight.present() && spec.relative_positions.span == 0;
    if ((l == 0 && !first) || (!plain && (!first || narrow))) return wrong("layers in such parts");
    const bool fits = layer.narrow.weight.present() == (narrow && first) &&
                      layer.widen.weight.present() == (narrow && last) &&
                      (narrow || !layer.narrow_query.weight.present()) &&
                      !(narrow && IsAdorned(layer));
    if (!fits) return wrong("a bottleneck like that of layer " + std::to_string(l));
  }
  const EmbeddingSpec& words = spec.embeddings;
  const bool plain = words.position_kind != PositionKind::kNone && words.word_scale == 1.0f &&
                     words.projection.weight.present() && post;
  return (words.projects_words && !plain) || (words.trigrams && !words.projects_words)
             ? wrong("a projection of words like this")
             : Status();
}

// Norms beyond the two of every layer are root mean square ones, but for those over whole rows.
Status CheckNorms(const EncoderSpec& spec) {
  const bool rms = spec.norm_kind == NormKind::kRmsNorm;
  const bool pre = spec.norm_place == NormPlace::kPre;
  for (const LayerSpec& layer : spec.layers) {
    const bool query = layer.query_norm.gamma.present(), key = layer.key_norm.gamma.present();
    const bool outputs =
        layer.attention_output_norm.gamma.present() || layer.ffn_output_norm.gamma.present();
    const bool second = layer.second_attention_norm.gamma.present();
    const bool heads = rms || !query || spec.head_norms == HeadNorms::kAllHeads;
    if (query == key && heads && ((rms && pre) || !outputs) && !(second && pre)) continue;
    return Unsupported(spec.architecture + ": norms of " + (outputs ? "outputs" : "heads") +
                       " of this kind cannot be; check the model's config");
  }
  return {};
}

// Experts are as many as there are matrices for them, and have no gates or biases of their own.
// Every layer that has some chooses as many: rows of all layers share the places for what they
// give.
Status CheckExperts(const EncoderSpec& spec) {
  size_t chosen = 0;
  for (const LayerSpec& layer : spec.layers) {
    const ExpertsSpec& experts = layer.experts;
    if (experts.count == 0 && experts.chosen == 0) continue;
    if (chosen == 0) chosen = experts.chosen;
    const bool sizes = experts.count <= kMostExperts && experts.chosen > 0 &&
                       experts.chosen <= experts.count && experts.chosen == chosen &&
                       layer.ffn_up.stack == experts.count && layer.ffn_down.stack == experts.count;
    const bool plain = !layer.ffn_gate.weight.present() && !layer.ffn_up.bias.present() &&
                       !layer.ffn_down.bias.present() && !layer.ffn_output_norm.gamma.present();
    if (sizes && plain) continue;
    return Unsupported(spec.architecture + ": " + std::to_string(experts.chosen) + " of " +
                       std::to_string(experts.count) + " experts" +
                       (sizes ? " with gates or biases" : "") +
                       " cannot be; check the model's config");
  }
  return {};
}

Status CheckSizes(const EncoderSpec& spec) {
  const EmbeddingSpec& embeddings = spec.embeddings;
  struct Named {
    const char* name;
    size_t value;
  };
  const Named sizes[] = {{"hidden size", spec.hidden},
                         {"bottleneck size", spec.layer_columns()},
                         {"number of heads", spec.heads},
                         {"head size", spec.head_dim},
                         {"intermediate size", spec.intermediate},
                         {"vocabulary size", embeddings.vocab_size},
                         {"embedding size", embeddings.size},
                         {"number of layers", spec.layers.size()}};
  for (const Named& size : sizes) {
    if (size.value == 0 || size.value > kLargestSize) {
      return Unsupported(spec.architecture + ": " + size.name + " of " +
                         std::to_string(size.value) + " cannot be; check the model's config");
    }
  }
  if (!embeddings.projection.weight.present() && embeddings.size != spec.hidden) {
    return Unsupported(spec.architecture +
                       ": embedding size differs from hidden size without a projection; check the "
                       "model's config");
  }
  POZOR_RETURN_IF_ERROR(CheckDistances(spec));
  POZOR_RETURN_IF_ERROR(CheckNorms(spec));
  POZOR_RETURN_IF_ERROR(CheckRelativePositions(spec));
  POZOR_RETURN_IF_ERROR(CheckConvolution(spec));
  POZOR_RETURN_IF_ERROR(CheckExperts(spec));
  POZOR_RETURN_IF_ERROR(CheckParts(spec));
  if (embeddings.position_kind == PositionKind::kNone) return {};
  const size_t limit =
      embeddings.position_kind == PositionKind::kLearned ? kLargestSize : kLongestComputedTable;
  const int64_t positions = static_cast<int64_t>(embeddings.max_positions);
  if (embeddings.max_positions == 0 || embeddings.max_positions > limit ||
      embeddings.position_offset >= embeddings.max_positions ||
      embeddings.position_skips_id >= positions) {
    return Unsupported(spec.architecture + ": position table of " +
                       std::to_string(embeddings.max_positions) + " rows from " +
                       std::to_string(embeddings.position_offset) +
                       " on cannot be; check the model's config");
  }
  return {};
}

// Walks all parameters of a spec twice in the same order: the first time it checks that each
// exists in the right shape and adds up the memory, the second time it fills that memory.
class Loader {
 public:
  Loader(WeightReader& weights, Encoder::Impl& model) : weights_(weights), model_(model) {}

  Status Check() {
    packing_ = false;
    return Walk();
  }
  Status Pack(bool huge_pages) {
    packing_ = true;
    model_.arena.Reset(bytes_, huge_pages);
    return Walk();
  }
  size_t bytes() const { return bytes_; }

 private:
  Status Walk();
  Status Embeddings();
  Status PositionTable();
  Status Layer(size_t l);
  Status Positions(const LayerSpec& ref, LayerWeights* layer);
  Status PositionScores(const LinearRef& ref, float scale, Linear* scores);
  Status RelativeTable();
  Status Convolution();
  Status Attention(size_t l, LayerWeights* layer);
  Status Bottleneck(const LayerSpec& ref, LayerWeights* layer);
  Status ScoreBiases();
  Status Rotations();
  Status StoredRotation(const RotarySpec& rotary, float* table);
  Status Product(std::span<const LinearBlock> blocks, size_t in, Activation activation,
                 Linear* linear, NumberFormat format = NumberFormat::kF32);
  Status FeedForward(size_t l, LayerWeights* layer);
  Status Experts(size_t l, ExpertWeights* experts);
  Status Norm(const NormRef& ref, size_t cols, NormWeights* norm, float scale = 1);
  Status LayerNorms(const LayerSpec& ref, LayerWeights* layer);
  Status Table(const TensorRef& ref, size_t rows, size_t cols, const float** table);
  Status Vector(const TensorRef& ref, size_t cols, float offset, float scale, const float** vector);
  float* Take(size_t floats);

  WeightReader& weights_;
  Encoder::Impl& model_;
  RelativePositions relative_positions_;
  bool packing_ = false;
  size_t bytes_ = 0;
};

Status Loader::Walk() {
  POZOR_RETURN_IF_ERROR(Embeddings());
  POZOR_RETURN_IF_ERROR(ScoreBiases());
  POZOR_RETURN_IF_ERROR(Rotations());
  POZOR_RETURN_IF_ERROR(RelativeTable());
  POZOR_RETURN_IF_ERROR(Convolution());
  for (size_t l = 0; l < model_.layers.size(); ++l) POZOR_RETURN_IF_ERROR(Layer(l));
  return Norm(model_.spec.final_norm, model_.spec.hidden, &model_.final_norm);
}

Status Loader::Embeddings() {
  const EmbeddingSpec& embeddings = model_.spec.embeddings;
  POZOR_RETURN_IF_ERROR(
      Table(embeddings.word, embeddings.vocab_size, embeddings.size, &model_.word));
  POZOR_RETURN_IF_ERROR(PositionTable());
  if (embeddings.type.present()) {
    POZOR_RETURN_IF_ERROR(Table(embeddings.type, embeddings.type_count,
                                model_.spec.embedding_columns(), &model_.type));
  }
  POZOR_RETURN_IF_ERROR(
      Norm(embeddings.norm, model_.spec.embedding_norm_columns(), &model_.embedding_norm));
  if (!embeddings.projection.weight.present()) return {};
  const LinearBlock block{.ref = &embeddings.projection, .out = model_.spec.hidden};
  return Product({&block, 1}, embeddings.projection_inputs(), Activation::kNone,
                 &model_.projection);
}

// Angle of position p and frequency k: p / 10000^(2k / size) (Vaswani et al. 2017, section 3.5).
Status Loader::PositionTable() {
  const EmbeddingSpec& embeddings = model_.spec.embeddings;
  const size_t size = model_.spec.embedding_columns();
  if (embeddings.position_kind == PositionKind::kNone) return {};
  if (embeddings.position_kind == PositionKind::kLearned) {
    return Table(embeddings.position, embeddings.max_positions, size, &model_.position);
  }
  float* table = Take(embeddings.max_positions * size);
  if (!packing_) return {};
  const bool interleaved = embeddings.position_kind == PositionKind::kSinusoidalInterleaved;
  const size_t half = DivCeil(size, 2);
  for (size_t p = 0; p < embeddings.max_positions; ++p) {
    for (size_t c = 0; c < size; ++c) {
      const size_t k = interleaved ? c / 2 : c % half;
      const bool sine = interleaved ? c % 2 == 0 : c < half;
      const double angle =
          static_cast<double>(p) /
          std::pow(10000.0, 2.0 * static_cast<double>(k) / static_cast<double>(size));
      table[p * size + c] = static_cast<float>(sine ? std::sin(angle) : std::cos(angle));
    }
  }
  model_.position = table;
  return {};
}

// A number for each head and distance, or for each head, bucket and distance.
Status Loader::ScoreBiases() {
  const EncoderSpec& spec = model_.spec;
  if (spec.score_bias.kind == ScoreBias::kNone) return {};
  std::vector<float> learned;
  if (spec.score_bias.kind == ScoreBias::kBuckets) {
    const std::array<size_t, 2> shape = {spec.score_bias.buckets, spec.heads};
    POZOR_TRY(const TensorInfo* tensor, weights_.Take(spec.score_bias.table.name, shape));
    learned.resize(tensor->elements());
    POZOR_RETURN_IF_ERROR(weights_.source().Read(*tensor, 0, learned.size(), learned.data()));
  }
  const size_t tokens = model_.max_tokens();
  float* bias = Take(spec.heads * (2 * tokens - 1));
  if (!packing_) return {};
  FillScoreBias(spec.score_bias, learned, spec.heads, tokens, bias);
  model_.score_bias = bias;
  return {};
}

Status Loader::Rotations() {
  for (const RotarySpec& rotary : model_.spec.rotaries) {
    float* table = Take(model_.max_tokens() * rotary.columns);
    if (rotary.table.present()) {
      POZOR_RETURN_IF_ERROR(StoredRotation(rotary, table));
    } else if (packing_) {
      FillRotaryTable(rotary, model_.max_tokens(), table);
    }
    if (packing_) model_.rotary_tables.push_back(table);
  }
  return {};
}

Status Loader::StoredRotation(const RotarySpec& rotary, float* table) {
  const std::array<size_t, 2> shape = {model_.spec.embeddings.max_positions, rotary.columns};
  POZOR_TRY(const TensorInfo* tensor, weights_.Take(rotary.table.name, shape));
  if (!packing_) return {};
  const size_t half = rotary.columns / 2;
  const bool halves = rotary.pairs == RotaryPairs::kHalves;
  std::vector<float> row(rotary.columns);
  for (size_t p = 0; p < model_.max_tokens(); ++p, table += rotary.columns) {
    POZOR_RETURN_IF_ERROR(
        weights_.source().Read(*tensor, p * rotary.columns, rotary.columns, row.data()));
    for (size_t i = 0; i < half; ++i) {
      table[halves ? i : 2 * i] = row[half + i];
      table[halves ? half + i : 2 * i + 1] = row[i];
    }
  }
  return {};
}

Status Loader::Layer(size_t l) {
  const LayerSpec& ref = model_.spec.layers[l];
  LayerWeights* layer = &model_.layers[l];
  if (ref.same_as != kNone) {
    *layer = model_.layers[ref.same_as].Alias();
    return {};
  }
  if (!ref.continues) POZOR_RETURN_IF_ERROR(Attention(l, layer));
  POZOR_RETURN_IF_ERROR(FeedForward(l, layer));
  POZOR_RETURN_IF_ERROR(LayerNorms(ref, layer));
  return Bottleneck(ref, layer);
}

Status Loader::Attention(size_t l, LayerWeights* layer) {
  const EncoderSpec& spec = model_.spec;
  const LayerSpec& ref = spec.layers[l];
  const size_t inner = model_.attention_columns(), columns = spec.layer_columns();
  const auto heads = [&](const LinearRef& linear, size_t count) {
    return LinearBlock{.ref = &linear,
                       .out = count * spec.head_dim,
                       .group = spec.head_dim,
                       .padded_group = model_.head_stride};
  };
  const std::array<LinearBlock, 3> all = {heads(ref.query, spec.heads),
                                          heads(ref.key, model_.kv_heads()),
                                          heads(ref.value, model_.kv_heads())};
  const std::span<const LinearBlock> qkv(all);
  const bool value_apart = ref.narrow_query.weight.present();
  const NumberFormat format = FormatOf(model_.precision, l, ProductKind::kQkv);
  POZOR_RETURN_IF_ERROR(
      Product(qkv.first(value_apart ? 2 : 3), columns, Activation::kNone, &layer->qkv, format));
  if (value_apart) {
    POZOR_RETURN_IF_ERROR(
        Product(qkv.last(1), spec.hidden, Activation::kNone, &layer->value, format));
  }
  if (ref.global_query.weight.present()) {
    const std::array<LinearBlock, 3> global = {heads(ref.global_query, spec.heads),
                                               heads(ref.global_key, model_.kv_heads()),
                                               heads(ref.global_value, model_.kv_heads())};
    POZOR_RETURN_IF_ERROR(Product(global, columns, Activation::kNone, &layer->global_qkv, format));
  }
  const LinearBlock output{.ref = &ref.attention_output, .out = columns};
  POZOR_RETURN_IF_ERROR(Product({&output, 1}, inner, Activation::kNone, &layer->attention_output,
                                FormatOf(model_.precision, l, ProductKind::kOutput)));
  POZOR_RETURN_IF_ERROR(Norm(ref.attention_norm, columns, &layer->attention_norm));
  return Positions(ref, layer);
}

Status Loader::FeedForward(size_t l, LayerWeights* layer) {
  const EncoderSpec& spec = model_.spec;
  const LayerSpec& ref = spec.layers[l];
  const size_t columns = spec.layer_columns();
  POZOR_RETURN_IF_ERROR(Norm(ref.ffn_norm, columns, &layer->ffn_norm));
  if (ref.experts.count != 0) return Experts(l, &layer->experts);
  const bool gated = ref.ffn_gate.weight.present();
  const LinearBlock up{.ref = &ref.ffn_up, .out = spec.intermediate};
  const NumberFormat up_format = FormatOf(model_.precision, l, ProductKind::kUp);
  POZOR_RETURN_IF_ERROR(Product({&up, 1}, columns, gated ? Activation::kNone : spec.activation,
                                &layer->ffn_up, up_format));
  if (gated) {
    const LinearBlock gate{.ref = &ref.ffn_gate, .out = spec.intermediate};
    POZOR_RETURN_IF_ERROR(
        Product({&gate, 1}, columns, Activation::kNone, &layer->ffn_gate, up_format));
  }
  const LinearBlock down{.ref = &ref.ffn_down, .out = columns};
  return Product({&down, 1}, spec.intermediate, Activation::kNone, &layer->ffn_down,
                 FormatOf(model_.precision, l, ProductKind::kDown));
}

Status Loader::Bottleneck(const LayerSpec& ref, LayerWeights* layer) {
  const size_t hidden = model_.spec.hidden, columns = model_.spec.bottleneck;
  const auto product = [&](const LinearRef& linear, size_t in, size_t out, Linear* made) -> Status {
    if (!linear.weight.present()) return {};
    const LinearBlock block{.ref = &linear, .out = out};
    return Product({&block, 1}, in, Activation::kNone, made);
  };
  POZOR_RETURN_IF_ERROR(product(ref.narrow, hidden, columns, &layer->narrow));
  POZOR_RETURN_IF_ERROR(product(ref.narrow_query, hidden, columns, &layer->narrow_query));
  POZOR_RETURN_IF_ERROR(product(ref.widen, columns, hidden, &layer->widen));
  POZOR_RETURN_IF_ERROR(Norm(ref.narrow_norm, columns, &layer->narrow_norm));
  POZOR_RETURN_IF_ERROR(Norm(ref.narrow_query_norm, columns, &layer->narrow_query_norm));
  return Norm(ref.widen_norm, hidden, &layer->widen_norm);
}

// The router stays f32 whatever the weights are: what it rounds would choose other experts.
Status Loader::Experts(size_t l, ExpertWeights* experts) {
  const EncoderSpec& spec = model_.spec;
  const LayerSpec& ref = spec.layers[l];
  const LinearBlock router{.ref = &ref.experts.router, .out = ref.experts.count};
  POZOR_RETURN_IF_ERROR(Product({&router, 1}, spec.hidden, Activation::kNone, &experts->router));
  experts->up.resize(ref.experts.count);
  experts->down.resize(ref.experts.count);
  for (size_t e = 0; e < ref.experts.count; ++e) {
    LinearRef up_ref = ref.ffn_up, down_ref = ref.ffn_down;
    up_ref.place = down_ref.place = e;
    const LinearBlock up{.ref = &up_ref, .out = spec.intermediate};
    const LinearBlock down{.ref = &down_ref, .out = spec.hidden};
    POZOR_RETURN_IF_ERROR(Product({&up, 1}, spec.hidden, spec.activation, &experts->up[e],
                                  FormatOf(model_.precision, l, ProductKind::kUp)));
    POZOR_RETURN_IF_ERROR(Product({&down, 1}, spec.intermediate, Activation::kNone,
                                  &experts->down[e],
                                  FormatOf(model_.precision, l, ProductKind::kDown)));
  }
  if (!ref.experts.bias.present()) return {};
  return Vector(ref.experts.bias, spec.hidden, 0, 1, &experts->bias);
}

// What positions score by.
Status Loader::Positions(const LayerSpec& ref, LayerWeights* layer) {
  const EncoderSpec& spec = model_.spec;
  POZOR_RETURN_IF_ERROR(PositionScores(ref.position_key, 1, &layer->position_keys));
  POZOR_RETURN_IF_ERROR(
      PositionScores(ref.position_query, model_.query_scale, &layer->position_queries));
  if (!ref.distances.present()) return {};
  const LinearRef table = {.weight = ref.distances, .bias = {}};
  const LinearBlock block{.ref = &table, .out = 2 * spec.embeddings.max_positions - 1};
  return Product({&block, 1}, spec.head_dim, Activation::kNone, &layer->distances);
}

Status Loader::PositionScores(const LinearRef& ref, float scale, Linear* scores) {
  if (!ref.weight.present()) return {};
  if (packing_) {
    POZOR_TRY(*scores,
              relative_positions_.Project(model_.spec, weights_, ref, scale, model_.arena));
    return {};
  }
  bytes_ += RelativePositions::PackedBytes(model_.spec);
  return RelativePositions::CheckProjection(model_.spec, weights_, ref);
}

Status Loader::RelativeTable() {
  return packing_ ? relative_positions_.Read(model_.spec, weights_)
                  : RelativePositions::Check(model_.spec, weights_);
}

// In f32, whatever the other products are in.
Status Loader::Convolution() {
  const ConvolutionSpec& spec = model_.spec.convolution;
  if (!spec.linear.weight.present()) return {};
  const size_t hidden = model_.spec.hidden, in = spec.linear.taps * hidden;
  const LinearBlock block{.ref = &spec.linear, .out = hidden};
  if (packing_) {
    POZOR_TRY(model_.convolution,
              Linear::CreateIn(model_.arena, weights_, {&block, 1}, in, spec.activation));
  } else {
    POZOR_RETURN_IF_ERROR(Linear::Check(weights_, block, in));
    bytes_ += Linear::PackedBytes(in, hidden);
  }
  return Norm(spec.norm, hidden, &model_.convolution_norm);
}

Status Loader::LayerNorms(const LayerSpec& ref, LayerWeights* layer) {
  const size_t hidden = model_.spec.hidden, head = model_.spec.head_dim;
  POZOR_RETURN_IF_ERROR(Norm(ref.attention_output_norm, hidden, &layer->attention_output_norm));
  POZOR_RETURN_IF_ERROR(Norm(ref.ffn_output_norm, hidden, &layer->ffn_output_norm));
  POZOR_RETURN_IF_ERROR(Norm(ref.second_attention_norm, hidden, &layer->second_attention_norm));
  const bool all = model_.spec.head_norms == HeadNorms::kAllHeads;
  const size_t query = all ? model_.spec.heads * head : head;
  const size_t key = all ? model_.kv_heads() * head : head;
  POZOR_RETURN_IF_ERROR(Norm(ref.query_norm, query, &layer->query_norm, model_.query_scale));
  return Norm(ref.key_norm, key, &layer->key_norm);
}

Status Loader::Product(std::span<const LinearBlock> blocks, size_t in, Activation activation,
                       Linear* linear, NumberFormat format) {
  const PackedLayout layout = LayoutOf(format);
  if (packing_) {
    POZOR_TRY(*linear, Linear::CreateIn(model_.arena, weights_, blocks, in, activation, layout));
    return {};
  }
  size_t columns = 0;
  for (const LinearBlock& block : blocks) {
    POZOR_RETURN_IF_ERROR(Linear::Check(weights_, block, in));
    columns += block.packed_columns();
  }
  bytes_ += Linear::PackedBytes(in, columns, layout);
  return {};
}

Status Loader::Norm(const NormRef& ref, size_t cols, NormWeights* norm, float scale) {
  if (!ref.gamma.present()) return {};
  POZOR_RETURN_IF_ERROR(Vector(ref.gamma, cols, model_.spec.gain_offset, scale, &norm->gamma));
  return ref.beta.present() ? Vector(ref.beta, cols, 0, scale, &norm->beta) : Status();
}

// (x + offset) * scale
Status Loader::Vector(const TensorRef& ref, size_t cols, float offset, float scale,
                      const float** vector) {
  const std::array<size_t, 1> shape = {cols};
  POZOR_TRY(const TensorInfo* tensor, weights_.Take(ref.name, shape));
  float* values = Take(cols);
  if (!packing_) return {};
  *vector = values;
  POZOR_RETURN_IF_ERROR(weights_.source().Read(*tensor, 0, cols, values));
  std::transform(values, values + cols, values,
                 [=](float value) { return (value + offset) * scale; });
  return {};
}

// Tables are read a row at a time, so they stay in the file if their rows can be used there.
Status Loader::Table(const TensorRef& ref, size_t rows, size_t cols, const float** table) {
  const std::array<size_t, 2> shape = {rows, cols};
  POZOR_TRY(const TensorInfo* tensor, weights_.Take(ref.name, shape));
  const TensorSource& source = weights_.source();
  if (const float* mapped = source.Map(*tensor)) {
    *table = mapped;
    model_.source = weights_.shared_source();
    if (packing_) model_.mapped_bytes += rows * cols * sizeof(float);
    return {};
  }
  float* copy = Take(rows * cols);
  if (!packing_) return {};
  *table = copy;
  POZOR_RETURN_IF_ERROR(source.Read(*tensor, 0, rows * cols, copy));
  source.Release(*tensor);
  return {};
}

float* Loader::Take(size_t floats) {
  if (packing_) return model_.arena.Take(floats);
  bytes_ += RoundUp(floats * sizeof(float), kAlignment);
  return nullptr;
}

}  // namespace

Result<std::unique_ptr<Encoder::Impl>> Encoder::Impl::Make(EncoderSpec spec) {
  POZOR_RETURN_IF_ERROR(CheckSizes(spec));
  auto model = std::make_unique<Impl>();
  model->spec = std::move(spec);
  model->head_stride = RoundUp(model->spec.head_dim, kPanelColumns);
  model->query_scale = model->spec.score_scale != 0
                           ? model->spec.score_scale
                           : 1.0f / std::sqrt(static_cast<float>(model->spec.head_dim));
  model->layers.resize(model->spec.layers.size());
  model->IndexDistances();
  for (size_t l = 0, number = 0; l < model->layers.size(); ++l) {
    if (l != 0 && !model->spec.layers[l].continues) ++number;
    model->numbers.push_back(number);
  }
  return model;
}

void Encoder::Impl::IndexDistances() {
  if (position_columns() == 0) return;
  const auto last = static_cast<ptrdiff_t>(max_tokens()) - 1;
  const auto middle = static_cast<ptrdiff_t>(spec.embeddings.max_positions) - 1;
  for (ptrdiff_t distance = -last; distance <= last; ++distance) {
    const size_t column = spec.relative_positions.span != 0
                              ? RelativePositionRow(distance, spec.relative_positions)
                              : static_cast<size_t>(middle + distance);
    distance_index.push_back(static_cast<int32_t>(column));
  }
}

Result<std::unique_ptr<Encoder>> Encoder::Create(EncoderSpec spec, WeightReader& weights,
                                                 const EncoderOptions& options) try {
  POZOR_TRY(std::unique_ptr<Impl> model, Impl::Make(std::move(spec)));
  if (options.bf16_weights) model->precision = Bf16Plan(model->spec);
  Loader loader(weights, *model);
  POZOR_RETURN_IF_ERROR(loader.Check());
  POZOR_RETURN_IF_ERROR(
      CheckCeiling("the model's weights", options.max_memory, ResidentBytes() + loader.bytes()));
  POZOR_RETURN_IF_ERROR(loader.Pack(options.huge_pages));
  return std::unique_ptr<Encoder>(new Encoder(std::move(model)));
} catch (const std::bad_alloc&) {
  return ResourceExhausted("memory: the system has too little for the model; free some");
}

}  // namespace pozor
