// How many threads compute on one encoder at once, whoever brought them, and what callers do who
// find it full: wait, or have their text taken along by a caller who is inside.
#ifndef POZOR_ENGINE_TURNSTILE_H_
#define POZOR_ENGINE_TURNSTILE_H_

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <vector>

#include "engine/batch.h"
#include "kernels/types.h"
#include "pozor/status.h"

namespace pozor {

using PoolFunction = std::function<Status(size_t text, MatView<const float> hidden)>;

// A caller at the turnstile. `batch` and `pool` are null if nobody else can do its work.
struct Request {
  const RaggedBatch* batch = nullptr;
  const PoolFunction* pool = nullptr;
  int kind = 0;   // only requests of one kind travel together
  Status status;  // once done by somebody else

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

  void Leave();

  // A helper would be let in.
  bool HasRoom(size_t limit);

  // Adds to `requests` those waiting first in line that can be taken along with the one in it, and
  // have no more than `tokens` tokens together. Finish() them.
  void TakeWaiting(size_t tokens, std::vector<Request*>* requests);
  void Finish(Request& request, Status status);

  // Somebody waits: helpers leave after the piece of work at hand.
  bool crowded() const { return waiting() > 0; }
  size_t waiting() const { return waiting_count_.load(std::memory_order_relaxed); }

 private:
  std::mutex mutex_;
  size_t inside_ = 0;
  std::deque<Request*> waiting_;
  std::atomic<size_t> waiting_count_{0};
};

}  // namespace pozor

#endif  // POZOR_ENGINE_TURNSTILE_H_
