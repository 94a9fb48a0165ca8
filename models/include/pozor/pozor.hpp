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

enum class Precision : uint8_t { kF32, kBF16, kInt8 };

// What to do with a text longer than the model admits.
enum class Overflow : uint8_t { kTruncate, kError };

struct LoadOptions {
  Precision precision = Precision::kF32;
  size_t max_memory = 0;  // bytes for the whole process; 0: no ceiling
};

struct Progress {
  uint64_t texts = 0;   // finished
  uint64_t tokens = 0;  // finished
  uint64_t bytes = 0;   // of input taken in
  double seconds = 0;
};

struct EncodeOptions {
  size_t threads = 0;       // 0: what affinity mask, cgroup quota and OMP_NUM_THREADS allow
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
  bool truncated = false;
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
