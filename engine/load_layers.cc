// Parameters of one layer after another, and of the convolution beside the first.
#include <array>

#include "engine/encoder_loader.h"
#include "engine/precision_plan.h"

namespace pozor {

Status EncoderLoader::Layer(size_t l) {
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

Status EncoderLoader::Attention(size_t l, LayerWeights* layer) {
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

// What positions score by.
Status EncoderLoader::Positions(const LayerSpec& ref, LayerWeights* layer) {
  const EncoderSpec& spec = model_.spec;
  POZOR_RETURN_IF_ERROR(PositionScores(ref.position_key, 1, &layer->position_keys));
  POZOR_RETURN_IF_ERROR(
      PositionScores(ref.position_query, model_.query_scale, &layer->position_queries));
  if (!ref.distances.present()) return {};
  const LinearRef table = {.weight = ref.distances, .bias = {}};
  const LinearBlock block{.ref = &table, .out = 2 * spec.embeddings.max_positions - 1};
  return Product({&block, 1}, spec.head_dim, Activation::kNone, &layer->distances);
}

Status EncoderLoader::PositionScores(const LinearRef& ref, float scale, Linear* scores) {
  if (!ref.weight.present()) return {};
  if (packing_) {
    POZOR_TRY(*scores,
              relative_positions_.Project(model_.spec, weights_, ref, scale, model_.arena));
    return {};
  }
  bytes_ += RelativePositions::PackedBytes(model_.spec);
  return RelativePositions::CheckProjection(model_.spec, weights_, ref);
}

Status EncoderLoader::FeedForward(size_t l, LayerWeights* layer) {
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

// The router stays f32 whatever the weights are: what it rounds would choose other experts.
Status EncoderLoader::Experts(size_t l, ExpertWeights* experts) {
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

Status EncoderLoader::Bottleneck(const LayerSpec& ref, LayerWeights* layer) {
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

Status EncoderLoader::LayerNorms(const LayerSpec& ref, LayerWeights* layer) {
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

// In f32, whatever the other products are in.
Status EncoderLoader::Convolution() {
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

}  // namespace pozor
