// One int8 layer of an encoder once more, in double precision, a text at a time, with plain loops:
// what the integers stand for is computed, from the model's own weights.
#ifndef POZOR_TESTS_ENGINE_INT8_TWIN_H_
#define POZOR_TESTS_ENGINE_INT8_TWIN_H_

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "engine/forward.h"
#include "kernels/pack.h"
#include "tests/engine/twin.h"
#include "tests/support/reference.h"

namespace pozor::test {

class Int8Twin {
 public:
  using Row = std::vector<double>;

  Int8Twin(const Encoder::Impl& model, size_t layer)
      : model_(model), layer_(model.layers[layer]), l_(layer) {}

  // From the rows that go into the layer to those that leave it.
  Rows Encode(Rows h) const {
    const bool pre = model_.spec.norm_place == NormPlace::kPre;
    const Rows context = Attend(Inputs(h, Sublayer::kAttention));
    for (size_t t = 0; t < h.size(); ++t) {
      Add(&h[t], Product(layer_.attention_output, Kept(context[t], 0)));
      if (!pre) h[t] = Norm(layer_.attention_norm, h[t]);
    }
    const Rows inputs = Inputs(h, Sublayer::kFeedForward);
    for (size_t t = 0; t < h.size(); ++t) {
      const Row up = FeedForwardUp(inputs[t]);
      Add(&h[t], Product(layer_.ffn_down, Kept(up, layer_.ffn_down.matrix().split)));
      if (!pre) h[t] = Norm(layer_.ffn_norm, h[t]);
    }
    return h;
  }

 private:
  static void Add(Row* h, const Row& x) {
    for (size_t c = 0; c < h->size(); ++c) (*h)[c] += x[c];
  }

  // What bytes keep of a row: scale * (q - zero), group by group (kernels/quantize.h).
  static Row Kept(const Row& x, size_t split) {
    Row kept;
    for (const auto& [begin, end] : {std::pair(size_t{0}, split), std::pair(split, x.size())}) {
      const std::span<const double> group = std::span(x).subspan(begin, end - begin);
      double low = 0, high = 0;
      for (const double value : group) low = std::min(low, value), high = std::max(high, value);
      const double inverse = high > low ? 255 / (high - low) : 0;
      const double zero = std::nearbyint(-low * inverse);
      for (const double value : group) {
        const double q = std::clamp(std::nearbyint(value * inverse) + zero, 0.0, 255.0);
        kept.push_back((q - zero) * (high - low) / 255);
      }
    }
    return kept;
  }

  // From a kept row; outputs are packed columns.
  static Row Product(const Linear& linear, const Row& x) {
    const PackedMatrix& matrix = linear.matrix();
    const auto* panels = static_cast<const int8_t*>(matrix.panels);
    const size_t padded = matrix.panel_count() * kPanelColumns;
    Row y(matrix.n);
    for (size_t n = 0; n < matrix.n; ++n) {
      for (size_t k = 0; k < matrix.k; ++k) {
        const size_t group = matrix.split != 0 && k >= matrix.split ? 1 : 0;
        y[n] += x[k] * static_cast<double>(panels[PackedS8Index(matrix.k, k, n)]) *
                static_cast<double>(matrix.column_scales[group * padded + n]);
      }
      y[n] += static_cast<double>(linear.bias()[n]);
    }
    return y;
  }

  // (x - mean) / sqrt(variance + epsilon)
  Row Normalised(const Row& x) const {
    const double n = static_cast<double>(x.size());
    double mean = 0, variance = 0;
    for (const double value : x) mean += value / n;
    for (const double value : x) variance += (value - mean) * (value - mean) / n;
    Row y = x;
    for (double& value : y) {
      value = (value - mean) / std::sqrt(variance + static_cast<double>(model_.spec.norm_epsilon));
    }
    return y;
  }

  Row Norm(const NormWeights& norm, const Row& x) const {
    Row y = Normalised(x);
    for (size_t c = 0; c < y.size(); ++c) {
      y[c] = y[c] * static_cast<double>(norm.gamma[c]) + static_cast<double>(norm.beta[c]);
    }
    return y;
  }

  // Smoothed and centred, as the bytes keep it. Behind a post-norm, rows are already n gamma +
  // beta.
  Rows Inputs(const Rows& h, Sublayer sublayer) const {
    const NormWeights* before = model_.NormBefore(l_, sublayer);
    const SmoothInput& input = model_.smooth_inputs[l_][static_cast<size_t>(sublayer)];
    const bool pre = model_.spec.norm_place == NormPlace::kPre;
    Rows rows;
    for (const Row& row : h) {
      Row x = pre ? Normalised(row) : row;
      for (size_t c = 0; c < x.size(); ++c) {
        if (!pre && before != nullptr) {
          x[c] =
              (x[c] - static_cast<double>(before->beta[c])) / static_cast<double>(before->gamma[c]);
        }
        x[c] = x[c] * static_cast<double>(input.scale[c]) + static_cast<double>(input.shift[c]);
      }
      rows.push_back(Kept(x, 0));
    }
    return rows;
  }

  // A head's columns of a row as integers in [-127, 127], and their scale.
  struct Integers {
    Row values;
    double scale;

    Integers(const double* x, size_t count) : values(x, x + count) {
      double largest = 0;
      for (const double value : values) largest = std::max(largest, std::fabs(value));
      scale = largest / 127;
      for (double& value : values) value = scale > 0 ? std::nearbyint(value / scale) : 0;
    }
  };

  // kernels/attention_s8.h
  Rows Attend(const Rows& inputs) const {
    const size_t heads = model_.spec.heads, d = model_.spec.head_dim;
    Rows qkv;
    for (const Row& x : inputs) qkv.push_back(Product(layer_.qkv, x));
    Rows context(inputs.size(), Row(heads * d));
    for (size_t head = 0; head < heads; ++head) {
      std::vector<Integers> q, k, v;
      for (Row& row : qkv) {
        const auto unit = [&](size_t of) { return &row[(of * heads + head) * model_.head_stride]; };
        for (size_t c = 0; c < d; ++c) unit(0)[c] *= static_cast<double>(model_.query_scale);
        q.emplace_back(unit(0), d), k.emplace_back(unit(1), d), v.emplace_back(unit(2), d);
      }
      double largest = 0;
      for (const Integers& row : v) largest = std::max(largest, row.scale);
      for (size_t i = 0; i < q.size(); ++i) {
        const Row weights = Weights(q[i], k);
        double sum = 0;
        for (size_t j = 0; j < k.size(); ++j) {
          sum += weights[j];
          const double p = std::nearbyint(16383 * weights[j] * v[j].scale / largest);
          for (size_t c = 0; c < d; ++c) context[i][head * d + c] += p * v[j].values[c];
        }
        for (size_t c = 0; c < d; ++c) context[i][head * d + c] *= largest / 16383 / sum;
      }
    }
    return context;
  }

  // exp(score - largest score) of each key
  static Row Weights(const Integers& q, const std::vector<Integers>& k) {
    Row scores;
    for (const Integers& key : k) {
      double sum = 0;
      for (size_t c = 0; c < key.values.size(); ++c) sum += q.values[c] * key.values[c];
      scores.push_back(sum * q.scale * key.scale);
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    for (double& score : scores) score = std::exp(score - largest);
    return scores;
  }

  Row FeedForwardUp(const Row& x) const {
    Row up = Product(layer_.ffn_up, x);
    if (!layer_.ffn_gate.present()) {
      for (double& value : up) value = ReferenceActivation(model_.spec.activation, value);
      return up;
    }
    const Row gate = Product(layer_.ffn_gate, x);
    for (size_t c = 0; c < up.size(); ++c) {
      up[c] *= ReferenceActivation(model_.spec.activation, gate[c]);
    }
    return up;
  }

  const Encoder::Impl& model_;
  const LayerWeights& layer_;
  size_t l_;
};

}  // namespace pozor::test

#endif  // POZOR_TESTS_ENGINE_INT8_TWIN_H_
