// The encoder: packed weights and the forward pass.
#ifndef POZOR_ENGINE_ENCODER_H_
#define POZOR_ENGINE_ENCODER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "engine/batch.h"
#include "engine/precision.h"
#include "engine/spec.h"
#include "engine/weights.h"
#include "kernels/types.h"
#include "pozor/status.h"

namespace pozor {

class Profile;    // engine/profile.h
class Workspace;  // engine/memory.h

// A block of attention rows of one text and head: weights[i * stride + j] is what query
// query_begin + i gives to key j.
struct AttentionBlock {
  size_t layer, head, text;
  size_t query_begin;
  MatView<const float> weights;  // [queries of the block, keys of the text]
};

// Optional listeners. The fast path does the same work with or without them; attention rows are
// recomputed from Q and K block by block, so that layers x heads x tokens^2 is never held.
struct Sinks {
  // Rows after embedding (layer 0) and after each layer (1 .. layers); the last ones have gone
  // through the final norm, if there is one. [tokens, hidden]
  std::function<void(size_t layer, MatView<const float> hidden)> hidden_states;
  std::function<bool(size_t layer, size_t head)> wants_attention;
  std::function<void(const AttentionBlock&)> attention;
  // Of each text: rows [query_begin, query_end) only.
  size_t query_begin = 0;
  size_t query_end = SIZE_MAX;
  // Blocks of one layer and text: for each head its row blocks, or for each row block its heads.
  bool heads_together = false;
  // What goes into the products of a layer but for attention's own, before each. [rows, inputs]
  std::function<void(size_t layer, ProductKind kind, MatView<const float> input)> product_inputs;
  // Comes with product_inputs: what goes into the second product of each expert, in place of kDown.
  std::function<void(size_t layer, size_t expert, MatView<const float> input)> expert_inputs;

  Profile* profile = nullptr;  // times of the zones inside the encoder
};

// Which rows of a text whoever pools it will read. With kFirst (CLS pooling) the last layer
// computes the others only as far as attention needs them.
enum class RowsRead : uint8_t { kAll, kFirst };

struct EncoderOptions {
  bool huge_pages = true;
  size_t max_memory = 0;  // ceiling for the whole process in bytes; 0: none
  // Of products with weights: f32, bf16, or bf16x3 where the CPU runs it (Bf16x3Plan). Attention's
  // own products, norms and sums stay f32.
  NumberFormat weights = NumberFormat::kF32;
};

class Encoder {
 public:
  // Reads, checks and packs every parameter that `spec` names; source pages are released as they
  // have been packed. Tensors that stay in their file (embedding tables) keep the source alive.
  static Result<std::unique_ptr<Encoder>> Create(EncoderSpec spec, WeightReader& weights,
                                                 const EncoderOptions& options = {});
  ~Encoder();

  const EncoderSpec& spec() const;
  const PrecisionPlan& precision() const;  // empty: all products in f32
  size_t weight_bytes() const;             // packed weights and copied tables: anonymous memory
  size_t mapped_bytes() const;             // tables used in place: pages of the weight file

  // Tokens of one text that the position table admits; SIZE_MAX without a table.
  size_t max_tokens() const;

  // The whole encoder on the calling thread. The result lies in `workspace` and is valid until its
  // next use: [tokens, hidden], or [texts that have tokens, hidden] if only first rows are read.
  // Ids, types and lengths must be in range (CheckBatch).
  MatView<const float> Forward(const RaggedBatch& batch, Workspace& workspace,
                               const Sinks& sinks = {}, RowsRead rows = RowsRead::kAll) const;

  // Ids below the vocabulary size, types below type_count, lengths within max_tokens().
  Status CheckBatch(const RaggedBatch& batch) const;

  // Bytes that Forward takes from a workspace for a batch of this many tokens.
  size_t WorkspaceBytes(size_t tokens, size_t longest_text) const;

  struct Impl;
  const Impl& impl() const { return *impl_; }

  // For the engine's own use: an encoder apart and together again.
  static std::unique_ptr<Impl> Dismantle(std::unique_ptr<Encoder> encoder);
  static std::unique_ptr<Encoder> Assemble(std::unique_ptr<Impl> impl);

 private:
  explicit Encoder(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace pozor

#endif  // POZOR_ENGINE_ENCODER_H_
