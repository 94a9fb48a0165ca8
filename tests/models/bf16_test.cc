// Weights in bf16: near f32, and true to the first promise within a tier.
#include <doctest/doctest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "kernels/gemm.h"
#include "models/model_impl.h"
#include "models/quantize.h"
#include "pozor/pozor.hpp"
#include "tests/models/encode.h"
#include "tests/models/golden.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"

namespace pozor {
namespace {

using test::DataPath;
using test::Encode;

double Cosine(std::span<const float> a, std::span<const float> b) {
  double dot = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = static_cast<double>(a[i]), y = static_cast<double>(b[i]);
    dot += x * y, aa += x * x, bb += y * y;
  }
  return dot / std::sqrt(aa * bb);
}

bool IsWidened() {
  const std::string_view name = FindGemmKernel(PackedLayout::kBf16x16x2, 128).name;
  return name.find("-f32bf16") != name.npos;
}

TEST_CASE("bf16 weights give vectors near those of f32 on every tier") {
  const std::vector<std::string> texts = test::WordTexts(40, 60, 5);
  for (const std::string folder : {"bert", "st-mean-norm", "bert-gelu-new"}) {
    CAPTURE(folder);
    const Model exact = test::LoadOrFail(DataPath(folder));
    const Model model = test::LoadOrFail(DataPath(folder), Precision::kBF16);
    const size_t width = model.Info().dimensions;
    std::vector<float> widened;
    test::ForEachTier([&](CpuTier) {
      const std::vector<float> want = Encode(exact, texts), got = Encode(model, texts);
      CHECK_FALSE(test::SameBits(got, want));
      for (size_t i = 0; i < texts.size(); ++i) {
        CHECK(Cosine(std::span(got).subspan(i * width, width),
                     std::span(want).subspan(i * width, width)) > 0.9999);
      }
      // Widened weights are f32 products: the same bits on all fused tiers that go this way.
      if (!IsWidened() || !ActiveTierIsFused()) return;
      if (widened.empty()) widened = got;
      CHECK(test::SameBits(got, widened));
    });
  }
}

TEST_CASE("a text's bf16 vector has the same bits alone, batched and with any threads") {
  const std::vector<std::string> texts = test::WordTexts(60, 60, 5);
  const Model model = test::LoadOrFail(DataPath("bert"), Precision::kBF16);
  const size_t width = model.Info().dimensions;
  const std::vector<float> expected = Encode(model, texts);
  for (const size_t threads : {1, 2, 3}) {
    for (const size_t batch_tokens : {1, 64, 8192}) {
      EncodeOptions options;
      options.threads = threads;
      options.batch_tokens = batch_tokens;
      CHECK(test::SameBits(Encode(model, texts, options), expected));
    }
  }
  size_t wrong = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    wrong +=
        !test::SameBits(Encode(model, {texts[i]}), std::span(expected).subspan(i * width, width));
  }
  CHECK(wrong == 0);
}

TEST_CASE("bf16 that is no faster than f32 says so") {
  const Model model = test::LoadOrFail(DataPath("bert"), Precision::kBF16);
  bool said = false;
  for (const std::string& warning : model.Info().warnings) {
    said = said || warning.find("bf16") != warning.npos;
  }
  CHECK(said == IsWidened());
}

TEST_CASE("what is said of each bf16 product is what the tier does") {
  const Model model = test::LoadOrFail(DataPath("bert"), Precision::kBF16);
  const std::vector<std::string> texts = test::WordTexts(4, 60, 5);
  const Encoder& encoder = *model.impl().encoder;
  CHECK(PrecisionText(encoder) == "bf16, whose bits depend on the CPU");
  std::vector<float> widened;
  test::ForEachFusedTier([&](CpuTier) {
    const std::vector<float> vectors = Encode(model, texts);
    if (widened.empty() && IsWidened()) widened = vectors;
    const bool is_f32_maths = test::SameBits(vectors, widened);
    size_t products = 0;
    for (const ProductLine& product : DescribeProducts(encoder)) {
      if (product.precision != "bf16") continue;
      CAPTURE(product.kernel);
      CHECK(product.reason == std::string("weights rounded to bf16; sums in f32; inputs ") +
                                  (is_f32_maths ? "stay f32" : "rounded to bf16 as well"));
      ++products;
    }
    CHECK(products == 4 * model.Info().layers);
  });
}

}  // namespace
}  // namespace pozor
