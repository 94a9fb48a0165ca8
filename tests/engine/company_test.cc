// Callers who find every place taken travel with one who gets in: with the bits, the errors and the
// options that each has alone.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>
#include <vector>

#include "engine/executor.h"
#include "engine/forward.h"
#include "engine/graph.h"
#include "engine/machine.h"
#include "engine/parallel.h"
#include "engine/profile.h"
#include "tests/engine/tiny_model.h"
#include "tests/support/compare.h"
#include "tests/support/random.h"

namespace pozor {
namespace {

using test::MakeEncoder;
using test::RandomBatch;
using test::SameBits;
using test::TinyModelBuilder;

// A caller of one text, and how its call went.
struct Caller {
  GraphOptions options;
  PoolFunction pool;  // after the rows are kept; may be empty
  TokenBatch text;

  std::thread thread;
  std::thread::id computed_by;
  std::vector<float> rows;
  int pooled = 0;
  Status status;
};

// Callers who all wait before the first of them is let in.
class Crowd {
 public:
  explicit Crowd(size_t callers) : encoder_(MakeEncoder(builder_)), callers_(callers) {
    test::Random random(7);
    for (Caller& caller : callers_) {
      const std::array<size_t, 1> length = {2 + random.Index(6)};
      caller.text = RandomBatch(length, builder_.spec);
      caller.options.threads = 1;
    }
  }

  Caller& operator[](size_t i) { return callers_[i]; }
  size_t size() const { return callers_.size(); }

  void Run() {
    Executor& executor = *encoder_->impl().executor;
    std::atomic<bool> open{false};
    std::atomic<size_t> inside{0};
    const PoolFunction hold = [&](size_t, MatView<const float>) {
      ++inside;
      open.wait(false);
      return Status();
    };
    GraphOptions one_thread;
    one_thread.threads = 1;
    std::vector<std::thread> holders;
    for (size_t place = 0; place < ThreadsFor(0); ++place) {
      holders.emplace_back(
          [&] { CHECK(EncodeTokens(*encoder_, callers_[0].text.View(), one_thread, hold).ok()); });
      while (inside <= place) std::this_thread::yield();
    }
    for (size_t i = 0; i < size(); ++i) {
      callers_[i].thread = std::thread([this, i] { Call(callers_[i]); });
      while (executor.waiting() <= i) std::this_thread::yield();
    }
    if (before_opening) before_opening();
    open = true;
    open.notify_all();
    for (std::thread& holder : holders) holder.join();
    ids_.clear();
    for (Caller& caller : callers_) {
      ids_.push_back(caller.thread.get_id());
      caller.thread.join();
    }
    CHECK(executor.waiting() == 0);
  }

  // The caller whose thread computed this one's text.
  const Caller* LeaderOf(const Caller& caller) const {
    for (size_t i = 0; i < ids_.size(); ++i) {
      if (ids_[i] == caller.computed_by) return &callers_[i];
    }
    return nullptr;
  }
  size_t Carried() const {
    size_t carried = 0;
    for (const Caller& caller : callers_)
      carried += caller.pooled > 0 && LeaderOf(caller) != &caller;
    return carried;
  }
  bool HasOwnBits(const Caller& caller) const {
    Workspace workspace;
    const MatView<const float> hidden =
        encoder_->Forward(caller.text.View(), workspace, {}, caller.options.rows);
    return SameBits(caller.rows, Rows(hidden));
  }

  std::function<void()> before_opening;

 private:
  static std::vector<float> Rows(MatView<const float> hidden) {
    std::vector<float> rows;
    for (size_t r = 0; r < hidden.rows; ++r) {
      rows.insert(rows.end(), hidden.Row(r), hidden.Row(r) + hidden.cols);
    }
    return rows;
  }

  void Call(Caller& caller) {
    const PoolFunction pool = [&caller](size_t text, MatView<const float> hidden) {
      ++caller.pooled;
      caller.computed_by = std::this_thread::get_id();
      caller.rows = Rows(hidden);
      return caller.pool ? caller.pool(text, hidden) : Status();
    };
    caller.status = EncodeTokens(*encoder_, caller.text.View(), caller.options, pool);
  }

  TinyModelBuilder builder_;
  std::unique_ptr<Encoder> encoder_;
  std::vector<Caller> callers_;
  std::vector<std::thread::id> ids_;
};

size_t FourAPlace() { return 4 * ThreadsFor(0); }

TEST_CASE("who waits is carried along with the bits it has alone") {
  Crowd crowd(FourAPlace());
  crowd.Run();
  CHECK(crowd.Carried() > 0);
  for (size_t i = 0; i < crowd.size(); ++i) {
    CHECK(crowd[i].status.ok());
    CHECK(crowd[i].pooled == 1);
    CHECK(crowd.HasOwnBits(crowd[i]));
  }
}

TEST_CASE("errors, exceptions and the wish to stop stay with the caller they belong to") {
  Crowd crowd(2 * FourAPlace());
  std::atomic<bool> stop{false};
  for (size_t i = 0; i < crowd.size(); ++i) {
    if (i % 4 == 1) crowd[i].options.cancel = &stop;
    if (i % 4 == 2) {
      crowd[i].pool = [](size_t, MatView<const float>) { return IoError("pool: failed"); };
    }
    if (i % 4 == 3) {
      crowd[i].pool = [](size_t, MatView<const float>) -> Status {
        throw std::runtime_error("thrown by a client");
      };
    }
  }
  crowd.before_opening = [&] { stop = true; };
  crowd.Run();
  CHECK(crowd.Carried() > 0);
  constexpr std::array<StatusCode, 4> kExpected = {StatusCode::kOk, StatusCode::kCancelled,
                                                   StatusCode::kIo, StatusCode::kInternal};
  for (size_t i = 0; i < crowd.size(); ++i) {
    CAPTURE(i);
    CHECK(crowd[i].status.code() == kExpected[i % 4]);
    CHECK(crowd[i].pooled == (i % 4 == 1 ? 0 : 1));
    if (crowd[i].pooled > 0) CHECK(crowd.HasOwnBits(crowd[i]));
  }
}

TEST_CASE("callers with different options never share a forward pass") {
  for (size_t together = 1; together <= 3; ++together) {  // so many neighbours agree
    Crowd crowd(2 * FourAPlace());
    std::vector<Profile> profiles(crowd.size());
    for (size_t i = 0; i < crowd.size(); ++i) {
      GraphOptions& options = crowd[i].options;
      switch (i / together % 6) {
        case 1:
          options.rows = RowsRead::kFirst;
          break;
        case 2:
          options.threads = 2;
          break;
        case 3:
          options.max_memory = size_t{1} << 40;
          break;
        case 4:
          options.batch_tokens = 64;
          break;
        case 5:
          options.profile = &profiles[i];
          break;
        default:
          break;
      }
    }
    crowd.Run();
    for (size_t i = 0; i < crowd.size(); ++i) {
      CAPTURE(i);
      CHECK(crowd[i].status.ok());
      CHECK(crowd.HasOwnBits(crowd[i]));
      const Caller* leader = crowd.LeaderOf(crowd[i]);
      REQUIRE(leader != nullptr);
      CHECK(leader->options.rows == crowd[i].options.rows);
      CHECK(leader->options.threads == crowd[i].options.threads);
      CHECK(leader->options.max_memory == crowd[i].options.max_memory);
      CHECK(leader->options.batch_tokens == crowd[i].options.batch_tokens);
      CHECK(leader->options.profile == crowd[i].options.profile);
    }
  }
}

TEST_CASE("nobody is carried along beyond the token budget or the memory ceiling") {
  Crowd narrow(FourAPlace());
  for (size_t i = 0; i < narrow.size(); ++i) narrow[i].options.batch_tokens = 8;
  narrow.Run();
  size_t largest = 0;
  for (size_t i = 0; i < narrow.size(); ++i) {
    size_t tokens = 0, texts = 0;
    for (size_t j = 0; j < narrow.size(); ++j) {
      if (narrow.LeaderOf(narrow[j]) != &narrow[i]) continue;
      tokens += narrow[j].text.ids.size();
      ++texts;
    }
    if (texts > 1) largest = std::max(largest, tokens);
  }
  CHECK(largest <= 8);

  Crowd poor(FourAPlace());
  for (size_t i = 0; i < poor.size(); ++i) {
    poor[i].options.batch_tokens = size_t{1} << 24;
    poor[i].options.max_memory = ResidentBytesWith(0) + (size_t{256} << 20);
  }
  poor.Run();
  CHECK(poor.Carried() == 0);
  for (size_t i = 0; i < poor.size(); ++i) CHECK(poor[i].status.ok());
}

}  // namespace
}  // namespace pozor
