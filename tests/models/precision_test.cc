// What int8 and bf16 keep of every architecture: one table over the golden folders.
//
// POZOR_GOLDENS=DIR takes the golden folders of DIR instead, as far as f32 runs them; nothing is
// bounded then.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/quantize.h"
#include "tests/models/golden_folders.h"
#include "tests/models/trace.h"

namespace pozor {
namespace {

namespace fs = std::filesystem;
using test::Golden;

// The mean of the rows of the last hidden states: what most models are pooled by.
std::vector<double> VectorOf(const test::Trace& trace, size_t tokens, size_t hidden) {
  std::vector<double> vector(hidden);
  const auto last = std::span(trace.hidden).last(tokens * hidden);
  for (size_t i = 0; i < last.size(); ++i) vector[i % hidden] += double{last[i]};
  return vector;
}

double Cosine(std::span<const double> a, std::span<const double> b) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
  return ab / std::sqrt(aa * bb);
}

// How near one precision is to f32, over the texts of a golden.
struct Nearness {
  double sum = 0, least = 1, difference = 0;
  size_t texts = 0;

  double mean() const { return sum / static_cast<double>(texts); }

  void Add(const test::Trace& exact, const test::Trace& got, size_t tokens, size_t hidden) {
    const double cosine = Cosine(VectorOf(exact, tokens, hidden), VectorOf(got, tokens, hidden));
    sum += cosine;
    least = std::isnan(cosine) ? cosine : std::min(least, cosine);
    ++texts;
    for (size_t i = 0; i < exact.hidden.size(); ++i) {
      difference = std::max(difference, std::fabs(double{exact.hidden[i]} - double{got.hidden[i]}));
    }
  }
};

struct Quality {
  Nearness int8, bf16;
  double largest = 0;  // |x| of the hidden states in f32
};

Quality Measure(const std::string& folder, const Model::Impl& f32, const Model::Impl& int8,
                const Model::Impl& bf16) {
  Quality quality;
  const Golden golden(test::NumbersOf(folder));
  const size_t hidden = f32.encoder->spec().hidden;
  test::ForEachText(golden, [&](const std::string&, const TokenBatch& batch) {
    const size_t tokens = batch.ids.size();
    const test::Trace exact = test::TraceText(f32, batch);
    for (const float x : exact.hidden) {
      quality.largest = std::max(quality.largest, double{std::fabs(x)});
    }
    quality.int8.Add(exact, test::TraceText(int8, batch), tokens, hidden);
    quality.bf16.Add(exact, test::TraceText(bf16, batch), tokens, hidden);
  });
  return quality;
}

// What int8 leaves in f32, and why: "attention: ...".
std::string LeftInF32(const Encoder& encoder) {
  std::set<std::string> reasons;
  for (const ProductLine& product : DescribeProducts(encoder)) {
    if (product.precision != "int8") reasons.insert(product.name + ": " + product.reason);
  }
  std::string all;
  for (const std::string& reason : reasons) all += (all.empty() ? "" : "; ") + reason;
  return all;
}

struct Bounds {
  std::string_view folder;
  double int8_mean, int8_least, bf16_mean, bf16_least;
  std::string_view why;
};

// bf16 has room for CPUs that round the inputs of products as well.
constexpr Bounds kUsual = {"", 0.9995, 0.999, 0.9998, 0.9995, ""};

// Folders whose numbers are worse than usual.
constexpr Bounds kDeviations[] = {
    {"marian", 0.999, 0.998, 0.9998, 0.9995,
     "int8: word rows times sqrt(hidden) go into the first Q, K and V without a norm, so its "
     "scores "
     "are large and softmax shows their rounding; the other products alone keep 0.99997"},
};

const Bounds& BoundsOf(const std::string& folder) {
  for (const Bounds& bounds : kDeviations) {
    if (bounds.folder == folder) return bounds;
  }
  return kUsual;
}

std::vector<std::string> Folders() {
  const char* elsewhere = std::getenv("POZOR_GOLDENS");
  if (elsewhere == nullptr) return test::GoldenFolders();
  std::set<std::string> sorted;
  for (const auto& entry : fs::directory_iterator(elsewhere)) {
    const std::string folder = entry.path().string();
    const bool whole = fs::exists(folder + "/golden.json") && fs::exists(folder + "/config.json");
    if (!whole || !fs::exists(folder + "/golden.safetensors")) continue;
    if (LoadModelParts(folder, {}, {.requires_tokenizer = false}).ok()) sorted.insert(folder);
  }
  return {sorted.begin(), sorted.end()};
}

TEST_CASE("int8 and bf16 of every architecture") {
  const bool bounded = std::getenv("POZOR_GOLDENS") == nullptr;
  std::string table =
      "\n| folder | model_type | largest value | int8 cosine, mean | least | largest difference | "
      "bf16 cosine, mean | least | largest difference | notes |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const std::string& folder : Folders()) {
    const std::string name = fs::path(folder).filename().string();
    CAPTURE(name);
    const auto f32 = test::LoadParts(folder), int8 = test::LoadParts(folder, Precision::kInt8),
               bf16 = test::LoadParts(folder, Precision::kBF16);
    const Quality quality = Measure(folder, *f32, *int8, *bf16);
    if (quality.int8.texts == 0) continue;
    for (const LayerPrecision& layer : int8->encoder->precision()) {
      CHECK(layer.IsInt8(ProductKind::kUp));
      CHECK(layer.IsInt8(ProductKind::kDown));
    }
    for (const LayerPrecision& layer : bf16->encoder->precision()) {
      CHECK(layer[ProductKind::kDown].format == NumberFormat::kBf16);
    }
    const Bounds& bounds = BoundsOf(name);
    if (bounded) {
      CHECK(quality.int8.mean() >= bounds.int8_mean);
      CHECK(quality.int8.least >= bounds.int8_least);
      CHECK(quality.bf16.mean() >= bounds.bf16_mean);
      CHECK(quality.bf16.least >= bounds.bf16_least);
    }
    std::string notes = LeftInF32(*int8->encoder);
    if (!bounds.why.empty()) notes += (notes.empty() ? "" : "; ") + std::string(bounds.why);
    std::array<char, 240> line;
    std::snprintf(line.data(), line.size(),
                  "| %s | %s | %.3g | %.5f | %.5f | %.2g | %.6f | %.6f | %.2g | ", name.c_str(),
                  f32->encoder->spec().architecture.c_str(), quality.largest, quality.int8.mean(),
                  quality.int8.least, quality.int8.difference, quality.bf16.mean(),
                  quality.bf16.least, quality.bf16.difference);
    table += line.data() + notes + " |\n";
  }
  MESSAGE(table);
}

}  // namespace
}  // namespace pozor
