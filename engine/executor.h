// Runs micro-batches of one encoder: alone on the calling thread, several side by side (throughput
// mode), or one by several threads (latency mode). The mode follows from tokens and threads by a
// fixed rule and chooses no bit of the result.
#ifndef POZOR_ENGINE_EXECUTOR_H_
#define POZOR_ENGINE_EXECUTOR_H_

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "engine/batch.h"
#include "engine/encoder.h"
#include "engine/graph.h"
#include "engine/memory.h"
#include "engine/plan.h"
#include "engine/turnstile.h"

namespace pozor {

// Memory of a forward pass, handed from one to the next.
struct PassMemory {
  Workspace workspace;
  TokenBatch gathered;
};

// What a forward pass left, to be read text by text.
class EncodedRows {
 public:
  // `kept`: a row a token, or one a text that has tokens. `read`: what the texts are given of it.
  EncodedRows(MatView<const float> rows, RowsRead kept, RowsRead read)
      : rows_(rows), kept_(kept), read_(read) {}

  // Rows of the next text, which has `length` tokens.
  MatView<const float> Next(size_t length) {
    const MatView<const float> text = {rows_.Row(next_), Count(read_, length), rows_.cols,
                                       rows_.stride};
    next_ += Count(kept_, length);
    return text;
  }

 private:
  static size_t Count(RowsRead rows, size_t length) {
    return rows == RowsRead::kFirst && length > 1 ? 1 : length;
  }

  MatView<const float> rows_;
  RowsRead kept_, read_;
  size_t next_ = 0;
};

// The first error that any of several threads meets, and the word to stop.
class FirstError {
 public:
  void Set(Status status);
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }
  Status Take();

 private:
  std::mutex mutex_;
  Status status_;
  std::atomic<bool> stopped_{false};
};

// Exceptions become a Status: nothing is thrown out of the engine.
Status Guarded(const std::function<Status()>& work);

class Executor {
 public:
  explicit Executor(const Encoder& encoder) : encoder_(encoder) {}

  // EncodeTokens of graph.h.
  Status Encode(const RaggedBatch& batch, const GraphOptions& options, const PoolFunction& pool,
                const Sinks& sinks, GraphStats* stats);

  // One micro-batch, then `pool` for each of its texts, by their number in `batch`. With more than
  // one thread it may run in latency mode.
  Status EncodeMicroBatch(const RaggedBatch& batch, const MicroBatch& micro_batch,
                          const PoolFunction& pool, const GraphOptions& options, size_t threads);

  // Memory of forward passes that waits for the next ones.
  size_t IdleBytes();

  // Callers who wait for a place.
  size_t waiting() const { return turnstile_.waiting(); }

  // Tokens of a micro-batch of a call: those asked for, or the default for this encoder and CPU.
  size_t BatchTokens(const GraphOptions& options) const;

  // True if one micro-batch of `tokens` tokens keeps several threads busy for long enough to be
  // worth waking them.
  bool WorthSharing(size_t tokens) const;

 private:
  class Lease;
  struct Call;

  Status EncodeWhole(const Call& call, const Sinks& sinks);
  Status Dispatch(Call call, const Sinks& sinks, std::vector<MicroBatch>* plan);
  Status FitThreads(std::span<const MicroBatch> plan, Call* call);
  size_t BytesWithoutPasses();
  size_t BytesOfPasses(size_t tokens, size_t longest, size_t threads) const;
  Status EncodeTogether(const Call& call);
  void Invite(const Call& call, std::vector<Request*>* requests);
  Status EncodeSideBySide(const Call& call, std::span<const MicroBatch> plan);
  Status EncodeInTurn(const Call& call, std::span<const MicroBatch> plan);
  Status RunRequests(Call call, std::span<Request* const> requests);
  void RunOneByOne(const Call& call, std::span<Request* const> requests);
  EncodedRows ForwardShared(const Call& call, const RaggedBatch& batch, Workspace& workspace);

  const Encoder& encoder_;
  Turnstile turnstile_;
  std::atomic<size_t> company_{1};  // callers whose texts the last pass carried
  std::mutex mutex_;
  size_t memories_ = 0;                            // idle or in use
  std::vector<std::unique_ptr<PassMemory>> idle_;  // last used, first taken
};

}  // namespace pozor

#endif  // POZOR_ENGINE_EXECUTOR_H_
