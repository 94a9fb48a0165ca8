// f32 values in two bf16 parts: within 2e-5 of f32 on AMX, natively or emulated, and f32 elsewhere.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kernels/gemm.h"
#include "models/quantize.h"
#include "pozor/pozor.hpp"
#include "tests/models/encode.h"
#include "tests/models/golden.h"
#include "tests/models/golden_folders.h"
#include "tests/models/trace.h"
#include "tests/support/amx_emulator.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"

namespace pozor {
namespace {

using test::AmxEmulator;
using test::AmxTier;
using test::DataPath;
using test::Encode;
using test::Golden;

constexpr double kNear = 2e-5;  // of an element of a unit vector

// Rows [count, width], each made of length one.
std::vector<float> Unit(std::vector<float> rows, size_t width) {
  for (size_t i = 0; i < rows.size(); i += width) {
    double squares = 0;
    for (size_t c = 0; c < width; ++c) squares += double{rows[i + c]} * double{rows[i + c]};
    const double norm = std::sqrt(squares);
    for (size_t c = 0; c < width; ++c) {
      rows[i + c] = static_cast<float>(double{rows[i + c]} / norm);
    }
  }
  return rows;
}

// The mean over a text's tokens of the last hidden states.
std::vector<float> MeanRow(const test::Trace& trace, size_t tokens, size_t hidden) {
  std::vector<float> mean(hidden);
  const auto last = std::span(trace.hidden).last(tokens * hidden);
  for (size_t i = 0; i < last.size(); ++i) mean[i % hidden] += last[i];
  return mean;
}

bool Says(const Model& model, const std::string& words) {
  const std::vector<std::string>& warnings = model.Info().warnings;
  return std::any_of(warnings.begin(), warnings.end(), [&](const std::string& warning) {
    return warning.find(words) != warning.npos;
  });
}

TEST_CASE("whether bf16x3 runs here") {
  const std::string skipped = AmxEmulator::Available() ? "" : "skipped: ";
  const std::string which = skipped + AmxEmulator::Description();
  MESSAGE(which);
}

TEST_CASE("every architecture: bf16x3 is within 2e-5 of f32") {
  if (!AmxEmulator::Available()) return;
  const AmxTier amx;
  double largest_of_all = 0;
  for (const std::string& folder : test::GoldenFolders()) {
    CAPTURE(folder);
    const auto f32 = test::LoadParts(folder), split = test::LoadParts(folder, Precision::kBF16x3);
    const size_t hidden = f32->encoder->spec().hidden;
    CHECK(PrecisionName(*split->encoder) == "bf16x3");
    size_t differing = 0, texts = 0;
    double largest = 0;
    test::ForEachText(
        Golden(test::NumbersOf(folder)), [&](const std::string&, const TokenBatch& batch) {
          const size_t tokens = batch.ids.size();
          const test::Trace want = test::TraceText(*f32, batch);
          const test::Trace got = test::TraceText(*split, batch);
          differing += !test::SameBits(got.hidden, want.hidden);
          ++texts;
          largest = std::max(largest,
                             test::MaxAbsDifference(Unit(MeanRow(got, tokens, hidden), hidden),
                                                    Unit(MeanRow(want, tokens, hidden), hidden)));
        });
    CHECK(differing == texts);
    CHECK(largest <= kNear);
    largest_of_all = std::max(largest_of_all, largest);
  }
  MESSAGE("largest difference of a unit vector's element: " << largest_of_all);
}

TEST_CASE(
    "a text's bf16x3 vector has the same bits alone, batched, shuffled and with any threads") {
  if (!AmxEmulator::Available()) return;
  const AmxTier amx;
  std::vector<std::string> texts = test::WordTexts(24, 40, 7);
  for (const std::string folder : {"bert", "st-mean-norm"}) {
    CAPTURE(folder);
    const Model model = test::LoadOrFail(DataPath(folder), Precision::kBF16x3);
    CHECK_FALSE(Says(model, "bf16x3"));
    const size_t width = model.Info().dimensions;
    const std::vector<float> expected = Encode(model, texts);
    const std::vector<float> f32 =
        Encode(test::LoadOrFail(DataPath(folder), Precision::kF32), texts);
    CHECK_FALSE(test::SameBits(expected, f32));
    CHECK(test::MaxAbsDifference(Unit(expected, width), Unit(f32, width)) <= kNear);
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
      const auto row = std::span(expected).subspan(i * width, width);
      wrong += !test::SameBits(Encode(model, {texts[i]}), row);
    }
    const std::vector<float> reversed = Encode(model, {texts.rbegin(), texts.rend()});
    for (size_t i = 0; i < texts.size(); ++i) {
      const auto row = std::span(expected).subspan(i * width, width);
      const size_t place = texts.size() - 1 - i;
      wrong += !test::SameBits(std::span(reversed).subspan(place * width, width), row);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("without AMX bf16x3 has the bits of f32, and says so") {
  const std::vector<std::string> texts = test::WordTexts(12, 40, 7);
  test::ForEachTier([&](CpuTier tier) {
    const bool runs = HasGemmKernel(PackedLayout::kSplitBf16x16x2);
    CHECK(runs == (tier == CpuTier::kAmx));
    for (const std::string folder : {"bert", "st-mean-norm"}) {
      CAPTURE(folder);
      const Model model = test::LoadOrFail(DataPath(folder), Precision::kBF16x3);
      CHECK(Says(model, "precision bf16x3: CPU tier " + std::string(CpuTierName(tier))) == !runs);
      CHECK(PrecisionName(*model.impl().encoder) == (runs ? "bf16x3" : "f32"));
      for (const ProductLine& product : DescribeProducts(*model.impl().encoder)) {
        if (product.name == "attention") continue;
        CHECK(product.precision == (runs ? "bf16x3" : "f32"));
        CHECK((product.reason.find("AMX") != product.reason.npos) == !runs);
      }
      if (runs) continue;
      const std::vector<float> f32 =
          Encode(test::LoadOrFail(DataPath(folder), Precision::kF32), texts);
      CHECK(test::SameBits(Encode(model, texts), f32));
      CHECK_FALSE(Says(test::LoadOrFail(DataPath(folder), Precision::kF32), "bf16x3"));
    }
  });
}

TEST_CASE("a model keeps its bf16x3 products under a lower cap") {
  if (!AmxEmulator::Available()) return;
  const AmxTier amx;
  const std::vector<std::string> texts = test::WordTexts(3, 40, 7);
  const Model model = test::LoadOrFail(DataPath("bert"), Precision::kBF16x3);
  const std::vector<float> expected = Encode(model, texts);
  REQUIRE(SetCpuTierCap(CpuTier::kAvx512));
  CHECK(test::SameBits(Encode(model, texts), expected));
}

}  // namespace
}  // namespace pozor
