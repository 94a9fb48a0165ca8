// One call of Model::Encode: options made concrete, and the stages of the graph that deal with
// text and vectors.
#ifndef POZOR_MODELS_ENCODE_H_
#define POZOR_MODELS_ENCODE_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph.h"
#include "engine/profile.h"
#include "models/model_impl.h"

namespace pozor {

// The options of a call, resolved against the model.
struct EncodePlan {
  VectorOptions vector;
  size_t dimensions = 0;
  TokenizeOptions tokenize;
  std::string prompt;
  uint32_t pool_first = 0;  // tokens of the prompt that are left out of the pooling
  Overflow overflow = Overflow::kTruncate;

  static Result<EncodePlan> Make(const Model::Impl& model, const EncodeOptions& options);
};

// Appends the tokens of texts to batches. One a thread at a time.
class TextTokeniser {
 public:
  TextTokeniser(const Model::Impl& model, const EncodePlan& plan)
      : model_(model), plan_(plan), scratch_(model.scratches) {}

  // `number` counts texts from 1, for messages.
  Status Append(std::string_view text, uint64_t number, TokenBatch* batch);

  uint64_t truncated() const { return truncated_; }

 private:
  const Model::Impl& model_;
  const EncodePlan& plan_;
  const ScratchPool::Lease scratch_;
  std::string joined_;  // prompt + text
  uint64_t truncated_ = 0;
};

// Makes the vector of text `number`; Corrupt if it is not finite.
Status MakeVector(const Model::Impl& model, const EncodePlan& plan, MatView<const float> hidden,
                  uint64_t number, float* out);

Result<TokenizeResult> ToTokenizeResult(Result<Encoding> encoding);

Status OutOfMemory();  // what std::bad_alloc becomes

// The stages that are alike for texts in memory and for streams.
class EncodeClient : public GraphClient {
 public:
  EncodeClient(const Model::Impl& model, const EncodePlan& plan, const EncodeOptions& options);

  Status Tokenise(Window& window) final;
  Status Pool(Window& window, size_t text, MatView<const float> hidden) final;
  Status Write(Window& window) final;

  uint64_t truncated() const { return truncated_.load(); }
  void ReportProgress(bool always);

 protected:
  struct Texts {
    uint64_t first = 0;                       // number of the first text, from 0
    std::vector<std::string> owned;           // streams
    std::span<const std::string_view> views;  // texts in memory
    std::vector<float> vectors;               // streams: [texts, dimensions]

    std::string_view Get(size_t i) const { return owned.empty() ? views[i] : owned[i]; }
  };
  static Texts& TextsOf(Window& window) { return *static_cast<Texts*>(window.payload.get()); }

  // Where the vector of a text goes.
  virtual float* Row(Texts& texts, size_t i) = 0;
  // All vectors of a window are there.
  virtual Status Deliver(Texts& texts, size_t count) = 0;

  void CountBytes(size_t bytes) { bytes_.fetch_add(bytes, std::memory_order_relaxed); }

  const Model::Impl& model_;
  const EncodePlan& plan_;

 private:
  const EncodeOptions& options_;
  std::atomic<uint64_t> truncated_{0};
  std::atomic<uint64_t> bytes_{0};
  Progress progress_;  // the serial Write stage owns it
  std::chrono::steady_clock::time_point start_, last_report_;
};

// Texts in memory to rows of a buffer.
class ArrayClient final : public EncodeClient {
 public:
  ArrayClient(const Model::Impl& model, const EncodePlan& plan, const EncodeOptions& options,
              std::span<const std::string_view> texts, float* out, size_t stride)
      : EncodeClient(model, plan, options), texts_(texts), out_(out), stride_(stride) {}

  Result<bool> Read(Window& window, size_t text_budget) override;

 protected:
  float* Row(Texts& texts, size_t i) override { return out_ + (texts.first + i) * stride_; }
  Status Deliver(Texts&, size_t) override { return Status(); }

 private:
  std::span<const std::string_view> texts_;
  float* out_;
  size_t stride_;
  size_t next_ = 0;
};

// A source of texts to a sink of vectors.
class StreamClient final : public EncodeClient {
 public:
  StreamClient(const Model::Impl& model, const EncodePlan& plan, const EncodeOptions& options,
               TextSource& source, VectorSink& sink)
      : EncodeClient(model, plan, options), source_(source), sink_(sink) {}

  Result<bool> Read(Window& window, size_t text_budget) override;

 protected:
  float* Row(Texts& texts, size_t i) override {
    return texts.vectors.data() + i * plan_.dimensions;
  }
  Status Deliver(Texts& texts, size_t count) override {
    return sink_.Write(texts.first, count, plan_.dimensions, texts.vectors.data());
  }

 private:
  TextSource& source_;
  VectorSink& sink_;
  uint64_t next_ = 0;
};

}  // namespace pozor

#endif  // POZOR_MODELS_ENCODE_H_
