#include "engine/tensors.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>

#include "engine/bounded_weights.h"
#include "engine/executor.h"
#include "engine/forward.h"
#include "engine/precision_plan.h"
#include "engine/quantize.h"
#include "kernels/check.h"

namespace pozor {
namespace {

class Walk {
 public:
  Walk(Encoder::Impl& model, const TensorVisitor& visit) : model_(model), visit_(visit) {}

  Status Embeddings() {
    const EmbeddingSpec& spec = model_.spec.embeddings;
    const size_t columns = model_.spec.embedding_columns();
    POZOR_RETURN_IF_ERROR(Array("embeddings.word", {spec.vocab_size, spec.size}, &model_.word));
    if (spec.position_kind != PositionKind::kNone) {
      POZOR_RETURN_IF_ERROR(
          Array("embeddings.position", {spec.max_positions, columns}, &model_.position));
    }
    if (spec.type.present()) {
      POZOR_RETURN_IF_ERROR(Array("embeddings.type", {spec.type_count, columns}, &model_.type));
    }
    POZOR_RETURN_IF_ERROR(Norm("embeddings.norm", spec.norm, model_.spec.embedding_norm_columns(),
                               &model_.embedding_norm));
    if (!spec.projection.weight.present()) return {};
    return Plain("embeddings.projection", {spec.projection_inputs(), model_.spec.hidden},
                 &model_.projection);
  }

  // Tables that are computed once a model from few numbers.
  Status Positions() {
    const EncoderSpec& spec = model_.spec;
    const size_t tokens = model_.max_tokens();
    if (spec.score_bias.kind != ScoreBias::kNone) {
      POZOR_RETURN_IF_ERROR(Array("score_bias", {spec.heads, 2 * tokens - 1}, &model_.score_bias));
    }
    model_.rotary_tables.resize(spec.rotaries.size());
    for (size_t i = 0; i < spec.rotaries.size(); ++i) {
      POZOR_RETURN_IF_ERROR(Array("rotary." + std::to_string(i), {tokens, spec.rotaries[i].columns},
                                  &model_.rotary_tables[i]));
    }
    return {};
  }

  Status Convolution() {
    const ConvolutionSpec& spec = model_.spec.convolution;
    const size_t hidden = model_.spec.hidden;
    if (!spec.linear.weight.present()) return {};
    const Shape shape = {spec.linear.taps * hidden, hidden, spec.activation};
    POZOR_RETURN_IF_ERROR(Plain("convolution", shape, &model_.convolution));
    return Norm("convolution.norm", spec.norm, hidden, &model_.convolution_norm);
  }

  Status Layer(size_t l) {
    const std::string stem = "layers." + std::to_string(l) + ".";
    if (RepeatsArrays(model_.spec, model_.precision, l)) {
      model_.layers[l] = model_.layers[model_.spec.layers[l].same_as].Alias();
      return {};
    }
    if (!model_.spec.layers[l].continues) POZOR_RETURN_IF_ERROR(Attention(l, stem));
    if (model_.spec.layers[l].experts.count != 0) {
      POZOR_RETURN_IF_ERROR(Experts(l, stem, &model_.layers[l].experts));
    } else {
      POZOR_RETURN_IF_ERROR(FeedForward(l, stem, &model_.layers[l]));
    }
    POZOR_RETURN_IF_ERROR(Norm(stem + "ffn_norm", model_.spec.layers[l].ffn_norm,
                               model_.spec.layer_columns(), &model_.layers[l].ffn_norm));
    POZOR_RETURN_IF_ERROR(FurtherNorms(stem, model_.spec.layers[l], &model_.layers[l]));
    return Bottleneck(stem, model_.spec.layers[l], &model_.layers[l]);
  }

  Status Attention(size_t l, const std::string& stem) {
    const EncoderSpec& spec = model_.spec;
    const LayerSpec& ref = spec.layers[l];
    LayerWeights& layer = model_.layers[l];
    const size_t inner = model_.attention_columns(), columns = spec.layer_columns();
    const size_t values = ref.narrow_query.weight.present() ? model_.kv_heads() : 0;
    const size_t units = model_.head_units() - values;
    // Without integers of their own: f32 beside int8.
    const NumberFormat qkv = FormatOf(model_.precision, l, ProductKind::kQkv);
    const NumberFormat plain = qkv == NumberFormat::kInt8 ? NumberFormat::kF32 : qkv;
    POZOR_RETURN_IF_ERROR(Input(l, Sublayer::kAttention, stem + "qkv"));
    POZOR_RETURN_IF_ERROR(Product(l, ProductKind::kQkv, stem + "qkv",
                                  {columns, units * model_.head_stride}, &layer.qkv));
    if (values != 0) {
      const Shape shape = {spec.hidden, values * model_.head_stride};
      POZOR_RETURN_IF_ERROR(Plain(stem + "value", shape, &layer.value, plain));
    }
    POZOR_RETURN_IF_ERROR(Positions(stem, ref, &layer));
    if (ref.global_query.weight.present()) {
      const Shape global = {columns, model_.head_units() * model_.head_stride};
      POZOR_RETURN_IF_ERROR(Plain(stem + "global_qkv", global, &layer.global_qkv, plain));
    }
    POZOR_RETURN_IF_ERROR(Product(l, ProductKind::kOutput, stem + "output", {inner, columns},
                                  &layer.attention_output));
    return Norm(stem + "attention_norm", ref.attention_norm, columns, &layer.attention_norm);
  }

  Status Bottleneck(const std::string& stem, const LayerSpec& ref, LayerWeights* layer) {
    const size_t hidden = model_.spec.hidden, columns = model_.spec.bottleneck;
    const auto product = [&](const std::string& name, const LinearRef& linear, const NormRef& norm,
                             const Shape& shape, Linear* out, NormWeights* out_norm) -> Status {
      if (!linear.weight.present()) return {};
      POZOR_RETURN_IF_ERROR(Plain(stem + name, shape, out));
      return Norm(stem + name + "_norm", norm, shape.columns, out_norm);
    };
    POZOR_RETURN_IF_ERROR(product("narrow", ref.narrow, ref.narrow_norm, {hidden, columns},
                                  &layer->narrow, &layer->narrow_norm));
    POZOR_RETURN_IF_ERROR(product("narrow_query", ref.narrow_query, ref.narrow_query_norm,
                                  {hidden, columns}, &layer->narrow_query,
                                  &layer->narrow_query_norm));
    return product("widen", ref.widen, ref.widen_norm, {columns, hidden}, &layer->widen,
                   &layer->widen_norm);
  }

  Status Positions(const std::string& stem, const LayerSpec& ref, LayerWeights* layer) {
    const EncoderSpec& spec = model_.spec;
    const Shape learned = {spec.head_dim, 2 * spec.embeddings.max_positions - 1};
    const Shape of_heads = {spec.head_dim, spec.heads * model_.position_columns()};
    if (ref.distances.present()) {
      POZOR_RETURN_IF_ERROR(Plain(stem + "distances", learned, &layer->distances));
    }
    if (ref.position_key.weight.present()) {
      POZOR_RETURN_IF_ERROR(Plain(stem + "position_keys", of_heads, &layer->position_keys));
    }
    if (!ref.position_query.weight.present()) return {};
    return Plain(stem + "position_queries", of_heads, &layer->position_queries);
  }

  Status FeedForward(size_t l, const std::string& stem, LayerWeights* layer) {
    const EncoderSpec& spec = model_.spec;
    const size_t columns = spec.layer_columns(), ffn = spec.intermediate;
    const bool gated = spec.layers[l].ffn_gate.weight.present();
    POZOR_RETURN_IF_ERROR(Input(l, Sublayer::kFeedForward, stem + "up"));
    const Shape up = {columns, ffn, gated ? Activation::kNone : spec.activation};
    POZOR_RETURN_IF_ERROR(Product(l, ProductKind::kUp, stem + "up", up, &layer->ffn_up));
    if (gated) {
      POZOR_RETURN_IF_ERROR(
          Product(l, ProductKind::kUp, stem + "gate", {columns, ffn}, &layer->ffn_gate));
    }
    return Product(l, ProductKind::kDown, stem + "down", {ffn, columns}, &layer->ffn_down);
  }

  Status Experts(size_t l, const std::string& stem, ExpertWeights* experts) {
    const ExpertsSpec& ref = model_.spec.layers[l].experts;
    const size_t hidden = model_.spec.hidden, ffn = model_.spec.intermediate;
    POZOR_RETURN_IF_ERROR(Plain(stem + "router", {hidden, ref.count}, &experts->router));
    POZOR_RETURN_IF_ERROR(Input(l, Sublayer::kFeedForward, stem + "up"));
    experts->up.resize(ref.count);
    experts->down.resize(ref.count);
    for (size_t e = 0; e < ref.count; ++e) {
      const std::string expert = stem + "experts." + std::to_string(e) + ".";
      const Shape up = {hidden, ffn, model_.spec.activation};
      POZOR_RETURN_IF_ERROR(Product(l, ProductKind::kUp, expert + "up", up, &experts->up[e]));
      POZOR_RETURN_IF_ERROR(
          Product(l, ProductKind::kDown, expert + "down", {ffn, hidden}, &experts->down[e]));
    }
    if (!ref.bias.present()) return {};
    return Array(stem + "experts.bias", {hidden}, &experts->bias);
  }

  Status FurtherNorms(const std::string& stem, const LayerSpec& ref, LayerWeights* layer) {
    const size_t hidden = model_.spec.hidden, head = model_.spec.head_dim;
    POZOR_RETURN_IF_ERROR(Norm(stem + "attention_output_norm", ref.attention_output_norm, hidden,
                               &layer->attention_output_norm));
    POZOR_RETURN_IF_ERROR(
        Norm(stem + "ffn_output_norm", ref.ffn_output_norm, hidden, &layer->ffn_output_norm));
    POZOR_RETURN_IF_ERROR(Norm(stem + "second_attention_norm", ref.second_attention_norm, hidden,
                               &layer->second_attention_norm));
    const bool all = model_.spec.head_norms == HeadNorms::kAllHeads;
    const size_t query = all ? model_.spec.heads * head : head;
    const size_t key = all ? model_.kv_heads() * head : head;
    POZOR_RETURN_IF_ERROR(Norm(stem + "query_norm", ref.query_norm, query, &layer->query_norm));
    return Norm(stem + "key_norm", ref.key_norm, key, &layer->key_norm);
  }

  Status Norm(const std::string& name, const NormRef& ref, size_t cols, NormWeights* norm) {
    if (!ref.gamma.present()) return {};
    POZOR_RETURN_IF_ERROR(Array(name + ".gamma", {cols}, &norm->gamma));
    return ref.beta.present() ? Array(name + ".beta", {cols}, &norm->beta) : Status();
  }

 private:
  struct Shape {
    size_t in, columns;
    Activation activation = Activation::kNone;
    size_t panels() const { return DivCeil(columns, kPanelColumns); }
  };

  template <class T>
  Status Array(const std::string& name, std::vector<size_t> shape, const T** data) {
    constexpr DType kType = sizeof(T) == 1             ? DType::kI8
                            : std::is_same_v<T, Bf16>  ? DType::kBF16
                            : std::is_same_v<T, float> ? DType::kF32
                                                       : DType::kI32;
    EncoderTensor tensor = {name, kType, std::move(shape), *data};
    POZOR_RETURN_IF_ERROR(visit_(tensor));
    *data = static_cast<const T*>(tensor.data);
    return {};
  }

  Status Product(size_t l, ProductKind kind, const std::string& name, const Shape& shape,
                 Linear* linear) {
    const NumberFormat format = FormatOf(model_.precision, l, kind);
    if (format != NumberFormat::kInt8) return Plain(name, shape, linear, format);
    const size_t split = kind == ProductKind::kDown ? DownSplit(shape.in) : 0;
    return Int8(name, shape, split, linear);
  }

  // Anything but int8.
  Status Plain(const std::string& name, const Shape& shape, Linear* linear,
               NumberFormat format = NumberFormat::kF32) {
    return format == NumberFormat::kF32 ? PlainOf<float>(name, shape, linear, format)
                                        : PlainOf<Bf16>(name, shape, linear, format);
  }

  template <class T>
  Status PlainOf(const std::string& name, const Shape& shape, Linear* linear, NumberFormat format) {
    constexpr bool kHalf = std::is_same_v<T, Bf16>;
    PackedMatrix matrix;
    matrix.layout = LayoutOf(format);
    const size_t group = PackedGroup(matrix.layout);
    const size_t steps = PackedPanelBytes(matrix.layout, shape.in) / (sizeof(T) * kPanelColumns);
    std::vector<size_t> stored = {shape.panels(), steps / group, kPanelColumns};
    if (kHalf) stored.push_back(group);
    const T* panels = static_cast<const T*>(linear->matrix().panels);
    const float* bias = linear->bias();
    POZOR_RETURN_IF_ERROR(Array(name + ".weight", std::move(stored), &panels));
    POZOR_RETURN_IF_ERROR(Array(name + ".bias", {shape.panels() * kPanelColumns}, &bias));
    matrix.panels = panels;
    matrix.k = shape.in;
    matrix.n = shape.columns;
    *linear = Linear::FromPacked(matrix, bias, shape.activation);
    return {};
  }

  Status Int8(const std::string& name, const Shape& shape, size_t split, Linear* linear) {
    PackedMatrix matrix = linear->matrix();
    const auto* panels = static_cast<const int8_t*>(matrix.panels);
    const float* bias = linear->bias();
    const size_t padded = shape.panels() * kPanelColumns, groups = split == 0 ? 1 : 2;
    const size_t panel_bytes = PackedPanelBytes(PackedLayout::kS8x16x4, shape.in);
    POZOR_RETURN_IF_ERROR(
        Array(name + ".weight",
              {shape.panels(), panel_bytes / (4 * kPanelColumns), kPanelColumns, 4}, &panels));
    POZOR_RETURN_IF_ERROR(Array(name + ".scale", {groups, padded}, &matrix.column_scales));
    POZOR_RETURN_IF_ERROR(Array(name + ".sum", {groups, padded}, &matrix.column_sums));
    POZOR_RETURN_IF_ERROR(Array(name + ".bias", {padded}, &bias));
    matrix.layout = PackedLayout::kS8x16x4;
    matrix.panels = panels;
    matrix.k = shape.in;
    matrix.n = shape.columns;
    matrix.split = split;
    *linear = Linear::FromPacked(matrix, bias, shape.activation);
    return {};
  }

  Status Input(size_t l, Sublayer sublayer, const std::string& name) {
    const ProductKind kind =
        sublayer == Sublayer::kAttention ? ProductKind::kQkv : ProductKind::kUp;
    if (!model_.IsInt8(l, kind)) return {};
    SmoothInput& input = model_.smooth_inputs[l][static_cast<size_t>(sublayer)];
    const size_t columns = model_.spec.layer_columns();
    POZOR_RETURN_IF_ERROR(Array(name + ".input_scale", {columns}, &input.scale));
    return Array(name + ".input_shift", {columns}, &input.shift);
  }

  Encoder::Impl& model_;
  const TensorVisitor& visit_;
};

}  // namespace

Status VisitTensors(Encoder::Impl& model, const TensorVisitor& visit) {
  Walk walk(model, visit);
  POZOR_RETURN_IF_ERROR(walk.Embeddings());
  POZOR_RETURN_IF_ERROR(walk.Positions());
  POZOR_RETURN_IF_ERROR(walk.Convolution());
  for (size_t l = 0; l < model.layers.size(); ++l) POZOR_RETURN_IF_ERROR(walk.Layer(l));
  return walk.Norm("final_norm", model.spec.final_norm, model.spec.hidden, &model.final_norm);
}

size_t UnnamedBytes(const Encoder::Impl& model) {
  std::map<const void*, size_t> named;  // layers may share arrays
  const auto* begin = static_cast<const char*>(model.arena.data());
  const auto* end = begin + model.arena.used();
  const Status status =
      VisitTensors(const_cast<Encoder::Impl&>(model), [&](EncoderTensor& tensor) -> Status {
        const auto* data = static_cast<const char*>(tensor.data);
        if (data >= begin && data < end) named[data] = RoundUp(tensor.bytes(), kAlignment);
        return {};
      });
  POZOR_CHECK(status.ok());
  size_t total = 0;
  for (const auto& [data, bytes] : named) total += bytes;
  return model.arena.used() - std::min(total, model.arena.used());
}

Result<std::vector<EncoderTensor>> ListTensors(const Encoder& encoder) {
  const Encoder::Impl& model = encoder.impl();
  if (UnnamedBytes(model) != 0) {
    return Unsupported(model.spec.architecture +
                       ": a prepared file cannot hold all that this architecture computes with; "
                       "use it with --precision at load");
  }
  std::vector<EncoderTensor> tensors;
  // Looks only.
  POZOR_RETURN_IF_ERROR(VisitTensors(const_cast<Encoder::Impl&>(model), [&](EncoderTensor& tensor) {
    tensors.push_back(tensor);
    return Status();
  }));
  return tensors;
}

Result<std::unique_ptr<Encoder>> EncoderFromTensors(EncoderSpec spec, PrecisionPlan precision,
                                                    const TensorVisitor& find,
                                                    TensorHolder holder) {
  POZOR_TRY(std::unique_ptr<Encoder::Impl> model, Encoder::Impl::Make(std::move(spec)));
  model->precision = std::move(precision);
  model->smooth_inputs.resize(model->layers.size());
  POZOR_RETURN_IF_ERROR(VisitTensors(*model, find));
  model->holder = std::move(holder.keep);
  model->mapped_bytes = holder.mapped_bytes;
  model->row_check = std::move(holder.row_check);
  POZOR_RETURN_IF_ERROR(BoundInt8Weights(*model, holder.release, 0));
  return Encoder::Assemble(std::move(model));
}

}  // namespace pozor
