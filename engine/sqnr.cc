#include "engine/sqnr.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "engine/executor.h"
#include "engine/forward.h"
#include "engine/memory.h"
#include "engine/quantize.h"
#include "engine/smoothing.h"
#include "kernels/quantize.h"

namespace pozor {
namespace {

// One input of one layer: x' = x[order] * scale + shift, in one or two groups.
class InputMeter {
 public:
  InputMeter() = default;
  explicit InputMeter(const Smoothing& smoothing) {
    for (size_t c = 0; c < smoothing.scale.size(); ++c) {
      scale_.push_back(1.0f / smoothing.scale[c]);
      shift_.push_back(-smoothing.centre[c] / smoothing.scale[c]);
    }
  }
  explicit InputMeter(std::vector<size_t> order)
      : order_(std::move(order)), split_(DownSplit(order_.size())) {}

  void Add(MatView<const float> x) {
    const AlignedBuffer bytes(QuantizedStride(x.cols));
    std::vector<float> row(x.cols);
    RowScale scales[2];
    for (size_t r = 0; r < x.rows; ++r) {
      Transform(x.Row(r), row);
      QuantizeArgs args;
      args.x = row.data();
      args.x_stride = args.cols = x.cols;
      args.rows = 1;
      args.split = split_;
      args.out = {bytes.As<uint8_t>(), QuantizedStride(x.cols), scales, split_ == 0 ? 1u : 2u};
      QuantizeRows(args);
      Compare(row, bytes.As<uint8_t>(), scales);
    }
  }

  void Add(const InputMeter& other) {
    signal_ += other.signal_;
    noise_ += other.noise_;
  }

  double Decibels() const {
    if (!(noise_ > 0)) return signal_ > 0 ? 200.0 : 0.0;
    return 10 * std::log10(signal_ / noise_);
  }

 private:
  void Transform(const float* x, std::vector<float>& row) const {
    for (size_t c = 0; c < row.size(); ++c) {
      row[c] = x[order_.empty() ? c : order_[c]];
      if (!scale_.empty()) row[c] = row[c] * scale_[c] + shift_[c];
    }
  }

  void Compare(const std::vector<float>& row, const uint8_t* bytes, const RowScale* scales) {
    for (size_t c = 0; c < row.size(); ++c) {
      const RowScale& scale = scales[split_ != 0 && c >= split_ ? 1 : 0];
      const double kept = double{scale.scale} * (int32_t{bytes[c]} - scale.zero);
      const double value = double{row[c]};
      signal_ += value * value;
      noise_ += (value - kept) * (value - kept);
    }
  }

  std::vector<float> scale_, shift_;  // empty: 1 and 0
  std::vector<size_t> order_;         // empty: as it is
  size_t split_ = 0;
  double signal_ = 0, noise_ = 0;
};

struct LayerMeters {
  std::array<InputMeter, kProductKinds> products;
  std::vector<InputMeter> experts;  // of second products

  InputMeter& operator[](ProductKind kind) { return products[static_cast<size_t>(kind)]; }
};

LayerMeters MakeMeters(const LayerWeights& layer, const LayerStatistics& statistics) {
  LayerMeters meters;
  PlainProduct qkv = Unpack(layer.qkv);
  PlainProduct* const first[] = {&qkv};
  std::vector<PlainProduct> ups;
  ups.reserve(layer.experts.up.size() + 2);
  for (const Linear& up : layer.experts.up) ups.push_back(Unpack(up));
  for (const Linear* up : {&layer.ffn_up, &layer.ffn_gate}) {
    if (up->present()) ups.push_back(Unpack(*up));
  }
  std::vector<PlainProduct*> second;
  second.reserve(ups.size());
  for (PlainProduct& up : ups) second.push_back(&up);
  meters[ProductKind::kQkv] = InputMeter(ChooseSmoothing(statistics[ProductKind::kQkv], first));
  meters[ProductKind::kUp] = InputMeter(ChooseSmoothing(statistics[ProductKind::kUp], second));
  meters[ProductKind::kDown] = InputMeter(OrderByRange(statistics[ProductKind::kDown]));
  for (const ChannelStatistics& expert : statistics.experts) {
    meters.experts.emplace_back(OrderByRange(expert));
  }
  return meters;
}

}  // namespace

Result<std::vector<LayerSqnr>> MeasureSqnr(const Encoder& encoder, const Calibration& calibration,
                                           const RaggedBatch& texts) {
  POZOR_RETURN_IF_ERROR(encoder.CheckBatch(texts));
  std::vector<LayerSqnr> result(calibration.size());
  const Status status = Guarded([&]() -> Status {
    std::vector<LayerMeters> meters;
    meters.reserve(calibration.size());
    for (size_t l = 0; l < calibration.size(); ++l) {
      meters.push_back(MakeMeters(encoder.impl().layers[l], calibration[l]));
    }
    Sinks sinks;
    sinks.product_inputs = [&](size_t layer, ProductKind kind, MatView<const float> x) {
      meters[layer][kind].Add(x);
    };
    sinks.expert_inputs = [&](size_t layer, size_t expert, MatView<const float> x) {
      meters[layer].experts[expert].Add(x);
    };
    Workspace workspace;
    for (size_t text = 0; text < texts.texts(); ++text) {
      const auto begin = static_cast<size_t>(texts.starts[text]);
      const size_t length = texts.length(text);
      const int32_t starts[] = {0, static_cast<int32_t>(length)};
      const bool typed = !texts.types.empty();
      encoder.Forward({texts.ids.subspan(begin, length),
                       typed ? texts.types.subspan(begin, length) : texts.types, starts},
                      workspace, sinks);
    }
    for (size_t l = 0; l < meters.size(); ++l) {
      for (const InputMeter& expert : meters[l].experts) meters[l][ProductKind::kDown].Add(expert);
      for (size_t kind = 0; kind < kProductKinds; ++kind) {
        const bool measured = static_cast<ProductKind>(kind) != ProductKind::kAttention;
        result[l][kind] = measured ? meters[l].products[kind].Decibels() : 0;
      }
    }
    return {};
  });
  if (!status.ok()) return status;
  return result;
}

}  // namespace pozor
