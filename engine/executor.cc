#include "engine/executor.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <new>
#include <string>
#include <utility>

#include "engine/forward.h"
#include "engine/latency.h"
#include "engine/machine.h"
#include "engine/parallel.h"
#include "kernels/cpu.h"

namespace pozor {

// Takes memory for one forward pass and gives it back.
class Executor::Lease {
 public:
  explicit Lease(Executor& executor) : executor_(executor) {
    const std::lock_guard lock(executor_.mutex_);
    if (executor_.idle_.empty()) {
      executor_.idle_.reserve(executor_.memories_ + 1);  // so that giving back cannot fail
      memory_ = std::make_unique<PassMemory>();
      ++executor_.memories_;
    } else {
      memory_ = std::move(executor_.idle_.back());
      executor_.idle_.pop_back();
    }
  }
  ~Lease() {
    const std::lock_guard lock(executor_.mutex_);
    executor_.idle_.push_back(std::move(memory_));
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  PassMemory* operator->() const { return memory_.get(); }

 private:
  Executor& executor_;
  std::unique_ptr<PassMemory> memory_;
};

// What a call of Encode fixes for all that it does.
struct Executor::Call {
  const RaggedBatch& batch;
  const GraphOptions& options;
  const PoolFunction& pool;
  size_t threads;
  size_t places;  // threads that may be inside at once: those of callers with one thread as well
  size_t batch_tokens;
  size_t company_tokens = 0;  // of a forward pass that carries other callers' texts as well

  bool cancelled() const {
    return options.cancel != nullptr && options.cancel->load(std::memory_order_relaxed);
  }
};

namespace {

// Spent once if nobody comes; a pass with company takes some milliseconds.
constexpr std::chrono::microseconds kTimeForCompany{100};

Status CancelledByCaller() { return Cancelled("encoding: stopped by the caller"); }

// Hands each text of `batch` its rows, the next ones of `rows`; the first error is returned.
Status PoolTexts(const RaggedBatch& batch, EncodedRows& rows, std::span<const uint32_t> texts,
                 const PoolFunction& pool, Profile* profile) {
  const ZoneTimer timer(profile, Zone::kPool);
  Status status;
  for (size_t i = 0; i < batch.texts(); ++i) {
    const MatView<const float> text = rows.Next(batch.length(i));
    if (status.ok()) status = Guarded([&] { return pool(texts.empty() ? i : texts[i], text); });
  }
  return status;
}

// The threads that take part in a call: the caller has its place already, helpers ask for one.
class Place {
 public:
  Place(Turnstile& turnstile, size_t worker, size_t limit)
      : turnstile_(turnstile),
        helper_(worker > 0),
        inside_(!helper_ || turnstile.TryEnter(limit)) {}
  ~Place() {
    if (helper_ && inside_) turnstile_.Leave();
  }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  bool inside() const { return inside_; }
  bool ShouldLeave() const { return helper_ && turnstile_.crowded(); }

 private:
  Turnstile& turnstile_;
  bool helper_;
  bool inside_;
};

// The place of a caller who brings so many tokens that nobody could take them along.
class Entry {
 public:
  Entry(Turnstile& turnstile, size_t limit, size_t tokens) : turnstile_(turnstile) {
    request_.tokens = tokens;
    turnstile_.Enter(request_, limit);
  }
  ~Entry() { turnstile_.Leave(&request_); }
  Entry(const Entry&) = delete;
  Entry& operator=(const Entry&) = delete;

 private:
  Turnstile& turnstile_;
  Request request_;
};

// The caller inside and those whose texts it carries. However it ends, they hear of it.
struct Company {
  Company(Turnstile& turnstile, std::vector<Request*> own)
      : turnstile(turnstile), requests(std::move(own)) {}
  ~Company() {
    for (Request* other : std::span(requests).subspan(1)) {
      turnstile.Finish(*other, status.ok() ? other->status : status);
    }
    turnstile.Leave(requests.front());
  }
  Company(const Company&) = delete;
  Company& operator=(const Company&) = delete;

  Turnstile& turnstile;
  std::vector<Request*> requests;
  Status status = ResourceExhausted("out of memory");  // if an exception comes first
};

}  // namespace

Status Guarded(const std::function<Status()>& work) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return ResourceExhausted(
        "memory: the system has no more; use fewer threads or smaller batches");
  } catch (const std::exception& error) {
    return Status(StatusCode::kInternal, std::string("encoding: ") + error.what());
  }
}

void FirstError::Set(Status status) {
  if (status.ok()) return;
  const std::lock_guard lock(mutex_);
  if (!stopped_.exchange(true, std::memory_order_relaxed)) status_ = std::move(status);
}

Status FirstError::Take() {
  const std::lock_guard lock(mutex_);
  return std::move(status_);
}

bool Executor::WorthSharing(size_t tokens) const {
  // Some 80 multiply-adds and 20 bytes of weights a nanosecond; waking a thread costs 50 us.
  constexpr uint64_t kShortest = 250'000;
  const uint64_t arithmetic = encoder_.impl().MultiplyAdds(tokens) / 80;
  const uint64_t streaming = encoder_.weight_bytes() / 20;
  return tokens > 0 && std::max(arithmetic, streaming) >= kShortest;
}

size_t Executor::BatchTokens(const GraphOptions& options) const {
  static const size_t cache = DetectCaches().l3;
  if (options.batch_tokens != 0) return options.batch_tokens;
  if (options.max_memory != 0) return kDefaultBatchTokens;
  const Encoder::Impl& model = encoder_.impl();
  const bool amx = ActiveCpuTier() >= CpuTier::kAmx && !model.precision.empty();
  return DefaultBatchTokens(model.ProductBytes(), cache, amx);
}

size_t Executor::IdleBytes() {
  const std::lock_guard lock(mutex_);
  size_t bytes = 0;
  for (const auto& memory : idle_) bytes += memory->workspace.capacity();
  return bytes;
}

Status Executor::EncodeMicroBatch(const RaggedBatch& batch, const MicroBatch& micro_batch,
                                  const PoolFunction& pool, const GraphOptions& options,
                                  size_t threads) {
  const Call call{batch, options, pool, threads, std::max(threads, ThreadsFor(0)), 0};
  Lease memory(*this);
  Gather(batch, micro_batch, &memory->gathered);
  const RaggedBatch part = memory->gathered.View();
  EncodedRows rows = ForwardShared(call, part, memory->workspace);
  return PoolTexts(part, rows, micro_batch.texts, pool, options.profile);
}

// The batch as it is, for listeners who count on its own order.
Status Executor::EncodeWhole(const Call& call, const Sinks& sinks) {
  const Entry entry(turnstile_, call.places, call.batch.tokens());
  Lease memory(*this);
  EncodedRows rows(encoder_.Forward(call.batch, memory->workspace, sinks), RowsRead::kAll,
                   call.options.rows);
  return PoolTexts(call.batch, rows, {}, call.pool, call.options.profile);
}

// A single micro-batch; texts of callers who wait come along as far as they fit.
Status Executor::EncodeTogether(const Call& call) {
  const GraphOptions& options = call.options;
  Request request;
  request.batch = &call.batch;
  request.pool = &call.pool;
  request.options = {options.rows, options.mode, options.threads, options.batch_tokens,
                     options.max_memory};
  request.shareable = options.profile == nullptr;  // a profile is of the caller's own texts
  request.cancel = options.cancel;
  request.tokens = call.batch.tokens();
  std::vector<Request*> own = {&request};
  if (!turnstile_.Enter(request, call.places)) return request.status;
  Company company(turnstile_, std::move(own));
  if (request.cancelled()) return company.status = CancelledByCaller();
  if (request.shareable) Invite(call, &company.requests);
  company.status = Guarded([&] { return RunRequests(call, company.requests); });
  if (company.requests.size() > 1 && !company.status.ok()) {
    // What all of them together cannot have, each may have alone.
    RunOneByOne(call, company.requests);
    company.status = Status();
  }
  return company.status.ok() ? request.status : company.status;
}

// Adds callers who wait to the one who is inside.
void Executor::Invite(const Call& call, std::vector<Request*>* requests) {
  if (call.company_tokens <= call.batch.tokens()) return;
  // Callers who came along a moment ago are awake, but may not have got back here yet.
  if (company_ > 1) turnstile_.AwaitWaiting(company_ - 1, kTimeForCompany);
  turnstile_.TakeWaiting(call.places, call.company_tokens, requests);
  company_ = requests->size();
  for (size_t i = requests->size() - 1; i > 0; --i) {
    Request* other = (*requests)[i];
    if (!other->cancelled()) continue;
    turnstile_.Finish(*other, CancelledByCaller());
    requests->erase(requests->begin() + static_cast<ptrdiff_t>(i));
  }
}

// Each by a forward pass of its own.
void Executor::RunOneByOne(const Call& call, std::span<Request* const> requests) {
  for (Request* const& request : requests) {
    Status status = Guarded([&] { return RunRequests(call, {&request, 1}); });
    if (!status.ok()) request->status = std::move(status);
  }
}

// One forward pass over the batches of all requests; each gets the status of its own pooling.
Status Executor::RunRequests(Call call, std::span<Request* const> requests) {
  Lease memory(*this);
  RaggedBatch all = *requests[0]->batch;
  if (requests.size() > 1) {
    call.threads = 1;  // all places were taken: no thread is to spare
    memory->gathered.Clear();
    for (const Request* request : requests) memory->gathered.Append(*request->batch);
    all = memory->gathered.View();
  }
  EncodedRows rows = ForwardShared(call, all, memory->workspace);
  for (Request* request : requests) {
    request->status = PoolTexts(*request->batch, rows, {}, *request->pool, call.options.profile);
  }
  return {};
}

// By all threads if that pays and nobody else needs them, else by this one.
EncodedRows Executor::ForwardShared(const Call& call, const RaggedBatch& batch,
                                    Workspace& workspace) {
  const RowsRead read = call.options.rows;
  const bool asked = call.options.mode == EncodeMode::kLatency;
  const bool pays = call.options.mode == EncodeMode::kAuto && WorthSharing(batch.tokens()) &&
                    turnstile_.HasRoom(call.places);
  if (call.threads == 1 || !(asked || pays)) {
    Sinks sinks;
    sinks.profile = call.options.profile;
    return EncodedRows(encoder_.Forward(batch, workspace, sinks, read), read, read);
  }
  LatencyPass pass(encoder_.impl(), batch, workspace, call.options.profile, call.threads);
  RunTeam(call.threads, [&](size_t worker) {
    const Place place(turnstile_, worker, call.places);
    if (place.inside()) pass.Work(worker, [&] { return place.ShouldLeave(); });
  });
  return EncodedRows(pass.hidden(), RowsRead::kAll, read);
}

// Throughput mode: every thread takes one micro-batch after another.
Status Executor::EncodeSideBySide(const Call& call, std::span<const MicroBatch> plan) {
  const Entry entry(turnstile_, call.places, call.batch.tokens());
  std::atomic<size_t> next{0};
  FirstError error;
  RunTeam(std::min(call.threads, plan.size()), [&](size_t worker) {
    const Place place(turnstile_, worker, call.places);
    while (place.inside() && !place.ShouldLeave() && !error.stopped()) {
      const size_t i = next.fetch_add(1, std::memory_order_relaxed);
      if (i >= plan.size()) return;
      error.Set(call.cancelled() ? CancelledByCaller() : Guarded([&] {
        return EncodeMicroBatch(call.batch, plan[i], call.pool, call.options, 1);
      }));
    }
  });
  return error.Take();
}

// Latency mode: all threads on one micro-batch, then on the next.
Status Executor::EncodeInTurn(const Call& call, std::span<const MicroBatch> plan) {
  const Entry entry(turnstile_, call.places, call.batch.tokens());
  Lease memory(*this);
  for (const MicroBatch& micro_batch : plan) {
    if (call.cancelled()) return CancelledByCaller();
    Gather(call.batch, micro_batch, &memory->gathered);
    const RaggedBatch part = memory->gathered.View();
    EncodedRows rows = ForwardShared(call, part, memory->workspace);
    POZOR_RETURN_IF_ERROR(
        PoolTexts(part, rows, micro_batch.texts, call.pool, call.options.profile));
  }
  return {};
}

Status Executor::Encode(const RaggedBatch& batch, const GraphOptions& options,
                        const PoolFunction& pool, const Sinks& sinks, GraphStats* stats) {
  const auto begin = std::chrono::steady_clock::now();
  const size_t threads = ThreadsFor(options.threads);
  const Call call{
      batch, options, pool, threads, std::max(threads, ThreadsFor(0)), BatchTokens(options)};
  if (call.cancelled()) return CancelledByCaller();
  POZOR_RETURN_IF_ERROR(encoder_.CheckBatch(batch));
  std::vector<MicroBatch> plan;
  POZOR_RETURN_IF_ERROR(Guarded([&] { return Dispatch(call, sinks, &plan); }));
  if (stats == nullptr) return {};
  stats->texts += batch.texts();
  stats->tokens += batch.tokens();
  stats->micro_batches += std::max<size_t>(1, plan.size());
  stats->threads = call.threads;
  stats->seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return {};
}

// Memory of the process without that of forward passes.
size_t Executor::BytesWithoutPasses() {
  const size_t resident = ResidentBytesWith(encoder_.mapped_bytes());
  return resident - std::min(resident, IdleBytes());
}

// Memory of passes of `tokens` tokens each on `threads` threads, side by side or all on one.
size_t Executor::BytesOfPasses(size_t tokens, size_t longest, size_t threads) const {
  return std::max(threads * encoder_.WorkspaceBytes(tokens, longest),
                  LatencyPass::Bytes(encoder_.impl(), tokens, longest, threads));
}

// Lowers the number of threads until the passes of all of them fit under the ceiling, and carries
// no texts of other callers if there is no room for a whole micro-batch.
Status Executor::FitThreads(std::span<const MicroBatch> plan, Call* call) {
  const size_t ceiling = call->options.max_memory;
  call->company_tokens = call->batch_tokens;
  if (ceiling == 0) return {};
  size_t tokens = 0, longest = 0;
  for (const MicroBatch& micro_batch : plan) {
    tokens = std::max(tokens, micro_batch.tokens);
    longest = std::max(longest, micro_batch.longest);
  }
  const size_t others = BytesWithoutPasses();
  const auto needed = [&](size_t threads) {
    return others + BytesOfPasses(tokens, longest, threads);
  };
  while (call->threads > 1 && needed(call->threads) > ceiling) --call->threads;
  const size_t whole = BytesOfPasses(call->batch_tokens, call->batch_tokens, call->threads);
  if (others + whole > ceiling) call->company_tokens = 0;
  return CheckCeiling("the model and " + std::to_string(tokens) + " tokens at once", ceiling,
                      needed(call->threads));
}

Status Executor::Dispatch(Call call, const Sinks& sinks, std::vector<MicroBatch>* plan) {
  if (call.batch.texts() == 0) return {};
  *plan = PlanMicroBatches(call.batch, call.batch_tokens, call.threads);
  POZOR_RETURN_IF_ERROR(FitThreads(*plan, &call));
  if (sinks.hidden_states || sinks.attention) return EncodeWhole(call, sinks);
  if (plan->size() == 1) return EncodeTogether(call);
  size_t largest = 0;
  for (const MicroBatch& micro_batch : *plan) largest = std::max(largest, micro_batch.tokens);
  // Side by side, all wait for the thread with the largest share.
  const bool uneven = 4 * largest * call.threads > 5 * call.batch.tokens();
  const bool shared = plan->size() <= call.threads && uneven && WorthSharing(largest);
  const bool in_turn = call.options.mode == EncodeMode::kLatency ||
                       (call.options.mode == EncodeMode::kAuto && shared && call.threads > 1);
  return in_turn ? EncodeInTurn(call, *plan) : EncodeSideBySide(call, *plan);
}

}  // namespace pozor
