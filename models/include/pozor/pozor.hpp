// Pozor: sentence vectors from BERT-style encoders on CPUs.
//
//   auto model   = pozor::Model::Load("all-MiniLM-L6-v2").value();
//   auto vectors = model.Encode({"A man is eating.", "Someone eats."}).value();
//   std::printf("%.4f\n", pozor::Cosine(vectors[0], vectors[1]));
//
// A text's vector has the same bits alone or in any batch, with any number of threads.
// Every call may be made from many threads at once on one Model.
#ifndef POZOR_POZOR_HPP_
#define POZOR_POZOR_HPP_

#if __cplusplus < 202002L
#error "pozor/pozor.hpp needs C++20; compile with -std=c++20"
#endif

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pozor/status.h"

namespace pozor {

// kAuto: what the weights were prepared for, f32 if they were not prepared. kBF16x3: f32 values in
// two bf16 parts where there is AMX, within 2e-5 of f32; elsewhere it is f32.
enum class Precision : uint8_t { kF32, kBF16, kInt8, kAuto, kBF16x3 };

// What to do with a text longer than the model admits.
enum class Overflow : uint8_t { kTruncate, kError };

struct LoadOptions {
  Precision precision = Precision::kAuto;
  size_t max_memory = 0;  // bytes for the whole process; 0: no ceiling
  // Of a model with an adapter for each task (ModelInfo::tasks): whose is merged into the weights.
  // The task's instruction becomes the default prompt. Empty: the model without adapters.
  std::string task;
};

struct Progress {
  uint64_t texts = 0;   // finished
  uint64_t tokens = 0;  // finished
  uint64_t bytes = 0;   // of input taken in
  double seconds = 0;
};

struct EncodeOptions {
  // 0: what affinity mask, cgroup quota and OMP_NUM_THREADS allow. 1024 at most.
  size_t threads = 0;
  size_t batch_tokens = 0;  // tokens of a micro-batch; 0: the default. Changes speed, never bits
  size_t max_length = 0;    // tokens including specials; 0: the model's own limit
  std::optional<std::string> prompt_name;  // of the model's prompts
  std::optional<std::string> prompt;       // text put in front of every text
  std::optional<size_t> truncate_dim;      // keep the first numbers of each vector
  // true: unit length at the end; false: without the model's own Normalize module at the end.
  // Default: as the model says.
  std::optional<bool> normalize;
  Overflow overflow = Overflow::kTruncate;
  bool plain_specials = false;                    // "[SEP]" typed in a text is text
  size_t max_memory = 0;                          // bytes for the whole process; 0: as at load
  const std::atomic<bool>* cancel = nullptr;      // set it to true to stop
  std::function<void(const Progress&)> progress;  // called now and then, from one thread at a time
  std::string* profile = nullptr;                 // gets a table of where the time went
};

struct EncodeStats {
  uint64_t texts = 0;
  uint64_t tokens = 0;
  uint64_t truncated = 0;  // texts that were cut
  size_t threads = 0;
  double seconds = 0;
};

// A row-major matrix of vectors.
class Vectors {
 public:
  Vectors() = default;
  Vectors(size_t rows, size_t dimensions)
      : rows_(rows), dimensions_(dimensions), data_(rows * dimensions) {}

  size_t rows() const { return rows_; }
  size_t dimensions() const { return dimensions_; }
  float* data() { return data_.data(); }
  const float* data() const { return data_.data(); }
  std::span<const float> operator[](size_t row) const {
    return {data_.data() + row * dimensions_, dimensions_};
  }

 private:
  size_t rows_ = 0;
  size_t dimensions_ = 0;
  std::vector<float> data_;
};

// Streams of any length: Encode takes texts as it needs them and hands vectors back in order.
class TextSource {
 public:
  virtual ~TextSource() = default;
  // The next text, or nothing at the end of the input.
  virtual Result<std::optional<std::string>> Next() = 0;
};
class VectorSink {
 public:
  virtual ~VectorSink() = default;
  // Rows first_row .. first_row + rows - 1, [rows, dimensions].
  virtual Status Write(uint64_t first_row, size_t rows, size_t dimensions, const float* data) = 0;
};

struct TokenizeResult {
  std::vector<int32_t> ids;
  std::vector<int32_t> type_ids;
  std::vector<std::string> tokens;
  std::vector<std::pair<uint32_t, uint32_t>> offsets;       // code points
  std::vector<std::pair<uint32_t, uint32_t>> byte_offsets;  // UTF-8 bytes
  std::vector<uint8_t> special;   // 1: added by the tokenizer, not in the text
  std::vector<int32_t> sequence;  // 0, or 1 in the second text of a pair; -1 for specials
  std::vector<int32_t> words;     // pre-tokenizer's word within its text; -1 for specials
  bool truncated = false;
};

// A block of attention rows of one head: Row(i)[j] is the weight that query query_begin + i gives
// to key j. Rows sum to 1; a key that the query does not see has weight 0.
struct AttentionRows {
  size_t layer = 0, head = 0;
  size_t query_begin = 0;
  size_t queries = 0;              // of this block
  size_t keys = 0;                 // tokens of the text
  size_t stride = 0;               // floats from one row to the next
  const float* weights = nullptr;  // [queries, stride], valid during the call

  const float* Row(size_t i) const { return weights + i * stride; }
};

// Which attention weights to compute. What is not asked for costs nothing.
struct AttentionSelection {
  std::vector<std::pair<size_t, size_t>> heads;  // (layer, head), from 0; empty: all
  size_t query_begin = 0;                        // rows of tokens query_begin .. query_end - 1
  size_t query_end = SIZE_MAX;
  // Order within a layer: for each head its row blocks, or for each row block its heads.
  bool heads_together = false;
  std::optional<std::string> pair;  // second text of a pair
  EncodeOptions options;            // max_length, prompts, plain_specials
};

// Called on the thread of the call; an error stops the rest.
using AttentionSink = std::function<Status(const AttentionRows&)>;
// Rows after embedding (layer 0) and after each layer, the last one past the final norm:
// [tokens, hidden], rows `stride` floats apart.
using HiddenSink = std::function<Status(size_t layer, size_t tokens, size_t hidden, size_t stride,
                                        const float* rows)>;

// The text as the model saw it, beside what a sink got.
struct Inspection {
  std::string text;           // with the prompt in front
  TokenizeResult tokens;      // offsets into that text
  std::vector<float> vector;  // of this run
};

struct ModelInfo {
  std::string name;          // as asked for
  std::string path;          // folder or file it was read from
  std::string architecture;  // "bert"
  std::string tokenizer;     // "WordPiece"
  std::string pooling;       // "mean", "cls + mean", ...
  size_t layers = 0;
  size_t heads = 0;
  size_t hidden = 0;
  size_t intermediate = 0;
  size_t vocabulary = 0;
  size_t dimensions = 0;  // of a vector
  size_t max_length = 0;  // tokens including specials
  size_t parameters = 0;
  bool normalizes = false;
  std::vector<std::pair<std::string, std::string>> prompts;
  std::string default_prompt;                               // name, or empty
  std::vector<std::string> tasks;                           // with an adapter each
  std::string task;                                         // in use, or empty
  std::string similarity;                                   // "cosine", "dot", ...
  std::vector<std::pair<std::string, std::string>> config;  // key = value: what it did
  std::vector<std::string> ignored_tensors;
  std::vector<std::string> warnings;
};

class Model {
 public:
  // A folder, a file, or a name: a folder of $POZOR_HOME (default ~/.cache/pozor), or a model of
  // the local Hugging Face cache ("all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2").
  static Result<Model> Load(const std::string& name, const LoadOptions& options = {});

  Model(Model&&) noexcept;
  Model& operator=(Model&&) noexcept;
  ~Model();

  // One vector a text. Errors name texts by their number, counted from 1: a text that is not UTF-8,
  // or too long where that is an error.
  Result<Vectors> Encode(std::span<const std::string_view> texts,
                         const EncodeOptions& options = {}) const;
  Result<Vectors> Encode(std::span<const std::string> texts,
                         const EncodeOptions& options = {}) const;
  Result<Vectors> Encode(std::initializer_list<std::string_view> texts,
                         const EncodeOptions& options = {}) const;

  // Into the caller's buffer: vector i at out + i * stride (floats; stride >= the dimensions).
  // After an error the buffer's content is undefined.
  Result<EncodeStats> EncodeInto(std::span<const std::string_view> texts, float* out, size_t stride,
                                 const EncodeOptions& options = {}) const;

  // Bounded memory whatever the length of the stream.
  Result<EncodeStats> EncodeStream(TextSource& source, VectorSink& sink,
                                   const EncodeOptions& options = {}) const;

  Result<TokenizeResult> Tokenize(std::string_view text, const EncodeOptions& options = {}) const;
  Result<TokenizeResult> TokenizePair(std::string_view first, std::string_view second,
                                      const EncodeOptions& options = {}) const;

  // Attention weights, handed over in blocks of up to 64 rows as they are computed: layers x heads
  // x tokens^2 is never held. They are recomputed from the Q and K of the fast path.
  Result<Inspection> Attention(std::string_view text, const AttentionSelection& selection,
                               const AttentionSink& sink) const;

  // Hidden states layer by layer.
  Result<Inspection> HiddenStates(std::string_view text, const HiddenSink& sink,
                                  const EncodeOptions& options = {},
                                  const std::optional<std::string>& pair = std::nullopt) const;

  // Length of a vector under these options.
  size_t Dimensions(const EncodeOptions& options = {}) const;

  const ModelInfo& Info() const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

 private:
  explicit Model(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Cosine similarity of two vectors of one length; 0 if either is zero.
float Cosine(std::span<const float> a, std::span<const float> b);

// "0.1.0"
std::string_view Version();

}  // namespace pozor

#endif  // POZOR_POZOR_HPP_
