#include "engine/graph.h"

#include <oneapi/tbb/flow_graph.h>

#include <algorithm>
#include <chrono>
#include <tuple>
#include <utility>

#include "engine/executor.h"
#include "engine/flow_budget.h"
#include "engine/forward.h"
#include "engine/machine.h"
#include "engine/parallel.h"
#include "engine/plan.h"
#include "engine/profile.h"

namespace pozor {
namespace {

namespace flow = tbb::flow;

// A window between Read and the end of Write.
struct WindowInFlow {
  Window window;
  std::vector<MicroBatch> plan;
  std::atomic<size_t> micro_batches_left{0};
  size_t counted_bytes = 0;
};
using WindowPointer = std::shared_ptr<WindowInFlow>;

struct Piece {
  WindowPointer window;
  size_t micro_batch = 0;
};

// The nodes, their messages, and what they share.
//
// A message to `read` is leave to read one window if the budget of the flow admits it. `read` gives
// itself leave as long as there is room, and `write` gives it when a window has left, so there is
// always leave under way unless the flow is full or the input has ended. After an error every node
// drops what it gets, and the graph runs dry.
class MainPath {
 public:
  MainPath(const Encoder& encoder, GraphClient& client, const GraphOptions& options,
           const FlowBudget& budget, size_t threads);

  Status Run(GraphStats* stats);

 private:
  struct Leave {};
  using ReadNode = flow::multifunction_node<Leave, std::tuple<WindowPointer>>;
  using WindowNode = flow::multifunction_node<WindowPointer, std::tuple<WindowPointer>>;
  using PlanNode = flow::multifunction_node<WindowPointer, std::tuple<Piece, WindowPointer>>;
  using EncodeNode = flow::multifunction_node<Piece, std::tuple<WindowPointer>>;
  using WriteNode = flow::function_node<WindowPointer>;

  void Read(ReadNode::output_ports_type& ports);
  void Tokenise(const WindowPointer& window, WindowNode::output_ports_type& ports);
  void Plan(const WindowPointer& window, PlanNode::output_ports_type& ports);
  void EncodeAndPool(const Piece& piece, EncodeNode::output_ports_type& ports);
  void Write(const WindowPointer& window);
  bool Stopped();
  // True if `work` went well; its error stops the flow.
  bool Do(const std::function<Status()>& work);

  const Encoder& encoder_;
  GraphClient& client_;
  const GraphOptions& options_;
  const FlowBudget budget_;
  const size_t threads_;

  FirstError error_;
  bool ended_ = false;        // touched by `read` only
  uint64_t next_window_ = 0;  // touched by `read` only
  std::atomic<size_t> bytes_in_flow_{0};
  std::atomic<uint64_t> texts_{0}, tokens_{0}, micro_batches_{0};

  flow::graph graph_;
  ReadNode read_;
  WindowNode tokenise_;
  PlanNode plan_;
  EncodeNode encode_;
  flow::sequencer_node<WindowPointer> order_;
  WriteNode write_;
};

// Nodes that feed the encoder go before it, so that it never runs dry while there is input.
constexpr flow::node_priority_t kFirst = 3, kBefore = 2;

MainPath::MainPath(const Encoder& encoder, GraphClient& client, const GraphOptions& options,
                   const FlowBudget& budget, size_t threads)
    : encoder_(encoder),
      client_(client),
      options_(options),
      budget_(budget),
      threads_(threads),
      read_(
          graph_, flow::serial, [this](Leave, auto& ports) { Read(ports); }, kBefore),
      tokenise_(
          graph_, flow::unlimited,
          [this](const WindowPointer& window, auto& ports) { Tokenise(window, ports); }, kBefore),
      plan_(
          graph_, flow::unlimited,
          [this](const WindowPointer& window, auto& ports) { Plan(window, ports); }, kBefore),
      encode_(graph_, budget.workers,
              [this](const Piece& piece, auto& ports) { EncodeAndPool(piece, ports); }),
      order_(graph_, [](const WindowPointer& window) { return window->window.index; }),
      write_(graph_, flow::serial, [this](const WindowPointer& window) { Write(window); }, kFirst) {
  flow::make_edge(flow::output_port<0>(read_), tokenise_);
  flow::make_edge(flow::output_port<0>(tokenise_), plan_);
  flow::make_edge(flow::output_port<0>(plan_), encode_);
  flow::make_edge(flow::output_port<1>(plan_), order_);
  flow::make_edge(flow::output_port<0>(encode_), order_);
  flow::make_edge(order_, write_);
}

bool MainPath::Stopped() {
  if (options_.cancel != nullptr && options_.cancel->load(std::memory_order_relaxed)) {
    error_.Set(Cancelled("encoding: stopped by the caller"));
  }
  return error_.stopped();
}

bool MainPath::Do(const std::function<Status()>& work) {
  error_.Set(Guarded(work));
  return !error_.stopped();
}

void MainPath::Read(ReadNode::output_ports_type& ports) {
  const bool full = bytes_in_flow_.load(std::memory_order_acquire) >= budget_.flow_bytes;
  if (ended_ || full || Stopped()) return;
  auto window = std::make_shared<WindowInFlow>();
  const bool read = Do([&]() -> Status {
    const ZoneTimer timer(options_.profile, Zone::kRead);
    // The first windows are small, so that encoding starts soon.
    const size_t bytes = budget_.window_bytes >> (next_window_ < 3 ? 3 - next_window_ : 0);
    POZOR_TRY(const bool more, client_.Read(window->window, bytes));
    ended_ = !more;
    return {};
  });
  if (!read || ended_) return;
  window->window.index = next_window_++;
  window->counted_bytes =
      std::max<size_t>(1, window->window.text_bytes + kBytesCountedPerText * window->window.texts);
  bytes_in_flow_.fetch_add(window->counted_bytes, std::memory_order_acq_rel);
  std::get<0>(ports).try_put(window);
  read_.try_put(Leave{});
}

void MainPath::Tokenise(const WindowPointer& window, WindowNode::output_ports_type& ports) {
  if (Stopped()) return;
  const bool done = Do([&]() -> Status {
    const ZoneTimer timer(options_.profile, Zone::kTokenise);
    POZOR_RETURN_IF_ERROR(client_.Tokenise(window->window));
    if (window->window.tokens.texts() != window->window.texts) {
      return Status(StatusCode::kInternal, "tokenise: number of texts changed; report this");
    }
    return encoder_.CheckBatch(window->window.tokens.View());
  });
  if (done) std::get<0>(ports).try_put(window);
}

void MainPath::Plan(const WindowPointer& window, PlanNode::output_ports_type& ports) {
  if (Stopped()) return;
  const RaggedBatch batch = window->window.tokens.View();
  const bool done = Do([&]() -> Status {
    const ZoneTimer timer(options_.profile, Zone::kPlan);
    window->plan = PlanMicroBatches(batch, budget_.batch_tokens, budget_.workers);
    return {};
  });
  if (!done) return;
  texts_ += batch.texts();
  tokens_ += batch.tokens();
  micro_batches_ += window->plan.size();
  const size_t count = window->plan.size();
  window->micro_batches_left.store(count, std::memory_order_release);
  for (size_t i = 0; i < count; ++i) std::get<0>(ports).try_put(Piece{window, i});
  if (count == 0) std::get<1>(ports).try_put(window);
}

void MainPath::EncodeAndPool(const Piece& piece, EncodeNode::output_ports_type& ports) {
  if (Stopped()) return;
  WindowInFlow& window = *piece.window;
  const bool done = Do([&] {
    // A window of one micro-batch is a small input or the last of a large one: the other threads
    // have nothing else to do.
    const size_t threads = window.plan.size() == 1 ? threads_ : 1;
    return encoder_.impl().executor->EncodeMicroBatch(
        window.window.tokens.View(), window.plan[piece.micro_batch],
        [&](size_t text, MatView<const float> hidden) {
          return client_.Pool(window.window, text, hidden);
        },
        options_, threads);
  });
  if (!done) return;
  if (window.micro_batches_left.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    std::get<0>(ports).try_put(piece.window);
  }
}

void MainPath::Write(const WindowPointer& window) {
  if (Stopped()) return;
  const bool done = Do([&] {
    const ZoneTimer timer(options_.profile, Zone::kWrite);
    return client_.Write(window->window);
  });
  if (!done) return;
  window->window = Window();  // its memory is free before another window is let in
  bytes_in_flow_.fetch_sub(window->counted_bytes, std::memory_order_acq_rel);
  read_.try_put(Leave{});
}

Status MainPath::Run(GraphStats* stats) {
  const auto begin = std::chrono::steady_clock::now();
  read_.try_put(Leave{});
  graph_.wait_for_all();
  if (stats != nullptr) {
    *stats = {texts_, tokens_, micro_batches_, threads_,
              std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
  }
  return error_.Take();
}

Result<FlowBudget> PlanBudget(const Encoder& encoder, const GraphOptions& options, size_t threads) {
  const size_t limit =
      encoder.max_tokens() == SIZE_MAX ? kDefaultBatchTokens : encoder.max_tokens();
  FlowNeeds needs;
  needs.threads = threads;
  needs.batch_tokens = encoder.impl().executor->BatchTokens(options);
  needs.longest_text = options.longest_text == 0 ? limit : std::min(limit, options.longest_text);
  needs.ceiling = options.max_memory;
  needs.bytes_per_text = encoder.spec().hidden * sizeof(float);
  if (options.max_memory != 0) {
    const size_t resident = ResidentBytesWith(encoder.mapped_bytes());
    needs.resident = resident - std::min(resident, encoder.impl().executor->IdleBytes());
  }
  return PlanFlow(needs, [&](size_t tokens, size_t longest) {
    return encoder.WorkspaceBytes(tokens, longest);
  });
}

}  // namespace

Status RunGraph(const Encoder& encoder, GraphClient& client, const GraphOptions& options,
                GraphStats* stats) {
  return Guarded([&]() -> Status {
    const size_t threads = ThreadsFor(options.threads);
    POZOR_TRY(const FlowBudget budget, PlanBudget(encoder, options, threads));
    Status status;
    RunInPool(threads, [&] {
      MainPath path(encoder, client, options, budget, threads);
      status = path.Run(stats);
    });
    return status;
  });
}

Status EncodeTokens(const Encoder& encoder, const RaggedBatch& batch, const GraphOptions& options,
                    const PoolFunction& pool, const Sinks& sinks, GraphStats* stats) {
  return encoder.impl().executor->Encode(batch, options, pool, sinks, stats);
}

}  // namespace pozor
