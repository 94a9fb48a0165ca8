// From f32 to int8: exact before rounding, near after it, and the same however it is made.
#include "engine/quantize.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "engine/calibration.h"
#include "engine/forward.h"
#include "engine/precision_plan.h"
#include "engine/smoothing.h"
#include "engine/sqnr.h"
#include "engine/tensors.h"
#include "tests/engine/tiny_model.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"

namespace pozor {
namespace {

using test::CalibrateOnRandom;
using test::EncodeRows;
using test::MakeEncoder;
using test::MakePlainEncoder;
using test::Quantized;
using test::RandomBatch;
using test::SameBits;
using test::TinyModelBuilder;

struct Case {
  const char* name;
  std::function<void(TinyModelBuilder&)> change;
};

const Case kCases[] = {
    {"post-norm", [](TinyModelBuilder&) {}},
    {"pre-norm", [](TinyModelBuilder& b) { b.spec.norm_place = NormPlace::kPre; }},
    {"gated pre-norm without biases, RMS norm",
     [](TinyModelBuilder& b) {
       b.gated = true;
       b.biases = false;
       b.spec.norm_place = NormPlace::kPre;
       b.spec.norm_kind = NormKind::kRmsNorm;
       b.spec.activation = Activation::kSilu;
     }},
    {"gated post-norm", [](TinyModelBuilder& b) { b.gated = true; }},
    {"embedding projection: no norm in front of the first layer",
     [](TinyModelBuilder& b) { b.spec.embeddings.size = 24; }},
    {"feed-forward of one group", [](TinyModelBuilder& b) { b.spec.intermediate = 64; }},
    {"feed-forward narrower than a group", [](TinyModelBuilder& b) { b.spec.intermediate = 24; }},
    {"wide, no padding",
     [](TinyModelBuilder& b) {
       b.spec.hidden = b.spec.embeddings.size = 128;
       b.spec.heads = 4;
       b.spec.head_dim = 32;
       b.spec.intermediate = 512;
     }},
    {"heads of 20 columns, tables read in copies",
     [](TinyModelBuilder& b) {
       b.spec.head_dim = 20;
       b.mappable = false;
     }},
    {"window, causal",
     [](TinyModelBuilder& b) {
       b.spec.layers[1].window = 3;
       b.spec.causal = true;
     }},
    {"relative positions score queries and keys, norm after the embedding's projection",
     [](TinyModelBuilder& b) {
       b.spec.relative_positions = {
           .span = 24, .rows = DistanceRows::kLogarithmic, .max_distance = 60};
       b.shared_positions = true;
       b.spec.score_scale = 0.17f;
       b.spec.embeddings.size = 24;
       b.spec.embeddings.norm_place = EmbeddingNorm::kAfterProjection;
     }},
    {"relative positions score queries, convolution",
     [](TinyModelBuilder& b) {
       b.spec.relative_positions.span = 20;
       b.key_positions = false;
       b.spec.score_scale = 0.2f;
       b.taps = 3;
     }},
    {"affine norms", [](TinyModelBuilder& b) { b.spec.norm_kind = NormKind::kAffine; }},
    {"layers in three parts", [](TinyModelBuilder& b) { b.SplitLayers(3); }},
    {"bottlenecks, layers in parts, trigrams", [](TinyModelBuilder& b) { test::MakeMobile(&b); }},
};

// All of them, and layers that share their arrays, and global tokens.
std::vector<Case> CasesWithMore() {
  std::vector<Case> cases(std::begin(kCases), std::end(kCases));
  cases.push_back({"layers that repeat others", [](TinyModelBuilder& b) {
                     b.spec.layers[1].same_as = 0;
                     b.spec.layers[2].same_as = 1;
                   }});
  cases.push_back({"global tokens", [](TinyModelBuilder& b) { b.globals = true; }});
  return cases;
}

using PlanMaker = PrecisionPlan (*)(const EncoderSpec&);
constexpr PlanMaker kPlanMakers[] = {&Int8Plan, &Bf16Plan, &MixedPlan};

// Mean of 1 - cosine of the rows.
double Error(const std::vector<std::vector<float>>& got,
             const std::vector<std::vector<float>>& expected, size_t columns) {
  double sum = 0;
  size_t rows = 0;
  for (size_t text = 0; text < got.size(); ++text) {
    for (size_t at = 0; at < got[text].size(); at += columns, ++rows) {
      double ab = 0, aa = 0, bb = 0;
      for (size_t c = at; c < at + columns; ++c) {
        ab += double{got[text][c]} * double{expected[text][c]};
        aa += double{got[text][c]} * double{got[text][c]};
        bb += double{expected[text][c]} * double{expected[text][c]};
      }
      sum += 1 - ab / std::sqrt(aa * bb);
    }
  }
  return sum / static_cast<double>(rows);
}

TEST_CASE("int8 is near f32 for every kind of layer, with the same bits on every fused tier") {
  for (const Case& c : kCases) {
    CAPTURE(std::string(c.name));
    TinyModelBuilder builder;
    c.change(builder);
    const auto plain = MakePlainEncoder(builder);
    builder.seed = 1;
    builder.int8 = true;
    const auto int8 = MakeEncoder(builder);
    const size_t lengths[] = {5, 1, 0, 17, 70, 2, 150};
    const TokenBatch batch = RandomBatch(lengths, builder.spec);
    const auto expected = EncodeRows(*plain, batch.View());
    std::vector<std::vector<float>> first;
    test::ForEachFusedTier([&](CpuTier) {
      const auto rows = EncodeRows(*int8, batch.View());
      if (first.empty()) first = rows;
      for (size_t text = 0; text < rows.size(); ++text) CHECK(SameBits(rows[text], first[text]));
    });
    const double error = Error(first, expected, builder.spec.hidden);
    CHECK(error > 0);
    CHECK(error < 2e-3);
  }
}

TEST_CASE("a product alone in int8 is nearer than all together") {
  TinyModelBuilder builder;
  builder.int8 = true;
  const size_t lengths[] = {30, 40, 50};
  const auto all = MakeEncoder(builder);
  builder.seed = 1;
  const auto plain = MakePlainEncoder(builder);
  const TokenBatch batch = RandomBatch(lengths, builder.spec);
  const auto expected = EncodeRows(*plain, batch.View());
  const double largest = Error(EncodeRows(*all, batch.View()), expected, builder.spec.hidden);
  for (size_t kind = 0; kind < kProductKinds; ++kind) {
    PrecisionPlan plan(builder.spec.layers.size());
    plan[1].products[kind].format = NumberFormat::kInt8;
    if (static_cast<ProductKind>(kind) == ProductKind::kAttention) {
      plan[1][ProductKind::kQkv].format = NumberFormat::kInt8;
    }
    builder.seed = 1;
    const auto one = Quantized(MakePlainEncoder(builder), plan);
    const double error = Error(EncodeRows(*one, batch.View()), expected, builder.spec.hidden);
    CAPTURE(kind);
    CHECK(error > 0);
    CHECK(error < 0.7 * largest);
  }
}

// Sums of a product in double precision.
std::vector<double> Multiply(const PlainProduct& product, const std::vector<double>& x) {
  std::vector<double> y(product.out);
  for (size_t n = 0; n < product.out; ++n) {
    y[n] = product.bias[n];
    for (size_t k = 0; k < product.in; ++k) y[n] += double{product.Row(n)[k]} * x[k];
  }
  return y;
}

PlainProduct RandomProduct(size_t in, size_t out, uint64_t seed) {
  PlainProduct product;
  product.in = in;
  product.out = out;
  product.weight = test::NormalFloats(in * out, seed);
  product.bias = test::NormalFloats(out, seed + 1);
  return product;
}

TEST_CASE("smoothing, centring and permuting change nothing before rounding") {
  const size_t in = 70, out = 33;
  PlainProduct product = RandomProduct(in, out, 5);
  const PlainProduct original = product;
  std::vector<float> rows = test::NormalFloats(9 * in, 8);
  for (size_t r = 0; r < 9; ++r) {
    rows[r * in + 3] *= 100;   // an outlier
    rows[r * in + 4] = 0.75f;  // never moves
    rows[r * in + 5] += 30;
  }
  ChannelStatistics statistics;
  statistics.Add({rows.data(), 9, in, in});
  PlainProduct* const products[] = {&product};
  const Smoothing smoothing = ChooseSmoothing(statistics, products);
  CHECK(smoothing.scale[4] == 1.0f);
  CHECK(smoothing.centre[4] == 0.75f);
  CHECK(*std::max_element(smoothing.scale.begin(), smoothing.scale.end()) == smoothing.scale[3]);
  ApplySmoothing(smoothing, &product);
  const std::vector<size_t> order = OrderByRange(statistics);
  CHECK(std::set<size_t>(order.begin(), order.end()).size() == in);
  CHECK(order[0] == 3);
  PermuteInputs(order, &product);
  std::vector<size_t> backwards(out);
  std::iota(backwards.rbegin(), backwards.rend(), size_t{0});
  PermuteOutputs(backwards, &product);

  for (size_t r = 0; r < 9; ++r) {
    std::vector<double> x(rows.begin() + static_cast<std::ptrdiff_t>(r * in),
                          rows.begin() + static_cast<std::ptrdiff_t>((r + 1) * in));
    std::vector<double> smoothed(in);
    for (size_t k = 0; k < in; ++k) {
      const size_t from = order[k];
      smoothed[k] = (x[from] - double{smoothing.centre[from]}) / double{smoothing.scale[from]};
    }
    const std::vector<double> expected = Multiply(original, x), got = Multiply(product, smoothed);
    for (size_t n = 0; n < out; ++n) {
      CHECK(got[n] == doctest::Approx(expected[out - 1 - n]).epsilon(1e-5).scale(100));
    }
  }
}

// What a product gives for the input `x` [in], from its rounded weights.
std::vector<double> MultiplyRounded(const Linear& linear, const std::vector<double>& x) {
  const PackedMatrix& matrix = linear.matrix();
  const auto* panels = static_cast<const int8_t*>(matrix.panels);
  const float* bias = linear.Arguments(QuantizedRows(), 0).epilogue.bias;
  const size_t padded = matrix.panel_count() * kPanelColumns;
  std::vector<double> y(matrix.n);
  for (size_t n = 0; n < matrix.n; ++n) {
    y[n] = bias[n];
    for (size_t k = 0; k < matrix.k; ++k) {
      const size_t group = matrix.split != 0 && k >= matrix.split ? 1 : 0;
      y[n] += double{matrix.column_scales[group * padded + n]} *
              static_cast<double>(panels[PackedS8Index(matrix.k, k, n)]) * x[k];
    }
  }
  return y;
}

TEST_CASE("the bias makes up for what rounding does to the mean of an input") {
  TinyModelBuilder builder;
  auto encoder = MakePlainEncoder(builder);
  const size_t lengths[] = {40, 50};
  const TokenBatch batch = RandomBatch(lengths, builder.spec);
  const Calibration calibration = Calibrate(*encoder, batch.View(), 1).value();
  std::vector<std::array<PlainProduct, 2>> plain;
  for (const LayerWeights& layer : encoder->impl().layers) {
    plain.push_back({Unpack(layer.attention_output), Unpack(layer.ffn_down)});
  }
  encoder = QuantizeEncoder(std::move(encoder), calibration, Int8Plan(builder.spec)).value();
  for (size_t l = 0; l < plain.size(); ++l) {
    const LayerWeights& layer = encoder->impl().layers[l];
    const Linear* const rounded[] = {&layer.attention_output, &layer.ffn_down};
    for (const size_t p : {0, 1}) {
      CAPTURE(p);
      const auto kind = p == 0 ? ProductKind::kOutput : ProductKind::kDown;
      const ChannelStatistics& input = calibration[l][kind];
      std::vector<size_t> order = OrderByRange(input);
      if (p == 0) std::iota(order.begin(), order.end(), size_t{0});
      std::vector<double> mean, reordered;
      for (size_t k = 0; k < order.size(); ++k) {
        mean.push_back(double{input.Mean(k)});
        reordered.push_back(double{input.Mean(order[k])});
      }
      const std::vector<double> expected = Multiply(plain[l][p], mean);
      const std::vector<double> got = MultiplyRounded(*rounded[p], reordered);
      for (size_t n = 0; n < builder.spec.hidden; ++n) {
        CHECK(std::fabs(got[n] - expected[n]) < 1e-5);
      }
    }
  }
}

TEST_CASE("scales of the smoothing have the geometric mean 1 and the power 0.6") {
  PlainProduct product = RandomProduct(40, 24, 2);
  std::vector<float> rows = test::NormalFloats(50 * 40, 3);
  ChannelStatistics statistics;
  statistics.Add({rows.data(), 50, 40, 40});
  PlainProduct* const products[] = {&product};
  const Smoothing smoothing = ChooseSmoothing(statistics, products);
  double logs = 0;
  std::vector<double> ratio;
  for (size_t j = 0; j < 40; ++j) {
    float largest = 0;
    for (size_t n = 0; n < 24; ++n) largest = std::max(largest, std::fabs(product.Row(n)[j]));
    const double c = double{statistics.Mean(j)};
    const double reach = std::max(std::fabs(double{statistics.max[j]} - c),
                                  std::fabs(double{statistics.min[j]} - c));
    ratio.push_back(std::pow(reach, 0.6) / std::pow(double{largest}, 0.4) /
                    double{smoothing.scale[j]});
    logs += std::log(double{smoothing.scale[j]});
  }
  CHECK(std::fabs(logs / 40) < 1e-6);
  for (const double r : ratio) CHECK(r == doctest::Approx(ratio[0]).epsilon(1e-5));
}

TEST_CASE("calibration does not depend on threads, and sees what goes in") {
  TinyModelBuilder builder;
  const auto encoder = MakePlainEncoder(builder);
  std::vector<size_t> lengths;
  for (size_t i = 0; i < 40; ++i) lengths.push_back(1 + i * 7 % 60);
  const TokenBatch batch = RandomBatch(lengths, builder.spec);
  const Calibration one = Calibrate(*encoder, batch.View(), 1).value();
  const Calibration four = Calibrate(*encoder, batch.View(), 4).value();
  REQUIRE(one.size() == builder.spec.layers.size());
  for (size_t layer = 0; layer < one.size(); ++layer) {
    for (size_t kind = 0; kind < kProductKinds; ++kind) {
      const ChannelStatistics& a = one[layer].products[kind];
      const ChannelStatistics& b = four[layer].products[kind];
      const bool attention = static_cast<ProductKind>(kind) == ProductKind::kAttention;
      CHECK(a.rows == (attention ? 0 : batch.ids.size()));
      CHECK(a.sum == b.sum);
      CHECK(a.min == b.min);
      CHECK(a.max == b.max);
    }
  }
  CHECK(one[0][ProductKind::kDown].sum.size() == builder.spec.intermediate);
}

TEST_CASE("weights that are not finite are refused") {
  TinyModelBuilder builder;
  const auto source = builder.Build();
  const_cast<float*>(source->Map(source->tensors()[4]))[0] = std::nanf("");
  WeightReader reader(source);
  const auto encoder = Encoder::Create(builder.spec, reader).value();
  const size_t lengths[] = {20};
  const auto calibration = Calibrate(*encoder, RandomBatch(lengths, builder.spec).View(), 1);
  REQUIRE_FALSE(calibration.ok());
  CHECK(calibration.status().code() == StatusCode::kCorrupt);
}

TEST_CASE("the f32 weights go, and every array has a name") {
  for (const Case& c : kCases) {
    CAPTURE(std::string(c.name));
    TinyModelBuilder builder;
    c.change(builder);
    const auto plain = MakePlainEncoder(builder);
    CHECK(UnnamedBytes(plain->impl()) == 0);
    builder.seed = 1;
    builder.int8 = true;
    const auto int8 = MakeEncoder(builder);
    CHECK(UnnamedBytes(int8->impl()) == 0);
    const bool copied = !builder.mappable;  // tables stay as they are
    if (builder.spec.hidden >= 128) CHECK(int8->weight_bytes() < plain->weight_bytes() / 2);
    if (!copied) CHECK(int8->weight_bytes() < plain->weight_bytes());
    std::set<std::string> names;
    size_t bytes = 0;
    for (const EncoderTensor& tensor : ListTensors(*int8).value()) {
      CHECK(names.insert(tensor.name).second);
      CHECK(tensor.data != nullptr);
      bytes += tensor.bytes();
    }
    CHECK(bytes > 0);
  }
}

// Made of the arrays that `encoder` names, in the same order.
std::unique_ptr<Encoder> MadeAgain(const std::shared_ptr<Encoder>& encoder) {
  const auto tensors = ListTensors(*encoder).value();
  size_t next = 0;
  auto again = EncoderFromTensors(encoder->spec(), encoder->precision(),
                                  [&](EncoderTensor& tensor) -> Status {
                                    REQUIRE(next < tensors.size());
                                    CHECK(tensors[next].name == tensor.name);
                                    CHECK(tensors[next].dtype == tensor.dtype);
                                    CHECK(tensors[next].shape == tensor.shape);
                                    tensor.data = tensors[next++].data;
                                    return {};
                                  },
                                  {encoder, 0, nullptr});
  REQUIRE(again.ok());
  CHECK(next == tensors.size());
  return std::move(*again);
}

TEST_CASE("an encoder from its own tensors has the same bits in every precision") {
  for (const Case& c : CasesWithMore()) {
    for (const PlanMaker make_plan : kPlanMakers) {
      CAPTURE(std::string(c.name));
      TinyModelBuilder builder;
      c.change(builder);
      auto plain = MakePlainEncoder(builder);
      const PrecisionPlan plan = make_plan(builder.spec);
      CAPTURE(std::string(PrecisionName(plan)));
      const std::shared_ptr<Encoder> encoder = Quantized(std::move(plain), plan);
      const auto again = MadeAgain(encoder);
      const size_t lengths[] = {9, 33, 1};
      const TokenBatch batch = RandomBatch(lengths, builder.spec);
      const auto a = EncodeRows(*encoder, batch.View()), b = EncodeRows(*again, batch.View());
      for (size_t text = 0; text < a.size(); ++text) CHECK(SameBits(a[text], b[text]));
    }
  }
}

TEST_CASE("bf16 of an f32 encoder is array for array what is loaded as bf16") {
  for (const Case& c : CasesWithMore()) {
    CAPTURE(std::string(c.name));
    TinyModelBuilder builder;
    c.change(builder);
    auto plain = MakePlainEncoder(builder);
    const PrecisionPlan plan = Bf16Plan(builder.spec);
    const auto converted = Quantized(std::move(plain), plan);
    builder.seed = 1;
    WeightReader reader(builder.Build());
    EncoderOptions options;
    options.weights = NumberFormat::kBf16;
    const auto loaded = Encoder::Create(builder.spec, reader, options).value();
    const auto a = ListTensors(*converted).value(), b = ListTensors(*loaded).value();
    REQUIRE(a.size() == b.size());
    std::set<std::string> names;
    size_t bf16 = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      CAPTURE(a[i].name);
      CHECK(names.insert(a[i].name).second);
      REQUIRE(a[i].name == b[i].name);
      REQUIRE(a[i].dtype == b[i].dtype);
      REQUIRE(a[i].shape == b[i].shape);
      CHECK(std::memcmp(a[i].data, b[i].data, a[i].bytes()) == 0);
      bf16 += a[i].dtype == DType::kBF16 ? 1 : 0;
    }
    const size_t own = builder.spec.layers[1].same_as == kNone ? builder.spec.layers.size() : 1;
    const size_t attending = std::min(own, builder.spec.layer_count());
    const size_t beside = (builder.globals ? 1 : 0) + (builder.narrow_query ? 1 : 0);
    CHECK(bf16 == own * (2 + (builder.gated ? 1 : 0)) + attending * (2 + beside));
  }
}

// Over several models: where bf16 products round the rows as well, one product of a made-up model
// is nearer than in int8 by no more than chance moves the others.
TEST_CASE("a product in bf16 among int8 ones is nearer than all in int8, f32 nearer still") {
  const size_t lengths[] = {30, 40, 50};
  const uint64_t seeds[] = {1, 101, 201, 301};
  TinyModelBuilder builder;
  const TokenBatch batch = RandomBatch(lengths, builder.spec);
  const auto error = [&](const PrecisionPlan& plan) {
    double sum = 0;
    for (const uint64_t seed : seeds) {
      const auto plain_model = [&] {
        builder.seed = seed;
        return MakePlainEncoder(builder);
      };
      const auto expected = EncodeRows(*plain_model(), batch.View());
      const auto encoder = Quantized(plain_model(), plan);
      sum += Error(EncodeRows(*encoder, batch.View()), expected, builder.spec.hidden);
    }
    return sum;
  };
  const double int8 = error(Int8Plan(builder.spec)), mixed = error(MixedPlan(builder.spec));
  CHECK(mixed > 0);
  CHECK(mixed < 0.9 * int8);
  for (const ProductKind kind : {ProductKind::kQkv, ProductKind::kOutput, ProductKind::kUp}) {
    PrecisionPlan plan = Int8Plan(builder.spec);
    for (LayerPrecision& layer : plan) layer[kind] = {NumberFormat::kBf16, ""};
    CompletePlan(&plan);
    CHECK(error(plan) < int8);
  }
  CHECK(error(Bf16Plan(builder.spec)) < 0.2 * int8);
}

TEST_CASE("hidden states and attention rows of int8 are heard, and change nothing") {
  TinyModelBuilder builder;
  builder.int8 = true;
  const auto int8 = MakeEncoder(builder);
  const size_t lengths[] = {70, 3};
  const TokenBatch batch = RandomBatch(lengths, builder.spec);
  Sinks sinks;
  size_t states = 0, rows = 0;
  sinks.hidden_states = [&](size_t, MatView<const float> hidden) { states += hidden.rows; };
  sinks.attention = [&](const AttentionBlock& block) {
    for (size_t r = 0; r < block.weights.rows; ++r, ++rows) {
      const float* row = block.weights.Row(r);
      CHECK(std::accumulate(row, row + block.weights.cols, 0.0) ==
            doctest::Approx(1).epsilon(1e-5));
    }
  };
  Workspace loud, silent;
  const MatView<const float> a = int8->Forward(batch.View(), loud, sinks);
  const MatView<const float> b = int8->Forward(batch.View(), silent);
  CHECK(states == 4 * 73);
  CHECK(rows == 3 * 3 * 73);
  for (size_t r = 0; r < a.rows; ++r) {
    CHECK(SameBits(std::span(a.Row(r), a.cols), std::span(b.Row(r), b.cols)));
  }
}

TEST_CASE("signal to noise: a byte keeps about 40 dB, and no input is left out") {
  TinyModelBuilder builder;
  const auto plain = MakePlainEncoder(builder);
  const Calibration calibration = CalibrateOnRandom(*plain);
  const size_t lengths[] = {30, 12};
  const auto sqnr =
      MeasureSqnr(*plain, calibration, RandomBatch(lengths, builder.spec).View()).value();
  REQUIRE(sqnr.size() == 3);
  for (const LayerSqnr& layer : sqnr) {
    for (size_t kind = 0; kind < kProductKinds; ++kind) {
      if (static_cast<ProductKind>(kind) == ProductKind::kAttention) continue;
      CHECK(layer[kind] > 35);
      CHECK(layer[kind] < 60);
    }
  }
}

}  // namespace
}  // namespace pozor
