// The encoder once more, in double precision, a text at a time, with plain loops.
#ifndef POZOR_TESTS_ENGINE_TWIN_H_
#define POZOR_TESTS_ENGINE_TWIN_H_

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "engine/distances.h"
#include "tests/engine/tiny_model.h"
#include "tests/support/reference.h"

namespace pozor::test {

using Rows = std::vector<std::vector<double>>;

struct TwinResult {
  std::vector<Rows> hidden;                  // [layers + 1][tokens, hidden]
  std::vector<std::vector<Rows>> attention;  // [layers][heads][tokens, tokens], of whole layers
};

class Twin {
 public:
  Twin(const EncoderSpec& spec, const MemorySource& source) : spec_(spec), source_(source) {}

  TwinResult Encode(std::span<const int32_t> ids, std::span<const int32_t> types,
                    std::span<const uint8_t> globals = {}) const {
    TwinResult result;
    Rows h = Embed(ids, types), x;  // x: what a layer works on
    const bool pre = spec_.norm_place == NormPlace::kPre;
    for (const LayerSpec& layer : spec_.layers) {
      if (!layer.continues) {
        result.hidden.push_back(h);
        x = Narrowed(layer.narrow, layer.narrow_norm, h);
        const bool own = layer.narrow_query.weight.present();
        const Rows keys = own   ? Narrowed(layer.narrow_query, layer.narrow_query_norm, h)
                          : pre ? Norm(layer.attention_norm, x)
                                : x;
        const Rows context =
            Attend(layer, keys, own ? h : keys, globals, &result.attention.emplace_back());
        const Rows attended = Product(layer.attention_output, context, spec_.layer_columns());
        const Rows before = x;
        Add(&x, Norm(layer.attention_output_norm, attended));
        if (!pre) x = Norm(layer.attention_norm, x);
        if (layer.second_attention_norm.gamma.present()) {
          Add(&x, before);
          x = Norm(layer.second_attention_norm, x);
        }
      }
      Add(&x, Norm(layer.ffn_output_norm, FeedForward(layer, pre ? Norm(layer.ffn_norm, x) : x)));
      if (!pre) x = Norm(layer.ffn_norm, x);
      if (spec_.bottleneck == 0) h = x;
      if (&layer == &spec_.layers.front()) Convolve(result.hidden.front(), &h);
      if (!layer.widen.weight.present()) continue;
      Add(&h, Product(layer.widen, x, spec_.hidden));
      h = Norm(layer.widen_norm, h);
    }
    if (spec_.final_norm.gamma.present()) h = Norm(spec_.final_norm, h);
    result.hidden.push_back(h);
    return result;
  }

 private:
  Rows Narrowed(const LinearRef& narrow, const NormRef& norm, const Rows& h) const {
    return narrow.weight.present() ? Norm(norm, Product(narrow, h, spec_.bottleneck)) : h;
  }

  static void Add(Rows* h, const Rows& x) {
    for (size_t r = 0; r < h->size(); ++r) {
      for (size_t c = 0; c < (*h)[r].size(); ++c) (*h)[r][c] += x[r][c];
    }
  }

  double PositionValue(size_t position, size_t column) const {
    const EmbeddingSpec& e = spec_.embeddings;
    const size_t columns = spec_.embedding_columns();
    const double size = static_cast<double>(columns), p = static_cast<double>(position);
    const auto angle = [&](size_t k) {
      return p / std::pow(10000.0, 2.0 * static_cast<double>(k) / size);
    };
    switch (e.position_kind) {
      case PositionKind::kNone:
        return 0;
      case PositionKind::kLearned:
        return source_.Values(e.position.name)[position * columns + column];
      case PositionKind::kSinusoidalInterleaved:
        return column % 2 == 0 ? std::sin(angle(column / 2)) : std::cos(angle(column / 2));
      case PositionKind::kSinusoidalHalves:
        return column < e.size / 2 ? std::sin(angle(column)) : std::cos(angle(column - e.size / 2));
    }
    return 0;
  }

  Rows Embed(std::span<const int32_t> ids, std::span<const int32_t> types) const {
    const EmbeddingSpec& e = spec_.embeddings;
    Rows sum;
    size_t next = e.position_offset;
    if (e.projects_words) sum = Product(e.projection, Words(ids), spec_.hidden);
    for (size_t t = 0; t < ids.size(); ++t) {
      const size_t position = ids[t] == e.position_skips_id ? static_cast<size_t>(ids[t]) : next++;
      std::vector<double> row = e.projects_words ? sum[t] : Word(ids[t]);
      for (size_t c = 0; c < row.size(); ++c) {
        row[c] = row[c] * e.word_scale + PositionValue(position, c);
        if (!e.type.present()) continue;
        const size_t type = types.empty() ? 0 : static_cast<size_t>(types[t]);
        row[c] += source_.Values(e.type.name)[type * row.size() + c];
      }
      if (e.projects_words) {
        sum[t] = row;
      } else {
        sum.push_back(row);
      }
    }
    const bool after = e.norm_place == EmbeddingNorm::kAfterProjection;
    if (!after) sum = Norm(e.norm, sum);
    if (e.projects_words) return sum;
    if (e.projection.weight.present()) sum = Product(e.projection, sum, spec_.hidden);
    return after ? Norm(e.norm, sum) : sum;
  }

  // h = norm(h + act(convolution of x)), nothing before the first row and after the last.
  void Convolve(const Rows& x, Rows* h) const {
    const ConvolutionSpec& spec = spec_.convolution;
    if (!spec.linear.weight.present()) return;
    const std::vector<float>& weight = source_.Values(spec.linear.weight.name);
    const size_t taps = spec.linear.taps, hidden = spec_.hidden;
    for (size_t t = 0; t < x.size(); ++t) {
      for (size_t n = 0; n < hidden; ++n) {
        double sum = source_.Values(spec.linear.bias.name)[n];
        for (size_t tap = 0; tap < taps; ++tap) {
          const size_t row = t + tap - taps / 2;  // wraps around before the first row
          if (row >= x.size()) continue;
          for (size_t c = 0; c < hidden; ++c) {
            sum += x[row][c] * static_cast<double>(weight[(n * hidden + c) * taps + tap]);
          }
        }
        (*h)[t][n] += ReferenceActivation(spec.activation, sum);
      }
    }
    *h = Norm(spec.norm, *h);
  }

  std::vector<double> Word(int32_t id) const {
    const EmbeddingSpec& e = spec_.embeddings;
    const auto row = std::span(source_.Values(e.word.name)).subspan(size_t(id) * e.size, e.size);
    return {row.begin(), row.end()};
  }

  // What the projection reads: words, or the next, the own and the previous one.
  Rows Words(std::span<const int32_t> ids) const {
    Rows words;
    for (size_t t = 0; t < ids.size(); ++t) {
      if (!spec_.embeddings.trigrams) {
        words.push_back(Word(ids[t]));
        continue;
      }
      std::vector<double> row;
      for (const size_t at : {t + 1, t, t - 1}) {  // 0 - 1 is beyond the end as well
        const std::vector<double> none(spec_.embeddings.size);
        const std::vector<double> word = at < ids.size() ? Word(ids[at]) : none;
        row.insert(row.end(), word.begin(), word.end());
      }
      words.push_back(row);
    }
    return words;
  }

  Rows Product(const LinearRef& ref, const Rows& x, size_t out) const {
    const std::vector<float>& weight = source_.Values(ref.weight.name);
    const std::vector<float>& bias = source_.Values(ref.bias.name);
    const size_t stored = ref.weight.fused_rows == 0 ? out : ref.weight.fused_rows;
    Rows y;
    for (const std::vector<double>& row : x) {
      std::vector<double> sums(out);
      for (size_t n = 0; n < out; ++n) {
        const size_t group = std::max<size_t>(ref.weight.group_rows, 1);
        const size_t step = std::max<size_t>(ref.weight.group_step, 1);
        const size_t output = ref.weight.row_begin + n / group * step + n % group;
        const size_t groups = std::max<size_t>(ref.groups, 1), inputs = row.size() / groups;
        const size_t first = n / (out / groups) * inputs;  // input of the output's group
        for (size_t k = 0; k < inputs; ++k) {
          const size_t matrix = ref.place * row.size() * out;
          const size_t at = matrix + (ref.transposed ? k * stored + output : output * inputs + k);
          sums[n] += row[first + k] * static_cast<double>(weight[at]);
        }
        if (!bias.empty()) sums[n] += static_cast<double>(bias[output]);
      }
      y.push_back(sums);
    }
    return y;
  }

  Rows Norm(const NormRef& ref, const Rows& x) const {
    if (!ref.gamma.present()) return x;
    const std::vector<float>& gamma = source_.Values(ref.gamma.name);
    const std::vector<float>& beta = source_.Values(ref.beta.name);
    const bool centred = spec_.norm_kind == NormKind::kLayerNorm;
    const bool affine = spec_.norm_kind == NormKind::kAffine;
    Rows y = x;
    for (std::vector<double>& row : y) {
      const double n = static_cast<double>(row.size());
      double mean = 0, variance = 0;
      for (const double value : row) mean += centred ? value / n : 0;
      for (const double value : row) variance += (value - mean) * (value - mean) / n;
      const double deviation =
          affine ? 1 : std::sqrt(variance + static_cast<double>(spec_.norm_epsilon));
      for (size_t c = 0; c < row.size(); ++c) {
        row[c] = (row[c] - mean) / deviation *
                 (static_cast<double>(gamma[c]) + static_cast<double>(spec_.gain_offset));
        if ((centred || affine) && !beta.empty()) row[c] += static_cast<double>(beta[c]);
      }
    }
    return y;
  }

  // Every head of every row by itself, or all of a row together.
  void NormHeads(const NormRef& ref, Rows* x) const {
    if (!ref.gamma.present()) return;
    if (spec_.head_norms == HeadNorms::kAllHeads) {
      *x = Norm(ref, *x);
      return;
    }
    for (std::vector<double>& row : *x) {
      for (size_t begin = 0; begin < row.size(); begin += spec_.head_dim) {
        const std::span<double> head = std::span(row).subspan(begin, spec_.head_dim);
        std::copy_n(Norm(ref, {{head.begin(), head.end()}})[0].begin(), head.size(), head.begin());
      }
    }
  }

  bool Sees(const LayerSpec& layer, size_t i, size_t j) const {
    const size_t distance = i > j ? i - j : j - i;
    return distance <= layer.window && !(spec_.causal && j > i);
  }

  // Pairs of the first columns of every head turn by position times frequency.
  void Rotate(const LayerSpec& layer, Rows* x) const {
    if (layer.rotary == kNone) return;
    const RotarySpec& rotary = spec_.rotaries[layer.rotary];
    const size_t half = rotary.columns / 2;
    for (size_t t = 0; t < x->size(); ++t) {
      for (size_t head = 0; head < (*x)[t].size() / spec_.head_dim; ++head) {
        double* row = &(*x)[t][head * spec_.head_dim];
        for (size_t i = 0; i < half; ++i) {
          const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(2 * half);
          const double angle =
              static_cast<double>(t) * std::pow(rotary.theta, exponent) * rotary.frequency_scale;
          const bool halves = rotary.pairs == RotaryPairs::kHalves;
          double &a = row[halves ? i : 2 * i], &b = row[halves ? half + i : 2 * i + 1];
          const double turned = a * std::cos(angle) - b * std::sin(angle);
          b = b * std::cos(angle) + a * std::sin(angle);
          a = turned;
        }
      }
    }
  }

  // What is added to the score of query i and key j of a head, beyond q . k.
  double Bias(size_t head, ptrdiff_t distance) const {
    const ScoreBiasSpec& bias = spec_.score_bias;
    switch (bias.kind) {
      case ScoreBias::kNone:
        return 0;
      case ScoreBias::kBuckets:
        return source_.Values(bias.table.name)[DistanceBucket(distance, bias) * spec_.heads + head];
      case ScoreBias::kSlopes:
        return -HeadSlope(head, spec_.heads) * static_cast<double>(std::abs(distance));
    }
    return 0;
  }

  double Distances(const LayerSpec& layer, const double* q, const double* k,
                   ptrdiff_t apart) const {
    if (!layer.distances.present()) return 0;
    const std::vector<float>& table = source_.Values(layer.distances.name);
    const auto middle = static_cast<ptrdiff_t>(spec_.embeddings.max_positions) - 1;
    double score = 0;
    for (size_t c = 0; c < spec_.head_dim; ++c) {
      const double e = table[static_cast<size_t>(apart + middle) * spec_.head_dim + c];
      score += q[c] * e + (spec_.distances_score_keys ? k[c] * e : 0);
    }
    return score;
  }

  // The table of relative positions as a layer projects it: [2 * span, heads * head_dim], or none.
  struct PositionRows {
    Rows keys, queries;
  };

  PositionRows ProjectPositions(const LayerSpec& layer) const {
    const RelativePositionSpec& positions = spec_.relative_positions;
    const std::vector<float>& table = source_.Values(positions.table.name);
    Rows rows;
    for (size_t r = 0; r < 2 * positions.span; ++r) {
      const auto begin = table.begin() + static_cast<std::ptrdiff_t>(r * spec_.hidden);
      rows.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(spec_.hidden));
    }
    rows = Norm(positions.norm, rows);
    const size_t inner = spec_.heads * spec_.head_dim;
    PositionRows projected;
    if (layer.position_key.weight.present()) {
      projected.keys = Product(layer.position_key, rows, inner);
    }
    if (layer.position_query.weight.present()) {
      projected.queries = Product(layer.position_query, rows, inner);
    }
    return projected;
  }

  double Positions(const PositionRows& positions, const double* q, const double* k, size_t head,
                   ptrdiff_t apart) const {
    if (spec_.relative_positions.span == 0) return 0;
    const size_t row = RelativePositionRow(apart, spec_.relative_positions);
    double score = 0;
    for (size_t c = 0; c < spec_.head_dim; ++c) {
      const size_t column = head * spec_.head_dim + c;
      if (!positions.keys.empty()) score += q[c] * positions.keys[row][column];
      if (!positions.queries.empty()) score += k[c] * positions.queries[row][column];
    }
    return score;
  }

  double Score(const LayerSpec& layer, const PositionRows& positions, const double* q,
               const double* k, size_t head, ptrdiff_t apart) const {
    double score = Distances(layer, q, k, apart) + Positions(positions, q, k, head, apart);
    for (size_t c = 0; c < spec_.head_dim; ++c) score += q[c] * k[c];
    const double scale = spec_.score_scale != 0
                             ? static_cast<double>(spec_.score_scale)
                             : 1 / std::sqrt(static_cast<double>(spec_.head_dim));
    return score * scale + Bias(head, -apart);
  }

  // Rows of global tokens come from projections of their own and see everything.
  Rows Attend(const LayerSpec& layer, const Rows& x, const Rows& values,
              std::span<const uint8_t> globals, std::vector<Rows>* attention) const {
    Rows context = AttendLocally(layer, x, values, globals, attention);
    if (globals.empty()) return context;
    LayerSpec whole = layer;
    whole.query = layer.global_query;
    whole.key = layer.global_key;
    whole.value = layer.global_value;
    whole.window = kNoWindow;
    std::vector<Rows> whole_attention;
    const Rows whole_context = AttendLocally(whole, x, values, {}, &whole_attention);
    for (size_t t = 0; t < x.size(); ++t) {
      if (globals[t] == 0) continue;
      context[t] = whole_context[t];
      for (size_t h = 0; h < spec_.heads; ++h) (*attention)[h][t] = whole_attention[h][t];
    }
    return context;
  }

  Rows AttendLocally(const LayerSpec& layer, const Rows& x, const Rows& values,
                     std::span<const uint8_t> globals, std::vector<Rows>* attention) const {
    const size_t d = spec_.head_dim, kv_heads = spec_.kv_heads == 0 ? spec_.heads : spec_.kv_heads;
    Rows q = Product(layer.query, x, spec_.heads * d), k = Product(layer.key, x, kv_heads * d);
    const Rows v = Product(layer.value, values, kv_heads * d);
    NormHeads(layer.query_norm, &q);
    NormHeads(layer.key_norm, &k);
    Rotate(layer, &q);
    Rotate(layer, &k);
    const PositionRows positions = ProjectPositions(layer);
    Rows context(x.size(), std::vector<double>(spec_.heads * d));
    for (size_t head = 0; head < spec_.heads; ++head) {
      const size_t kv = head / (spec_.heads / kv_heads);
      Rows weights(x.size(), std::vector<double>(x.size()));
      for (size_t i = 0; i < x.size(); ++i) {
        double sum = 0;
        for (size_t j = 0; j < x.size(); ++j) {
          if (!Sees(layer, i, j) && (globals.empty() || globals[j] == 0)) continue;
          const auto apart = static_cast<ptrdiff_t>(i) - static_cast<ptrdiff_t>(j);
          sum += weights[i][j] =
              std::exp(Score(layer, positions, &q[i][head * d], &k[j][kv * d], head, apart));
        }
        for (size_t j = 0; j < x.size(); ++j) {
          weights[i][j] /= sum;
          for (size_t c = 0; c < d; ++c) {
            context[i][head * d + c] += weights[i][j] * v[j][kv * d + c];
          }
        }
      }
      attention->push_back(weights);
    }
    return context;
  }

  std::vector<double> Softmax(std::vector<double> scores) const {
    double sum = 0;
    for (double& score : scores) sum += score = std::exp(score);
    for (double& score : scores) score /= sum;
    return scores;
  }

  // Row by row, every expert on every row that chooses it.
  Rows Experts(const LayerSpec& layer, const Rows& x) const {
    const ExpertsSpec& experts = layer.experts;
    const std::vector<float>& bias = source_.Values(experts.bias.name);
    Rows sums;
    for (const std::vector<double>& row : x) {
      const std::vector<double> shares =
          Softmax(Product(experts.router, {row}, experts.count).front());
      std::vector<double> sum(bias.begin(), bias.end());
      sum.resize(row.size());
      for (size_t e = 0; e < experts.count; ++e) {
        size_t ahead = 0;
        for (size_t i = 0; i < experts.count; ++i) {
          ahead += shares[i] > shares[e] || (shares[i] == shares[e] && i < e);
        }
        if (ahead >= experts.chosen) continue;
        LayerSpec alone = layer;
        alone.experts.count = 0;
        alone.ffn_up.place = alone.ffn_down.place = e;
        const std::vector<double> y = FeedForward(alone, {row}).front();
        for (size_t c = 0; c < row.size(); ++c) sum[c] += shares[e] * y[c];
      }
      sums.push_back(sum);
    }
    return sums;
  }

  Rows FeedForward(const LayerSpec& layer, const Rows& x) const {
    if (layer.experts.count != 0) return Experts(layer, x);
    Rows up = Product(layer.ffn_up, x, spec_.intermediate);
    const bool gated = layer.ffn_gate.weight.present();
    const Rows gate = gated ? Product(layer.ffn_gate, x, spec_.intermediate) : up;
    for (size_t r = 0; r < up.size(); ++r) {
      for (size_t c = 0; c < up[r].size(); ++c) {
        const double activated = ReferenceActivation(spec_.activation, gate[r][c]);
        up[r][c] = gated ? activated * up[r][c] : activated;
      }
    }
    return Product(layer.ffn_down, up, spec_.layer_columns());
  }

  const EncoderSpec& spec_;
  const MemorySource& source_;
};

}  // namespace pozor::test

#endif  // POZOR_TESTS_ENGINE_TWIN_H_
