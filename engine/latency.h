// Latency mode: the encoder of one micro-batch as a static task graph.
//
// Many rows: a task is a row block's way through one layer, from attention to the next layer's Q, K
// and V; only attention joins the rows of a text. Few rows: a task is a range of weight panels (or
// heads) of one stage for all rows, so that the threads share the streaming of the weights.
#ifndef POZOR_ENGINE_LATENCY_H_
#define POZOR_ENGINE_LATENCY_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/forward.h"
#include "engine/task_graph.h"

namespace pozor {

class LatencyPass {
 public:
  LatencyPass(const Encoder::Impl& model, const RaggedBatch& batch, Workspace& workspace,
              Profile* profile, size_t workers);

  static size_t Bytes(const Encoder::Impl& model, size_t tokens, size_t longest_text,
                      size_t workers) {
    return ForwardPass::Bytes(model, tokens, longest_text, workers);
  }

  // Any number of threads at once; the owner's `leave` never says so.
  void Work(size_t worker, const std::function<bool()>& leave);

  // Once the owner's Work has returned.
  MatView<const float> hidden() const { return pass_.hidden(); }

 private:
  // What a task does, in this order.
  enum Stage : uint32_t {
    kEmbed = 1,               // and the first layer's pre-norm
    kQkv = 2,                 // panels
    kFinishQkv = 4,           // what needs all heads of a row
    kHeads = 8,               // Q, K, V and attention of a range of heads
    kAttend = 16,             // heads
    kContextBytes = 32,       // int8: what the output reads
    kOutput = 64,             // panels
    kAttentionNorm = 128,     // post-norm of attention, pre-norm of feed-forward, choice of experts
    kUp = 256,                // panels
    kUpBytes = 512,           // int8: what the second product reads
    kDown = 1024,             // panels
    kFeedForwardNorm = 2048,  // post-norm and convolution, next layer's pre-norm or the final norm
    kNextQkv = 4096,          // Q, K and V of the next layer; of the first one after kEmbed
  };
  struct Task {
    uint32_t stages = 0;
    size_t layer = 0;
    Range rows;
    Range columns;  // heads or panels
  };

  void BuildRowBlocks(size_t blocks, size_t workers);
  void BuildColumnParts(size_t parts, size_t workers);
  uint32_t Add(const Task& task, size_t lane, std::span<const uint32_t> after);
  Range TextsOf(Range rows) const;
  void Run(const Task& task, size_t worker);
  void RunHeads(const Task& task, size_t worker);
  void RunQkv(size_t layer, Range rows);

  const Encoder::Impl& model_;
  RaggedBatch batch_;
  ForwardPass pass_;
  TaskGraph graph_;
  std::vector<Task> tasks_;  // [nodes of the graph]; a join's entry is empty
};

}  // namespace pozor

#endif  // POZOR_ENGINE_LATENCY_H_
