// The main path: order, errors in every stage, cancelling, bounded memory.
#include "engine/graph.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/executor.h"
#include "engine/forward.h"
#include "engine/machine.h"
#include "engine/plan.h"
#include "engine/profile.h"
#include "engine/turnstile.h"
#include "kernels/cpu.h"
#include "tests/engine/tiny_model.h"
#include "tests/support/amx_emulator.h"
#include "tests/support/compare.h"

namespace pozor {
namespace {

using test::EncodeRows;
using test::MakeEncoder;
using test::RandomBatch;
using test::SameBits;
using test::TinyModelBuilder;

enum class Stage { kNone, kRead, kTokenise, kPool, kWrite };

// Feeds the texts of a batch and keeps what is pooled: the first rows of every text.
class TestClient : public GraphClient {
 public:
  explicit TestClient(const TokenBatch& batch) : batch_(batch), vectors(batch.texts()) {}

  Stage fail_in = Stage::kNone;
  size_t fail_at = 0;  // window for Read, Tokenise and Write; text for Pool
  bool throws = false;
  std::atomic<bool>* cancel = nullptr;  // set in place of failing

  Result<bool> Read(Window& window, size_t text_budget) override {
    if (next_ == batch_.texts()) return false;
    POZOR_RETURN_IF_ERROR(Fail(Stage::kRead, windows_read));
    ++windows_read;
    auto first = std::make_shared<size_t>(next_);
    while (next_ < batch_.texts() && (window.texts == 0 || window.text_bytes < text_budget)) {
      window.text_bytes += kBytesPerText;
      ++window.texts;
      ++next_;
    }
    window.payload = first;
    const size_t in_flight = texts_in_flight += window.texts;
    most_texts_in_flight = std::max<size_t>(most_texts_in_flight, in_flight);
    most_texts_in_window = std::max<size_t>(most_texts_in_window, window.texts);
    return true;
  }

  Status Tokenise(Window& window) override {
    POZOR_RETURN_IF_ERROR(Fail(Stage::kTokenise, window.index));
    const size_t first = *std::static_pointer_cast<size_t>(window.payload);
    for (size_t text = first; text < first + window.texts; ++text) {
      for (int32_t t = batch_.starts[text]; t < batch_.starts[text + 1]; ++t) {
        window.tokens.ids.push_back(batch_.ids[t]);
        window.tokens.types.push_back(batch_.types[t]);
      }
      window.tokens.EndText();
    }
    return {};
  }

  Status Pool(Window& window, size_t text, MatView<const float> hidden) override {
    const size_t global = *std::static_pointer_cast<size_t>(window.payload) + text;
    POZOR_RETURN_IF_ERROR(Fail(Stage::kPool, global));
    for (size_t r = 0; r < hidden.rows; ++r) {
      vectors[global].insert(vectors[global].end(), hidden.Row(r), hidden.Row(r) + hidden.cols);
    }
    ++texts_pooled;
    return {};
  }

  Status Write(Window& window) override {
    POZOR_RETURN_IF_ERROR(Fail(Stage::kWrite, window.index));
    in_order = in_order && window.index == windows_written++ &&
               *std::static_pointer_cast<size_t>(window.payload) == texts_written;
    texts_written += window.texts;
    texts_in_flight -= window.texts;
    return {};
  }

  static constexpr size_t kBytesPerText = 60;

 private:
  Status Fail(Stage stage, size_t at) {
    if (stage != fail_in || at != fail_at) return {};
    if (cancel != nullptr) {
      cancel->store(true);
      return {};
    }
    if (throws) throw std::runtime_error("thrown by a client");
    return IoError("client: failed as asked; nothing to do");
  }

  const TokenBatch& batch_;
  size_t next_ = 0;

 public:
  std::vector<std::vector<float>> vectors;
  size_t windows_read = 0, windows_written = 0, texts_written = 0;
  std::atomic<size_t> texts_pooled{0};
  std::atomic<size_t> texts_in_flight{0};
  size_t most_texts_in_flight = 0;
  size_t most_texts_in_window = 0;
  bool in_order = true;
};

struct Input {
  TinyModelBuilder builder;
  std::unique_ptr<Encoder> encoder = MakeEncoder(builder);
  std::vector<size_t> lengths;
  TokenBatch batch;

  explicit Input(size_t texts, size_t longest = 30) {
    test::Random random(5);
    for (size_t i = 0; i < texts; ++i) lengths.push_back(random.Index(longest));
    batch = RandomBatch(lengths, builder.spec);
  }
};

TEST_CASE("every text comes out once, in order, with the bits it has alone") {
  for (const size_t texts : {0u, 1u, 2u, 3000u}) {
    CAPTURE(texts);
    Input input(texts);
    const auto expected = EncodeRows(*input.encoder, input.batch.View());
    for (const size_t threads : {1u, 2u, 4u}) {
      CAPTURE(threads);
      for (const size_t batch_tokens : {0u, 7u, 8192u}) {
        CAPTURE(batch_tokens);
        TestClient client(input.batch);
        GraphOptions options;
        options.threads = threads;
        options.batch_tokens = batch_tokens;
        GraphStats stats;
        const Status status = RunGraph(*input.encoder, client, options, &stats);
        CHECK_MESSAGE(status.ok(), status.message());
        CHECK(client.in_order);
        CHECK(client.texts_written == texts);
        CHECK(client.texts_pooled == texts);
        CHECK(stats.texts == texts);
        CHECK(stats.tokens == input.batch.ids.size());
        CHECK(stats.threads == threads);
        size_t different = 0;
        for (size_t i = 0; i < texts; ++i) different += !SameBits(client.vectors[i], expected[i]);
        CHECK(different == 0);
      }
    }
  }
}

TEST_CASE("latency mode inside the graph gives the same bits") {
  Input input(1, 150);
  const auto expected = EncodeRows(*input.encoder, input.batch.View());
  TestClient client(input.batch);
  GraphOptions options;
  options.threads = 2;
  options.mode = EncodeMode::kLatency;
  REQUIRE(RunGraph(*input.encoder, client, options, nullptr).ok());
  CHECK(SameBits(client.vectors[0], expected[0]));
}

TEST_CASE("micro-batches have the size asked for, or the default for encoder and CPU") {
  TinyModelBuilder plain, quantised;
  quantised.int8 = true;
  const auto exact = MakeEncoder(plain), int8 = MakeEncoder(quantised);
  const auto size = [](const Encoder& encoder, size_t asked, size_t max_memory) {
    GraphOptions options;
    options.batch_tokens = asked;
    options.max_memory = max_memory;
    return encoder.impl().executor->BatchTokens(options);
  };
  const test::AmxTier amx;
  const bool is_amx = ActiveCpuTier() >= CpuTier::kAmx;
  CHECK(size(*exact, 7, 0) == 7);
  CHECK(size(*exact, 0, 0) == kDefaultBatchTokens);
  CHECK(size(*int8, 7, 0) == 7);
  CHECK(size(*int8, 0, 0) == (is_amx ? 2 : 1) * kDefaultBatchTokens);
  CHECK(size(*int8, 0, size_t{1} << 30) == kDefaultBatchTokens);  // small ones fit best
  if (!is_amx) MESSAGE("skipped: no AMX");
}

TEST_CASE("the first error of any stage ends the run") {
  Input input(2000);
  for (const Stage stage : {Stage::kRead, Stage::kTokenise, Stage::kPool, Stage::kWrite}) {
    CAPTURE(static_cast<int>(stage));
    for (const size_t at : {0u, 2u}) {
      for (const bool throws : {false, true}) {
        for (const size_t threads : {1u, 2u}) {
          TestClient client(input.batch);
          client.fail_in = stage;
          client.fail_at = at;
          client.throws = throws;
          GraphOptions options;
          options.threads = threads;
          const Status status = RunGraph(*input.encoder, client, options, nullptr);
          CHECK(status.code() == (throws ? StatusCode::kInternal : StatusCode::kIo));
          CHECK(status.message().find(throws ? "thrown by a client" : "failed as asked") !=
                std::string::npos);
          CHECK(client.in_order);
          CHECK(client.texts_written < 2000);
        }
      }
    }
  }
}

TEST_CASE("token ids out of range are an error, not a crash") {
  Input input(10, 20);
  input.batch.ids[3] = 1'000'000;
  TestClient client(input.batch);
  CHECK(RunGraph(*input.encoder, client, {}, nullptr).code() == StatusCode::kInvalidArgument);
}

TEST_CASE("cancelling from any stage ends the run") {
  Input input(2000);
  for (const Stage stage : {Stage::kRead, Stage::kTokenise, Stage::kPool, Stage::kWrite}) {
    CAPTURE(static_cast<int>(stage));
    std::atomic<bool> cancel{false};
    TestClient client(input.batch);
    client.fail_in = stage;
    client.fail_at = 1;
    client.cancel = &cancel;
    GraphOptions options;
    options.threads = 2;
    options.cancel = &cancel;
    CHECK(RunGraph(*input.encoder, client, options, nullptr).code() == StatusCode::kCancelled);
    CHECK(client.texts_written < 2000);
    CHECK(client.in_order);
  }
}

TEST_CASE("an errand cancelled beforehand does nothing") {
  Input input(10);
  const std::atomic<bool> cancel{true};
  GraphOptions options;
  options.cancel = &cancel;
  TestClient client(input.batch);
  CHECK(RunGraph(*input.encoder, client, options, nullptr).code() == StatusCode::kCancelled);
  CHECK(client.windows_read == 0);
  size_t pooled = 0;
  const Status status =
      EncodeTokens(*input.encoder, input.batch.View(), options, [&](size_t, MatView<const float>) {
        ++pooled;
        return Status();
      });
  CHECK(status.code() == StatusCode::kCancelled);
  CHECK(pooled == 0);
}

TEST_CASE("what is in flight does not grow with the input") {
  for (const size_t threads : {1u, 2u}) {
    CAPTURE(threads);
    size_t most[2];
    for (const size_t round : {0u, 1u}) {
      Input input(round == 0 ? 4000 : 16000);
      TestClient client(input.batch);
      GraphOptions options;
      options.threads = threads;
      REQUIRE(RunGraph(*input.encoder, client, options, nullptr).ok());
      CHECK(client.windows_read > 4);
      most[round] = client.most_texts_in_flight;
      CHECK(most[round] <= 6 * client.most_texts_in_window);
    }
    CHECK(most[0] < 4000);
    CHECK(most[1] < 4000);
  }
}

TEST_CASE("an error of pooling in EncodeTokens is returned") {
  Input input(50);
  for (const EncodeMode mode : {EncodeMode::kThroughput, EncodeMode::kLatency}) {
    for (const bool throws : {false, true}) {
      GraphOptions options;
      options.threads = 2;
      options.mode = mode;
      const Status status = EncodeTokens(*input.encoder, input.batch.View(), options,
                                         [&](size_t text, MatView<const float>) -> Status {
                                           if (text != 20) return {};
                                           if (throws)
                                             throw std::runtime_error("thrown by a client");
                                           return IoError("pool: failed; nothing to do");
                                         });
      CHECK(status.code() == (throws ? StatusCode::kInternal : StatusCode::kIo));
    }
  }
}

TEST_CASE("a ceiling too low for one text is refused with the number needed") {
  Input input(3);
  TestClient client(input.batch);
  GraphOptions options;
  options.max_memory = 1 << 20;
  const Status status = RunGraph(*input.encoder, client, options, nullptr);
  CHECK(status.code() == StatusCode::kResourceExhausted);
  CHECK(status.message().find("memory ceiling of 1 MiB") != std::string::npos);
  CHECK(client.windows_read == 0);
}

TEST_CASE("EncodeTokens keeps to a ceiling, or refuses with the number needed") {
  Input input(300);
  GraphOptions options;
  options.threads = 4;
  options.max_memory = 1 << 20;
  const PoolFunction pool = [](size_t, MatView<const float>) { return Status(); };
  const Status status = EncodeTokens(*input.encoder, input.batch.View(), options, pool);
  CHECK(status.code() == StatusCode::kResourceExhausted);
  CHECK(status.message().find("need ") != std::string::npos);

  options.max_memory = ResidentBytesWith(0) + (size_t{64} << 20);
  GraphStats stats;
  REQUIRE(EncodeTokens(*input.encoder, input.batch.View(), options, pool, {}, &stats).ok());
  CHECK(stats.texts == 300);
}

TEST_CASE("a profile adds up the zones of the run") {
  Input input(200);
  TestClient client(input.batch);
  Profile profile;
  GraphOptions options;
  options.threads = 2;
  options.profile = &profile;
  GraphStats stats;
  REQUIRE(RunGraph(*input.encoder, client, options, &stats).ok());
  CHECK(profile.Get(Zone::kQkv).calls == 3 * stats.micro_batches);
  CHECK(profile.Get(Zone::kPool).calls == stats.micro_batches);
  CHECK(profile.Get(Zone::kWrite).calls == client.windows_read);
  // Two operations a weight and token; Q, K and V are padded from 12 to 16 columns a head.
  CHECK(profile.Get(Zone::kQkv).flops == 3 * 2 * stats.tokens * 40 * 3 * 3 * 16);
  CHECK(profile.Get(Zone::kFeedForwardDown).flops == 3 * 2 * stats.tokens * 72 * 40);
  CHECK(profile.Table().find("feed-forward-up") != std::string::npos);
}

}  // namespace
}  // namespace pozor
