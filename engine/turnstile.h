// How many threads compute on one encoder at once, whoever brought them, and what callers do who
// find it full: wait, or have their text taken along by a caller who is inside.
#ifndef POZOR_ENGINE_TURNSTILE_H_
#define POZOR_ENGINE_TURNSTILE_H_

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "engine/batch.h"
#include "engine/encoder.h"
#include "engine/graph.h"
#include "kernels/types.h"
#include "pozor/status.h"

namespace pozor {

using PoolFunction = std::function<Status(size_t text, MatView<const float> hidden)>;

// Options of a call that a forward pass obeys: only calls that agree in all of them share one.
struct PassOptions {
  RowsRead rows = RowsRead::kAll;
  EncodeMode mode = EncodeMode::kAuto;
  size_t threads = 0, batch_tokens = 0, max_memory = 0;
  bool operator==(const PassOptions&) const = default;
};

// A caller at the turnstile.
struct Request {
  const RaggedBatch* batch = nullptr;
  const PoolFunction* pool = nullptr;
  PassOptions options;
  bool shareable = false;                     // somebody else may do its work
  const std::atomic<bool>* cancel = nullptr;  // the caller wants no more of it; or null
  size_t tokens = 0;                          // how much work it is, whoever does it
  Status status;                              // once done by somebody else

  bool cancelled() const { return cancel != nullptr && cancel->load(std::memory_order_relaxed); }

 private:
  friend class Turnstile;
  enum class State { kWaiting, kInside, kDone };
  State state = State::kWaiting;
  std::condition_variable changed;
};

class Turnstile {
 public:
  // Waits until fewer than `limit` threads are inside, first come first served. True: the caller is
  // inside and must Leave. False: another caller has taken the request along; its status is final.
  bool Enter(Request& request, size_t limit);

  // For helpers: inside, or false at once if there is no room or somebody waits.
  bool TryEnter(size_t limit);

  // `request`: the one that entered, null for a helper.
  void Leave(const Request* request = nullptr);

  // A helper would be let in.
  bool HasRoom(size_t limit);

  // Returns once `count` callers wait, or after `at_most`; at once while another thread awaits
  // some.
  void AwaitWaiting(size_t count, std::chrono::microseconds at_most);

  // Adds to `requests`, the first of which is inside, those waiting first in line that can be taken
  // along with it, until it carries its share of the tokens that are inside or wait: one of `limit`
  // equal ones, so that no caller has everybody's texts while another computes on a few. Together
  // they have at most `budget` tokens. Finish() all but the first.
  void TakeWaiting(size_t limit, size_t budget, std::vector<Request*>* requests);
  void Finish(Request& request, Status status);

  // Somebody waits: helpers leave after the piece of work at hand.
  bool crowded() const { return waiting() > 0; }
  size_t waiting() const { return waiting_count_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  size_t inside_ = 0;
  size_t tokens_ = 0;  // of requests that are inside, taken along, or wait
  std::deque<Request*> waiting_;
  std::atomic<size_t> waiting_count_{0};
  size_t awaited_ = 0;  // callers that a thread inside would like to see waiting
  std::condition_variable arrived_;
};

}  // namespace pozor

#endif  // POZOR_ENGINE_TURNSTILE_H_
