#include "engine/quantize.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include "engine/bounded_weights.h"
#include "engine/executor.h"
#include "engine/forward.h"
#include "engine/memory.h"
#include "engine/parallel.h"
#include "engine/precision_plan.h"
#include "engine/smoothing.h"
#include "engine/tensors.h"
#include "kernels/check.h"
#include "kernels/pack.h"

namespace pozor {
namespace {

// Makes the int8 and bf16 forms of one layer, in buffers of its own.
class LayerQuantizer {
 public:
  LayerQuantizer(Encoder::Impl& model, const Calibration& calibration, size_t l)
      : model_(model),
        layer_(model.layers[l]),
        statistics_(calibration[l]),
        precision_(model.precision[l]),
        l_(l) {}

  void Run() {
    if (precision_.IsInt8(ProductKind::kQkv)) {
      Qkv();
    } else {
      Convert(ProductKind::kQkv, &layer_.qkv);
      Convert(ProductKind::kQkv, &layer_.global_qkv);
      Convert(ProductKind::kQkv, &layer_.value);
    }
    if (precision_.IsInt8(ProductKind::kOutput)) {
      const PlainProduct output = Unpack(layer_.attention_output);
      Pack(output, 0, Means(ProductKind::kOutput), &layer_.attention_output);
    } else {
      Convert(ProductKind::kOutput, &layer_.attention_output);
    }
    FeedForward();
  }

  std::vector<AlignedBuffer> TakeBuffers() { return std::move(buffers_); }

 private:
  const ChannelStatistics& Statistics(ProductKind kind) const { return statistics_[kind]; }

  std::vector<float> Means(ProductKind kind) const {
    std::vector<float> means(Statistics(kind).sum.size());
    for (size_t c = 0; c < means.size(); ++c) means[c] = Statistics(kind).Mean(c);
    return means;
  }

  void Qkv() {
    PlainProduct qkv = Unpack(layer_.qkv);
    PlainProduct* const products[] = {&qkv};
    const Smoothing smoothing = ChooseSmoothing(Statistics(ProductKind::kQkv), products);
    ApplySmoothing(smoothing, &qkv);
    // Around their mean, which the centred input gives without a bias, keys round best.
    if (KeysShiftFreely(model_.spec, model_.spec.layers[l_])) {
      const size_t first = model_.spec.heads * model_.head_stride;
      const size_t count = model_.kv_heads() * model_.head_stride;
      std::fill_n(qkv.bias.begin() + static_cast<std::ptrdiff_t>(first), count, 0.0f);
    }
    Pack(qkv, 0, {}, &layer_.qkv);
    SetInput(Sublayer::kAttention, smoothing);
  }

  // One feed-forward, or one of every expert; all first products read the same input.
  void FeedForward() {
    const bool up_int8 = precision_.IsInt8(ProductKind::kUp);
    const bool down_int8 = precision_.IsInt8(ProductKind::kDown);
    std::vector<Linear*> first, second;
    for (Linear& linear : layer_.experts.up) first.push_back(&linear);
    for (Linear& linear : layer_.experts.down) second.push_back(&linear);
    if (first.empty()) {
      first = {&layer_.ffn_up};
      second = {&layer_.ffn_down};
      if (layer_.ffn_gate.present()) first.push_back(&layer_.ffn_gate);
    }
    for (Linear* linear : second) {
      if (!down_int8) Convert(ProductKind::kDown, linear);
    }
    if (!up_int8 && !down_int8) {
      for (Linear* linear : first) Convert(ProductKind::kUp, linear);
      return;
    }
    std::vector<PlainProduct> products;
    products.reserve(first.size());
    for (const Linear* linear : first) products.push_back(Unpack(*linear));
    for (size_t e = 0; e < second.size() && down_int8; ++e) {
      const bool gated = layer_.ffn_gate.present();
      const ChannelStatistics& input =
          layer_.experts.present() ? statistics_.experts[e] : Statistics(ProductKind::kDown);
      Down(input, std::span(products).subspan(e, gated ? 2 : 1), second[e]);
    }
    if (up_int8) {
      std::vector<PlainProduct*> all;
      all.reserve(products.size());
      for (PlainProduct& product : products) all.push_back(&product);
      const Smoothing smoothing = ChooseSmoothing(Statistics(ProductKind::kUp), all);
      for (size_t i = 0; i < first.size(); ++i) {
        ApplySmoothing(smoothing, &products[i]);
        Pack(products[i], 0, {}, first[i]);
      }
      SetInput(Sublayer::kFeedForward, smoothing);
    } else {
      const NumberFormat format = precision_[ProductKind::kUp].format;
      for (size_t i = 0; i < first.size(); ++i) PackFloats(products[i], format, first[i]);
    }
  }

  // Puts the inputs of the widest range first, here and in the outputs of what comes before.
  void Down(const ChannelStatistics& input, std::span<PlainProduct> before, Linear* linear) {
    PlainProduct down = Unpack(*linear);
    const std::vector<size_t> order = OrderByRange(input);
    for (PlainProduct& product : before) PermuteOutputs(order, &product);
    PermuteInputs(order, &down);
    std::vector<float> means;
    means.reserve(order.size());
    for (const size_t channel : order) means.push_back(input.Mean(channel));
    Pack(down, DownSplit(down.in), means, linear);
  }

  template <class T>
  T* Take(size_t count) {
    buffers_.emplace_back(count * sizeof(T));
    return buffers_.back().template As<T>();
  }

  // `mean` of the input, or empty if it is zero: the bias makes up for what rounding the weights
  // does to it.
  void Pack(const PlainProduct& product, size_t split, const std::vector<float>& mean,
            Linear* linear) {
    PackedMatrix matrix;
    matrix.layout = PackedLayout::kS8x16x4;
    matrix.k = product.in;
    matrix.n = product.out;
    matrix.split = split;
    const size_t padded = matrix.panel_count() * kPanelColumns;
    PackedS8 packed;
    packed.panels = Take<int8_t>(matrix.panel_count() * PackedPanelBytes(matrix.layout, matrix.k));
    packed.column_scales = Take<float>(matrix.groups() * padded);
    packed.column_sums = Take<int32_t>(matrix.groups() * padded);
    const WeightView view = {product.weight.data(), product.in, product.out, 1, product.in};
    PackS8(view, nullptr, product.out, split, 0, matrix.panel_count(), packed);
    matrix.panels = packed.panels;
    matrix.column_scales = packed.column_scales;
    matrix.column_sums = packed.column_sums;

    float* bias = Take<float>(padded);
    std::fill_n(bias, padded, 0.0f);
    for (size_t n = 0; n < product.out; ++n) {
      double correction = 0;
      for (size_t k = 0; k < mean.size(); ++k) {
        const size_t group = split != 0 && k >= split ? 1 : 0;
        const int8_t w8 = packed.panels[PackedS8Index(product.in, k, n)];
        const double kept =
            double{packed.column_scales[group * padded + n]} * static_cast<double>(w8);
        correction += (double{product.Row(n)[k]} - kept) * double{mean[k]};
      }
      bias[n] = static_cast<float>(double{product.bias[n]} + correction);
    }
    *linear = Linear::FromPacked(matrix, bias, product.activation);
  }

  // What is not in int8 stays in f32 or becomes bf16.
  void Convert(ProductKind kind, Linear* linear) {
    const NumberFormat format = precision_[kind].format;
    if (format != NumberFormat::kF32 && linear->present()) {
      PackFloats(Unpack(*linear), format, linear);
    }
  }

  // As f32 or bf16, outputs in the order that they have now.
  void PackFloats(const PlainProduct& product, NumberFormat format, Linear* linear) {
    PackedMatrix matrix = linear->matrix();
    matrix.layout = LayoutOf(format);
    const size_t count = matrix.panel_count(), padded = count * kPanelColumns;
    char* panels = Take<char>(count * PackedPanelBytes(matrix.layout, product.in));
    float* bias = Take<float>(padded);
    const WeightView view = {product.weight.data(), product.in, product.out, 1, product.in};
    PackPlain(matrix.layout, view, nullptr, product.out, 0, count, panels);
    std::fill_n(bias, padded, 0.0f);
    std::copy(product.bias.begin(), product.bias.end(), bias);
    matrix.panels = panels;
    *linear = Linear::FromPacked(matrix, bias, product.activation);
  }

  void SetInput(Sublayer sublayer, const Smoothing& smoothing) {
    const size_t columns = model_.spec.layer_columns();
    const NormWeights* norm = model_.NormBefore(l_, sublayer);
    float* scale = Take<float>(columns);
    float* shift = Take<float>(columns);
    for (size_t c = 0; c < columns; ++c) {
      const double s = smoothing.scale[c], centre = smoothing.centre[c];
      const double gamma = norm == nullptr ? 1.0 : double{norm->gamma[c]};
      const bool has_beta =
          norm != nullptr && norm->beta != nullptr && model_.spec.norm_kind == NormKind::kLayerNorm;
      const double beta = has_beta ? double{norm->beta[c]} : 0.0;
      scale[c] = static_cast<float>(gamma / s);
      shift[c] = static_cast<float>((beta - centre) / s);
    }
    model_.smooth_inputs[l_][static_cast<size_t>(sublayer)] = {scale, shift};
  }

  Encoder::Impl& model_;
  LayerWeights& layer_;
  const LayerStatistics& statistics_;
  const LayerPrecision& precision_;
  size_t l_;
  std::vector<AlignedBuffer> buffers_;
};

std::vector<AlignedBuffer> QuantizeLayers(Encoder::Impl& model, const Calibration& calibration,
                                          size_t threads, FirstError* error) {
  const size_t layers = model.layers.size();
  std::vector<std::vector<AlignedBuffer>> made(layers);
  std::atomic<size_t> next{0};
  RunTeam(std::min(ThreadsFor(threads), layers), [&](size_t) {
    for (size_t l = next++; l < layers && !error->stopped(); l = next++) {
      if (RepeatsArrays(model.spec, model.precision, l)) continue;
      error->Set(Guarded([&]() -> Status {
        LayerQuantizer quantizer(model, calibration, l);
        quantizer.Run();
        made[l] = quantizer.TakeBuffers();
        return {};
      }));
    }
  });
  for (size_t l = 0; l < layers; ++l) {
    if (!RepeatsArrays(model.spec, model.precision, l)) continue;
    model.layers[l] = model.layers[model.spec.layers[l].same_as].Alias();
  }
  std::vector<AlignedBuffer> all;
  for (std::vector<AlignedBuffer>& buffers : made) {
    std::move(buffers.begin(), buffers.end(), std::back_inserter(all));
  }
  return all;
}

bool Holds(const AlignedBuffer& buffer, const void* data) {
  const auto* begin = buffer.As<const char>();
  const auto* at = static_cast<const char*>(data);
  return at >= begin && at < begin + buffer.size();
}

// Copies what the model still reads of `old` memory into one arena, and lets the rest go.
Status Compact(Encoder::Impl& model, std::vector<AlignedBuffer> old) {
  const auto visit_old = [&](const TensorVisitor& visit) {
    return VisitTensors(model, [&](EncoderTensor& tensor) -> Status {
      const bool is_old = std::any_of(old.begin(), old.end(), [&](const AlignedBuffer& buffer) {
        return Holds(buffer, tensor.data);
      });
      return is_old ? visit(tensor) : Status();
    });
  };
  size_t bytes = 0;
  POZOR_RETURN_IF_ERROR(visit_old([&](EncoderTensor& tensor) -> Status {
    bytes += RoundUp(tensor.bytes(), kAlignment);
    return {};
  }));
  Workspace arena;
  arena.Reset(bytes);
  POZOR_RETURN_IF_ERROR(visit_old([&](EncoderTensor& tensor) -> Status {
    float* copy = arena.Take(DivCeil(tensor.bytes(), sizeof(float)));
    std::memcpy(copy, tensor.data, tensor.bytes());
    tensor.data = copy;
    return {};
  }));
  model.arena = std::move(arena);
  return {};
}

}  // namespace

Result<std::unique_ptr<Encoder>> QuantizeEncoder(std::unique_ptr<Encoder> encoder,
                                                 const Calibration& calibration,
                                                 PrecisionPlan precision, size_t threads) try {
  std::unique_ptr<Encoder::Impl> model = Encoder::Dismantle(std::move(encoder));
  POZOR_CHECK(model->precision.empty() && precision.size() == model->layers.size() &&
              calibration.size() == precision.size());
  const bool all_named = UnnamedBytes(*model) == 0;
  model->precision = std::move(precision);
  model->smooth_inputs.resize(model->layers.size());
  FirstError error;
  std::vector<AlignedBuffer> buffers = QuantizeLayers(*model, calibration, threads, &error);
  POZOR_RETURN_IF_ERROR(error.Take());
  if (all_named) {
    buffers.push_back(std::move(model->arena).Release());
    POZOR_RETURN_IF_ERROR(Compact(*model, std::move(buffers)));
  } else {
    // Something in the old memory has no name and cannot be moved: it stays.
    model->holder = std::make_shared<const std::vector<AlignedBuffer>>(std::move(buffers));
  }
  POZOR_RETURN_IF_ERROR(BoundInt8Weights(*model, nullptr, threads));
  return Encoder::Assemble(std::move(model));
} catch (const std::bad_alloc&) {
  return ResourceExhausted("memory: the system has too little to quantise the model; free some");
}

}  // namespace pozor
