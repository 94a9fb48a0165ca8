// Random models of a few kilobytes, held in memory, and batches for them.
#ifndef POZOR_TESTS_ENGINE_TINY_MODEL_H_
#define POZOR_TESTS_ENGINE_TINY_MODEL_H_

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/calibration.h"
#include "engine/encoder.h"
#include "engine/graph.h"
#include "engine/memory.h"
#include "engine/precision.h"
#include "engine/quantize.h"
#include "tests/support/random.h"

namespace pozor::test {

// Tensors in memory; `mappable` decides whether the engine sees them in place or reads copies.
class MemorySource : public TensorSource {
 public:
  explicit MemorySource(bool mappable = true) : mappable_(mappable) {}

  void Add(const std::string& name, std::vector<size_t> shape, std::vector<float> values) {
    infos_.push_back({name, DType::kF32, std::move(shape), values_.size()});
    values_.push_back(std::move(values));
  }
  const std::vector<float>& Values(const std::string& name) const {
    for (const TensorInfo& info : infos_) {
      if (info.name == name) return values_[info.source_index];
    }
    static const std::vector<float> none;
    return none;
  }

  std::span<const TensorInfo> tensors() const override { return infos_; }
  Status Read(const TensorInfo& tensor, size_t begin, size_t count, float* out) const override {
    const std::vector<float>& values = values_[tensor.source_index];
    REQUIRE(begin + count <= values.size());
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(begin), count, out);
    return {};
  }
  const float* Map(const TensorInfo& tensor) const override {
    return mappable_ ? values_[tensor.source_index].data() : nullptr;
  }
  void Release(const TensorInfo&) const override { ++releases; }
  const std::string& description() const override { return description_; }

  mutable int releases = 0;

 private:
  bool mappable_;
  std::vector<TensorInfo> infos_;
  std::vector<std::vector<float>> values_;
  std::string description_ = "tiny model";
};

// A spec with every parameter named, and the random tensors it names.
class TinyModelBuilder {
 public:
  EncoderSpec spec;
  bool mappable = true;
  bool transposed = false;  // weights as [in, out]
  size_t groups = 0;        // of feed-forward products, stored as convolutions
  bool fused_qkv = false;   // one tensor of 3 * heads * head_dim rows
  bool biases = true;
  bool gated = false;
  bool type_table = true;
  bool distances = false;  // learned keys of distances in every layer
  bool globals = false;    // projections of global tokens in every layer
  // Of spec.relative_positions, if there are any: projections of their own, or the layer's key and
  // query; and which of the two scores there are.
  bool shared_positions = false;
  bool query_positions = true;
  bool key_positions = true;
  size_t taps = 0;                 // of a convolution beside the first layer; 0: none
  bool interleaved_heads = false;  // of fused_qkv: Q, K and V of a head side by side
  bool head_norms = false;         // of queries and keys
  bool output_norms = false;       // of both sublayers
  bool second_norms = false;       // after attention
  size_t experts = 0;              // of every second layer
  size_t chosen = 0;               // of them
  bool narrow_query = false;       // queries and keys have a bottleneck of their own
  bool int8 = false;               // every product
  PrecisionPlan plan;              // or these; empty: f32
  uint64_t seed = 1;

  TinyModelBuilder() {
    spec.architecture = "tiny";
    spec.hidden = 40;
    spec.heads = 3;
    spec.head_dim = 12;  // padded to 16
    spec.intermediate = 72;
    spec.norm_epsilon = 1e-5f;
    spec.embeddings.vocab_size = 50;
    spec.embeddings.size = 40;
    spec.embeddings.max_positions = 200;
    spec.embeddings.type_count = 2;
    spec.layers.resize(3);
  }

  // Each layer gets `parts` feed-forwards.
  void SplitLayers(size_t parts) {
    std::vector<LayerSpec> split;
    for (const LayerSpec& layer : spec.layers) {
      split.push_back(layer);
      LayerSpec part;
      part.continues = true;
      split.resize(split.size() + parts - 1, part);
    }
    spec.layers = split;
  }

  std::shared_ptr<MemorySource> Build() {
    source_ = std::make_shared<MemorySource>(mappable);
    EmbeddingSpec& embeddings = spec.embeddings;
    const size_t columns = spec.embedding_columns();
    embeddings.word = Tensor("word", {embeddings.vocab_size, embeddings.size}, 1.0f);
    if (embeddings.position_kind == PositionKind::kLearned) {
      embeddings.position = Tensor("position", {embeddings.max_positions, columns}, 0.5f);
    }
    if (type_table) embeddings.type = Tensor("type", {embeddings.type_count, columns}, 0.5f);
    embeddings.norm = Norm("embedding_norm", spec.embedding_norm_columns());
    if (embeddings.size != spec.hidden || embeddings.projects_words) {
      embeddings.projection = Product("projection", embeddings.projection_inputs(), spec.hidden);
    }
    if (spec.score_bias.kind == ScoreBias::kBuckets) {
      spec.score_bias.table = Tensor("bias", {spec.score_bias.buckets, spec.heads}, 1.0f);
    }
    RelativePositions();
    Convolution();
    for (size_t l = 0; l < spec.layers.size(); ++l) Layer("layer" + std::to_string(l), l);
    if (spec.norm_place == NormPlace::kPre) spec.final_norm = Norm("final_norm", spec.hidden);
    return source_;
  }

 private:
  TensorRef Tensor(const std::string& name, std::vector<size_t> shape, float deviation,
                   float mean = 0.0f) {
    size_t count = 1;
    for (const size_t dimension : shape) count *= dimension;
    std::vector<float> values = NormalFloats(count, ++seed, deviation);
    for (float& value : values) value += mean;
    source_->Add(name, std::move(shape), std::move(values));
    return {.name = name};
  }

  TensorRef Gain(const std::string& name, size_t cols) {
    // Nothing but the gain bounds what an affine norm lets through.
    const float mean = spec.norm_kind == NormKind::kAffine ? 0.5f : 1.0f;
    return Tensor(name + ".gamma", {cols}, 0.2f, mean - spec.gain_offset);
  }
  NormRef Norm(const std::string& name, size_t cols) {
    return {Gain(name, cols), Tensor(name + ".beta", {cols}, 0.2f)};
  }

  LinearRef Product(const std::string& name, size_t in, size_t out, size_t in_groups = 0) {
    LinearRef ref;
    ref.groups = in_groups;
    std::vector<size_t> shape = transposed ? std::vector{in, out} : std::vector{out, in};
    if (ref.groups != 0) shape = {out, in / in_groups, 1};
    ref.weight = Tensor(name + ".weight", shape, 1.2f / std::sqrt(static_cast<float>(in)));
    if (biases) ref.bias = Tensor(name + ".bias", {out}, 0.2f);
    ref.transposed = transposed;
    return ref;
  }

  void RelativePositions() {
    RelativePositionSpec& positions = spec.relative_positions;
    if (positions.span == 0) return;
    positions.table = Tensor("relative", {2 * positions.span, spec.hidden}, 1.0f);
    if (positions.rows == DistanceRows::kLogarithmic) {
      positions.norm = Norm("relative_norm", spec.hidden);
    }
  }

  void Convolution() {
    if (taps == 0) return;
    LinearRef& ref = spec.convolution.linear;
    ref.taps = taps;
    ref.weight = Tensor("convolution.weight", {spec.hidden, spec.hidden, taps}, 0.15f);
    ref.bias = Tensor("convolution.bias", {spec.hidden}, 0.2f);
    spec.convolution.norm = Norm("convolution.norm", spec.hidden);
  }

  void PositionProducts(const std::string& name, LayerSpec* layer) {
    if (spec.relative_positions.span == 0) return;
    const size_t inner = spec.heads * spec.head_dim;
    if (key_positions) {
      layer->position_query =
          shared_positions ? layer->query : Product(name + ".position_query", spec.hidden, inner);
    }
    if (!query_positions) return;
    layer->position_key =
        shared_positions ? layer->key : Product(name + ".position_key", spec.hidden, inner);
  }

  void FusedQkv(const std::string& name, LayerSpec* layer) {
    const size_t inner = spec.heads * spec.head_dim;
    const LinearRef all = Product(name + ".qkv", spec.hidden, 3 * inner);
    LinearRef* parts[] = {&layer->query, &layer->key, &layer->value};
    for (size_t i = 0; i < 3; ++i) {
      *parts[i] = all;
      for (TensorRef* ref : {&parts[i]->weight, &parts[i]->bias}) {
        ref->row_begin = i * (interleaved_heads ? spec.head_dim : inner);
        ref->row_count = inner;
        ref->fused_rows = 3 * inner;
        if (!interleaved_heads) continue;
        ref->group_rows = spec.head_dim;
        ref->group_step = 3 * spec.head_dim;
      }
    }
  }

  // First products [experts * intermediate, hidden], second ones [experts * intermediate, hidden].
  void Experts(const std::string& name, LayerSpec* layer) {
    const size_t rows = experts * spec.intermediate;
    const float deviation = 1.2f / std::sqrt(static_cast<float>(spec.hidden));
    layer->experts = {.count = experts, .chosen = chosen, .router = {}, .bias = {}};
    layer->experts.router.weight = Tensor(name + ".router", {experts, spec.hidden}, deviation);
    layer->experts.bias = Tensor(name + ".experts.bias", {spec.hidden}, 0.2f);
    layer->ffn_up = layer->ffn_down = {};
    layer->ffn_up.weight = Tensor(name + ".w1", {rows, spec.hidden}, deviation);
    layer->ffn_down.weight = Tensor(name + ".w2", {rows, spec.hidden}, deviation);
    layer->ffn_up.stack = layer->ffn_down.stack = experts;
    layer->ffn_down.transposed = true;
  }

  void Layer(const std::string& name, size_t l) {
    LayerSpec& layer = spec.layers[l];
    if (layer.same_as != kNone) {
      const LayerSpec other = spec.layers[layer.same_as];
      const size_t same_as = std::exchange(layer, other).same_as;
      layer.same_as = same_as;
      return;
    }
    if (!layer.continues) Attention(name, &layer);
    FeedForward(name, l, &layer);
    const bool last = l + 1 == spec.layers.size() || !spec.layers[l + 1].continues;
    if (spec.bottleneck != 0 && last) {
      layer.widen = Product(name + ".widen", spec.bottleneck, spec.hidden);
      layer.widen_norm = Norm(name + ".widen_norm", spec.hidden);
    }
  }

  void Narrow(const std::string& name, LinearRef* linear, NormRef* norm) {
    *linear = Product(name, spec.hidden, spec.bottleneck);
    *norm = Norm(name + "_norm", spec.bottleneck);
  }

  void Attention(const std::string& name, LayerSpec* made) {
    LayerSpec& layer = *made;
    const size_t inner = spec.heads * spec.head_dim, columns = spec.layer_columns();
    const size_t kv_inner = spec.kv_heads == 0 ? inner : spec.kv_heads * spec.head_dim;
    if (spec.bottleneck != 0) Narrow(name + ".narrow", &layer.narrow, &layer.narrow_norm);
    if (narrow_query) {
      Narrow(name + ".narrow_query", &layer.narrow_query, &layer.narrow_query_norm);
    }
    if (fused_qkv) {
      FusedQkv(name, &layer);
    } else {
      layer.query = Product(name + ".query", columns, inner);
      layer.key = Product(name + ".key", columns, kv_inner);
      layer.value = Product(name + ".value", narrow_query ? spec.hidden : columns, kv_inner);
    }
    PositionProducts(name, &layer);
    if (distances) {
      layer.distances =
          Tensor(name + ".distances", {2 * spec.embeddings.max_positions - 1, spec.head_dim}, 0.5f);
    }
    if (globals) {
      layer.global_query = Product(name + ".global_query", spec.hidden, inner);
      layer.global_key = Product(name + ".global_key", spec.hidden, kv_inner);
      layer.global_value = Product(name + ".global_value", spec.hidden, kv_inner);
    }
    layer.attention_output = Product(name + ".output", inner, columns);
    layer.attention_norm = Norm(name + ".attention_norm", columns);
    if (second_norms) layer.second_attention_norm = Norm(name + ".second_norm", spec.hidden);
    if (head_norms && spec.head_norms == HeadNorms::kAllHeads) {
      layer.query_norm = Norm(name + ".query_norm", inner);
      layer.key_norm = Norm(name + ".key_norm", kv_inner);
    } else if (head_norms) {
      layer.query_norm.gamma = Gain(name + ".query_norm", spec.head_dim);
      layer.key_norm.gamma = Gain(name + ".key_norm", spec.head_dim);
    }
    if (output_norms) {
      layer.attention_output_norm.gamma = Gain(name + ".attention_output_norm", columns);
    }
  }

  void FeedForward(const std::string& name, size_t l, LayerSpec* layer) {
    const size_t columns = spec.layer_columns();
    if (experts != 0 && l % 2 == 1) {
      Experts(name, layer);
    } else {
      layer->ffn_up = Product(name + ".up", columns, spec.intermediate, groups);
      if (gated) layer->ffn_gate = Product(name + ".gate", columns, spec.intermediate);
      layer->ffn_down = Product(name + ".down", spec.intermediate, columns, groups);
    }
    layer->ffn_norm = Norm(name + ".ffn_norm", columns);
    if (output_norms) layer->ffn_output_norm.gamma = Gain(name + ".ffn_output_norm", columns);
  }

  std::shared_ptr<MemorySource> source_;
};

// All that MobileBERT has.
inline void MakeMobile(TinyModelBuilder* builder) {
  builder->spec.bottleneck = 28;
  builder->narrow_query = true;
  builder->SplitLayers(4);
  builder->spec.norm_kind = NormKind::kAffine;
  builder->spec.embeddings.size = 12;
  builder->spec.embeddings.projects_words = builder->spec.embeddings.trigrams = true;
}

// Every fifth token or so is global if the model has global tokens.
inline TokenBatch RandomBatch(std::span<const size_t> lengths, const EncoderSpec& spec,
                              uint64_t seed = 7) {
  Random random(seed);
  TokenBatch batch;
  for (const size_t length : lengths) {
    for (size_t t = 0; t < length; ++t) {
      batch.ids.push_back(static_cast<int32_t>(random.Index(spec.embeddings.vocab_size)));
      batch.types.push_back(static_cast<int32_t>(random.Index(spec.embeddings.type_count)));
    }
    batch.EndText();
  }
  if (!spec.layers.front().global_query.weight.present()) return batch;
  for (size_t t = 0; t < batch.ids.size(); ++t) batch.globals.push_back(random.Index(5) == 0);
  return batch;
}

// In f32.
inline std::unique_ptr<Encoder> MakePlainEncoder(TinyModelBuilder& builder) {
  WeightReader reader(builder.Build());
  Result<std::unique_ptr<Encoder>> encoder = Encoder::Create(builder.spec, reader);
  REQUIRE_MESSAGE(encoder.ok(), encoder.status().message());
  CHECK(reader.Unused().empty());
  return std::move(*encoder);
}

inline Calibration CalibrateOnRandom(const Encoder& encoder) {
  const size_t lengths[] = {40, 3, 17, 60, 8, 25, 1, 90};
  const TokenBatch batch = RandomBatch(lengths, encoder.spec(), 99);
  Result<Calibration> calibration = Calibrate(encoder, batch.View(), 2);
  REQUIRE_MESSAGE(calibration.ok(), calibration.status().message());
  return std::move(*calibration);
}

inline std::unique_ptr<Encoder> Quantized(std::unique_ptr<Encoder> encoder, PrecisionPlan plan) {
  const Calibration calibration = CalibrateOnRandom(*encoder);
  Result<std::unique_ptr<Encoder>> quantized =
      QuantizeEncoder(std::move(encoder), calibration, std::move(plan));
  REQUIRE_MESSAGE(quantized.ok(), quantized.status().message());
  return std::move(*quantized);
}

// In the precision that the builder asks for.
inline std::unique_ptr<Encoder> MakeEncoder(TinyModelBuilder& builder) {
  std::unique_ptr<Encoder> encoder = MakePlainEncoder(builder);
  if (builder.plan.empty() && !builder.int8) return encoder;
  PrecisionPlan plan = builder.plan.empty() ? Int8Plan(encoder->spec()) : builder.plan;
  return Quantized(std::move(encoder), std::move(plan));
}

// The rows of every text by EncodeTokens, text after text.
inline std::vector<std::vector<float>> EncodeRows(const Encoder& encoder, const RaggedBatch& batch,
                                                  const GraphOptions& options = {}) {
  std::vector<std::vector<float>> rows(batch.texts());
  const Status status = EncodeTokens(
      encoder, batch, options, [&](size_t text, MatView<const float> hidden) -> Status {
        for (size_t r = 0; r < hidden.rows; ++r) {
          rows[text].insert(rows[text].end(), hidden.Row(r), hidden.Row(r) + hidden.cols);
        }
        return {};
      });
  CHECK_MESSAGE(status.ok(), status.message());
  return rows;
}

}  // namespace pozor::test

#endif  // POZOR_TESTS_ENGINE_TINY_MODEL_H_
