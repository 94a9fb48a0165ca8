// The main path as a oneTBB flow graph:
//   read -> tokenise -> plan -> encode -> pool -> restore order -> write
// with a budget of tokens in flight, so that memory is bounded whatever the size of the input.
#ifndef POZOR_ENGINE_GRAPH_H_
#define POZOR_ENGINE_GRAPH_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "engine/batch.h"
#include "engine/encoder.h"
#include "kernels/types.h"
#include "pozor/status.h"

namespace pozor {

class Profile;  // engine/profile.h

// A window of texts on its way through the graph, in input order.
struct Window {
  uint64_t index = 0;
  size_t texts = 0;
  size_t text_bytes = 0;             // set by Read: how much input the window holds
  std::shared_ptr<void> payload;     // the client's own: texts, row numbers
  TokenBatch tokens;                 // filled by Tokenise
  std::vector<uint32_t> pool_first;  // [texts] first token that is pooled, or empty: 0
};

// The stages that are not the engine's.
class GraphClient {
 public:
  virtual ~GraphClient() = default;

  // Serial, in order. Takes in about `text_budget` bytes of texts (at least one text), counting 32
  // bytes more for each text; false at the end of the input.
  virtual Result<bool> Read(Window& window, size_t text_budget) = 0;

  // Any thread. Fills window.tokens with window.texts sequences.
  virtual Status Tokenise(Window& window) = 0;

  // Any thread, disjoint texts. `hidden` are the rows of text `text` of the window: [tokens,
  // hidden].
  virtual Status Pool(Window& window, size_t text, MatView<const float> hidden) = 0;

  // Serial, in input order, once every text of the window is pooled.
  virtual Status Write(Window& window) = 0;
};

// How micro-batches and threads meet. The result is the same, bit by bit.
enum class EncodeMode : uint8_t {
  kAuto,        // by a fixed rule from tokens and threads
  kThroughput,  // one thread a micro-batch
  kLatency,     // all threads on one micro-batch
};

struct GraphOptions {
  size_t threads = 0;       // 0: what the machine grants this process (engine/machine.h)
  size_t batch_tokens = 0;  // tokens of a micro-batch; 0: the default for the precision
  size_t max_memory = 0;    // ceiling for the whole process in bytes; 0: none
  size_t longest_text = 0;  // tokens at which texts are cut; 0: only the encoder's own limit
  const std::atomic<bool>* cancel = nullptr;
  Profile* profile = nullptr;
  EncodeMode mode = EncodeMode::kAuto;
  RowsRead rows = RowsRead::kAll;  // kFirst: Pool gets the first row of each text only
};

struct GraphStats {
  uint64_t texts = 0;
  uint64_t tokens = 0;
  uint64_t micro_batches = 0;
  size_t threads = 0;
  double seconds = 0;
};

// Runs the whole input through. The first error of any stage, or Cancelled, stops it.
Status RunGraph(const Encoder& encoder, GraphClient& client, const GraphOptions& options,
                GraphStats* stats);

// The same nodes inline for a few texts that are tokens already: `pool(text, hidden)` is called
// once a text. Few micro-batches on several threads run in latency mode. Many callers may do this
// at once on one encoder; they share one scheduler.
Status EncodeTokens(const Encoder& encoder, const RaggedBatch& batch, const GraphOptions& options,
                    const std::function<Status(size_t text, MatView<const float> hidden)>& pool,
                    const Sinks& sinks = {}, GraphStats* stats = nullptr);

}  // namespace pozor

#endif  // POZOR_ENGINE_GRAPH_H_
