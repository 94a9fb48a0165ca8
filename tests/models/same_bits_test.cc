// The first promise: a text's vector has the same bits whatever stands beside it and whoever
// computes it.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "kernels/cpu.h"
#include "pozor/pozor.hpp"
#include "tests/models/encode.h"
#include "tests/models/golden.h"
#include "tests/support/compare.h"
#include "tests/support/for_each_tier.h"
#include "tests/support/random.h"

namespace pozor {
namespace {

using test::DataPath;
using test::Encode;

struct Stored {
  const char* folder;
  uint64_t hash;  // of all vectors of the golden's texts, on every tier with fused multiply-add
};
constexpr Stored kStored[] = {
    {"st-cls", 0x023AD67E6BF17B5F},
    {"st-max", 0xCD9C5123129A352F},
    {"st-sqrt", 0xD294658D3A530755},
    {"st-concat", 0x5188883D0886CA7A},
    {"st-concat-all", 0xD8CA4D5C96F292C8},
    {"st-mean-norm", 0xBCF9296A341EBCCD},
    {"st-layernorm", 0xE42450C8A6F1B5BE},
    {"st-lower", 0x2E30B3D1498875EC},
    {"st-no-modules", 0x212E6A6E754110A3},
    {"st-prompts", 0x6F7A6CB3D42FB4F8},
    {"st-truncate-dim", 0xE120DBC58CEF0DBC},
    {"bert", 0xD959FADDB4B7C58A},
    {"bert-gelu-new", 0x6562553BAC439B98},
    {"bert-relu", 0xE1FE668D1798D65D},
    {"bert-silu-nopooler", 0x25C2E2914FF655CE},
    {"bert-decoder", 0x9CFDF65CBE087DD1},
};

TEST_CASE("stored hashes of the goldens' vectors on every tier with fused multiply-add") {
  for (const Stored& stored : kStored) {
    const std::string folder = stored.folder;
    CAPTURE(folder);
    const Model model = test::LoadOrFail(DataPath(folder));
    const std::vector<std::string> texts =
        test::GoldenTexts(ReadJsonFile(DataPath(folder + "/golden.json")).value().root());
    std::vector<float> fused;
    test::ForEachTier([&](CpuTier) {
      const std::vector<float> vectors = Encode(model, texts);
      if (ActiveTierIsFused()) {
        CHECK(test::HashBits(vectors) == stored.hash);
        fused = vectors;
      }
    });
    // The baseline without fused multiply-add agrees within the promise.
    test::ForEachTier([&](CpuTier) {
      double largest = 1;
      for (float x : fused) largest = std::max(largest, std::abs(static_cast<double>(x)));
      CHECK(test::MaxAbsDifference(Encode(model, texts), fused) <= 2e-5 * largest);
    });
  }
}

// Texts of 1 to 60 words in no order.
std::vector<std::string> Texts(size_t count, uint64_t seed) {
  const char* words[] = {"ferry", "guitar", "plays", "man", "zebra", "over", "kitchen", "1958"};
  test::Random random(seed);
  std::vector<std::string> texts;
  for (size_t i = 0; i < count; ++i) {
    std::string text;
    for (size_t n = 1 + random.Index(size_t{1} << random.Index(7)); n > 0; --n) {
      text += words[random.Index(std::size(words))] + std::string(" ");
    }
    texts.push_back(text);
  }
  return texts;
}

TEST_CASE("any plan, any number of threads, any neighbours") {
  const Model model = test::LoadOrFail(DataPath("bert"));
  const size_t width = model.Info().dimensions;
  const std::vector<std::string> texts = Texts(400, 1);
  const std::vector<float> expected = Encode(model, texts);
  for (size_t threads : {1, 2, 3}) {
    for (size_t batch_tokens : {1, 64, 8192}) {
      EncodeOptions options;
      options.threads = threads;
      options.batch_tokens = batch_tokens;
      CAPTURE(threads);
      CAPTURE(batch_tokens);
      CHECK(test::SameBits(Encode(model, texts, options), expected));
    }
  }
  // Shuffled, by a fixed permutation.
  std::vector<std::string> shuffled(texts.size());
  for (size_t i = 0; i < texts.size(); ++i) shuffled[(i * 137) % texts.size()] = texts[i];
  const std::vector<float> moved = Encode(model, shuffled);
  size_t wrong = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    const size_t place = (i * 137) % texts.size();
    wrong += !test::SameBits(std::span(moved).subspan(place * width, width),
                             std::span(expected).subspan(i * width, width));
    const std::vector<float> alone = Encode(model, {texts[i]});
    wrong += !test::SameBits(alone, std::span(expected).subspan(i * width, width));
  }
  CHECK(wrong == 0);
}

TEST_CASE("sixteen callers at once") {
  const Model model = test::LoadOrFail(DataPath("bert"));
  const std::vector<std::string> texts = Texts(120, 2);
  const std::vector<float> expected = Encode(model, texts);
  const size_t width = model.Info().dimensions;
  std::atomic<size_t> wrong{0};
  std::vector<std::thread> callers;
  callers.reserve(16);
  for (size_t caller = 0; caller < 16; ++caller) {
    callers.emplace_back([&, caller] {
      if (caller % 4 == 0) {
        const auto all = model.Encode(std::span<const std::string>(texts));
        wrong += !all.ok() || !test::SameBits({all->data(), texts.size() * width}, expected);
        return;
      }
      for (size_t i = caller; i < texts.size(); i += 16) {
        const auto one = model.Encode({texts[i]});
        wrong +=
            !one.ok() || !test::SameBits((*one)[0], std::span(expected).subspan(i * width, width));
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  CHECK(wrong == 0);
}

// Hands out texts and takes in rows, checking their order.
class Texts2Rows : public TextSource, public VectorSink {
 public:
  explicit Texts2Rows(const std::vector<std::string>& texts) : texts_(texts) {}
  Result<std::optional<std::string>> Next() override {
    if (next_ == fail_at) return IoError("source: broken; mend it");
    if (next_ == texts_.size()) return std::optional<std::string>();
    return std::optional<std::string>(texts_[next_++]);
  }
  Status Write(uint64_t first_row, size_t rows, size_t dimensions, const float* data) override {
    if (first_row * dimensions != vectors.size()) return InvalidArgument("rows out of order; sort");
    if (first_row >= full_at) return IoError("sink: full; empty it");
    vectors.insert(vectors.end(), data, data + rows * dimensions);
    return Status();
  }
  std::vector<float> vectors;
  size_t fail_at = SIZE_MAX;
  size_t full_at = SIZE_MAX;

 private:
  const std::vector<std::string>& texts_;
  size_t next_ = 0;
};

TEST_CASE("streams give the same rows, report progress, and stop on errors and on request") {
  const Model model = test::LoadOrFail(DataPath("bert"));
  const std::vector<std::string> texts = Texts(3000, 3);
  const std::vector<float> expected = Encode(model, texts);
  Texts2Rows whole(texts);
  EncodeOptions options;
  Progress last;
  uint64_t calls = 0;
  options.progress = [&](const Progress& progress) {
    CHECK(progress.texts >= last.texts);
    last = progress;
    ++calls;
  };
  std::string profile;
  options.profile = &profile;
  const auto stats = model.EncodeStream(whole, whole, options);
  REQUIRE(stats.ok());
  CHECK(test::SameBits(whole.vectors, expected));
  CHECK(stats->texts == texts.size());
  CHECK(last.texts == texts.size());
  CHECK(last.tokens == stats->tokens);
  CHECK(calls >= 1);
  CHECK_FALSE(profile.empty());
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size();
  CHECK(last.bytes == bytes);

  Texts2Rows broken(texts);
  broken.fail_at = 2000;
  const auto failed = model.EncodeStream(broken, broken);
  REQUIRE_FALSE(failed.ok());
  CHECK(failed.status().message() == "source: broken; mend it");

  Texts2Rows full(texts);
  full.full_at = 0;
  const auto refused = model.EncodeStream(full, full);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().message() == "sink: full; empty it");

  Texts2Rows stopped(texts);
  const std::atomic<bool> cancel{true};
  EncodeOptions stop;
  stop.cancel = &cancel;
  const auto cancelled = model.EncodeStream(stopped, stopped, stop);
  REQUIRE_FALSE(cancelled.ok());
  CHECK(cancelled.status().code() == StatusCode::kCancelled);

  const std::vector<std::string> none;
  Texts2Rows nothing(none);
  const auto empty = model.EncodeStream(nothing, nothing);
  REQUIRE(empty.ok());
  CHECK(empty->texts == 0);
}

TEST_CASE("a call of one text reports and stops as a long one does") {
  const Model model = test::LoadOrFail(DataPath("bert"));
  std::atomic<bool> cancel{false};
  EncodeOptions options;
  options.cancel = &cancel;
  Progress last;
  options.progress = [&](const Progress& progress) { last = progress; };
  REQUIRE(model.Encode({"guitar"}, options).ok());
  CHECK(last.texts == 1);
  CHECK(last.tokens > 2);
  CHECK(last.bytes == 6);
  cancel = true;
  const auto cancelled = model.Encode({"guitar"}, options);
  REQUIRE_FALSE(cancelled.ok());
  CHECK(cancelled.status().code() == StatusCode::kCancelled);
}

TEST_CASE("the caller's buffer and its stride") {
  const Model model = test::LoadOrFail(DataPath("bert"));
  const std::vector<std::string> texts = Texts(200, 4);
  const std::vector<float> expected = Encode(model, texts);
  const size_t width = model.Info().dimensions, stride = width + 5;
  std::vector<float> out(texts.size() * stride, -1.0f);
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const auto stats = model.EncodeInto(views, out.data(), stride);
  REQUIRE(stats.ok());
  CHECK(stats->texts == texts.size());
  CHECK(stats->truncated > 0);
  size_t wrong = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    wrong += !test::SameBits(std::span(out).subspan(i * stride, width),
                             std::span(expected).subspan(i * width, width));
    for (size_t pad = width; pad < stride; ++pad) wrong += out[i * stride + pad] != -1.0f;
  }
  CHECK(wrong == 0);
}

TEST_CASE("a memory ceiling is refused if it is too small, and changes no bits if it is not") {
  LoadOptions load;
  load.max_memory = 1 << 20;
  const auto small = Model::Load(DataPath("bert"), load);
  REQUIRE_FALSE(small.ok());
  CHECK(small.status().code() == StatusCode::kResourceExhausted);
  CHECK(small.status().message().find("MiB") != std::string::npos);

  const Model model = test::LoadOrFail(DataPath("bert"));
  const std::vector<std::string> texts = Texts(300, 5);
  EncodeOptions options;
  options.max_memory = 1 << 20;
  const auto refused = model.Encode(std::span<const std::string>(texts), options);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.status().code() == StatusCode::kResourceExhausted);
  options.max_memory = size_t{4} << 30;
  CHECK(test::SameBits(Encode(model, texts, options), Encode(model, texts)));
}

TEST_CASE("a POZOR_CPU that is not there is an error") {
  ::setenv("POZOR_CPU", "pentium", 1);
  const auto model = Model::Load(DataPath("bert"));
  ::unsetenv("POZOR_CPU");
  REQUIRE_FALSE(model.ok());
  CHECK(model.status().message().find("pentium") != std::string::npos);
}

}  // namespace
}  // namespace pozor
