// The operations of one forward pass, each over a range of rows and, for products, of weight
// panels: Encoder::Forward calls them whole and in order, latency mode calls them in parts.
#ifndef POZOR_ENGINE_FORWARD_H_
#define POZOR_ENGINE_FORWARD_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/batch.h"
#include "engine/encoder.h"
#include "engine/linear.h"
#include "engine/memory.h"
#include "engine/precision.h"
#include "engine/profile.h"
#include "engine/quantize.h"
#include "kernels/embed.h"
#include "kernels/norm.h"
#include "kernels/quantize.h"

namespace pozor {

class Executor;
class RowCheck;  // engine/tensors.h

struct NormWeights {
  const float* gamma = nullptr;  // [cols]; null: no such norm
  const float* beta = nullptr;   // [cols] or null
};

struct ExpertWeights {
  Linear router;                // hidden -> experts, f32
  std::vector<Linear> up;       // [experts], or none
  std::vector<Linear> down;     // [experts]
  const float* bias = nullptr;  // [hidden], or null

  bool present() const { return !up.empty(); }
  ExpertWeights Alias() const;
};

struct LayerWeights {
  Linear qkv;  // Q, K and V heads, each padded to head_stride columns; V unless `value` is there
  Linear attention_output;
  Linear ffn_gate;  // or absent
  Linear ffn_up;
  Linear ffn_down;
  ExpertWeights experts;  // in place of those, or absent
  NormWeights attention_norm;
  NormWeights ffn_norm;
  NormWeights query_norm, key_norm;  // the first one times query_scale
  NormWeights second_attention_norm;
  NormWeights attention_output_norm, ffn_output_norm;
  Linear distances;   // head_dim -> 2 * max_positions - 1, or absent
  Linear global_qkv;  // as qkv, or absent
  // head_dim -> heads * position_columns: a head's rows score by its own columns, keys by those
  // that are scaled already; or absent.
  Linear position_keys, position_queries;
  Linear value;                        // V alone, where it reads other rows than Q and K; or absent
  Linear narrow, narrow_query, widen;  // or absent
  NormWeights narrow_norm, narrow_query_norm, widen_norm;

  LayerWeights Alias() const {
    return {qkv.Alias(),
            attention_output.Alias(),
            ffn_gate.Alias(),
            ffn_up.Alias(),
            ffn_down.Alias(),
            experts.Alias(),
            attention_norm,
            ffn_norm,
            query_norm,
            key_norm,
            second_attention_norm,
            attention_output_norm,
            ffn_output_norm,
            distances.Alias(),
            global_qkv.Alias(),
            position_keys.Alias(),
            position_queries.Alias(),
            value.Alias(),
            narrow.Alias(),
            narrow_query.Alias(),
            widen.Alias(),
            narrow_norm,
            narrow_query_norm,
            widen_norm};
  }
};

enum class Sublayer : uint8_t { kAttention, kFeedForward };

// What Encoder::Create made of a spec. Immutable while forward passes run.
struct Encoder::Impl {
  EncoderSpec spec;
  size_t head_stride = 0;           // head_dim rounded up to 16
  float query_scale = 1;            // 1 / sqrt(head_dim)
  std::vector<size_t> numbers;      // [layers of the spec]: which of the model's they are part of
  const float* word = nullptr;      // [vocab, size]
  const float* position = nullptr;  // [max_positions, size] or null
  const float* type = nullptr;      // [types, size] or null
  NormWeights embedding_norm;
  Linear projection;
  Linear convolution;  // taps * hidden -> hidden, or absent
  NormWeights convolution_norm;
  std::vector<LayerWeights> layers;
  NormWeights final_norm;
  std::vector<const float*> rotary_tables;  // [rotaries][positions, columns]
  const float* score_bias = nullptr;        // [heads, 2 * max_tokens - 1], or null
  std::vector<int32_t> distance_index;      // [2 * max_tokens - 1]: columns of scores of positions
  Workspace arena;                          // everything packed or copied
  std::shared_ptr<const TensorSource> source;  // if tables are used in place
  size_t mapped_bytes = 0;                     // of those tables
  std::unique_ptr<Executor> executor;          // knows no weights, only threads and workspaces

  size_t kv_heads() const { return spec.kv_heads == 0 ? spec.heads : spec.kv_heads; }
  size_t head_units() const { return spec.heads + 2 * kv_heads(); }  // of Q, K and V

  PrecisionPlan precision;                                // empty: every product in f32
  std::vector<std::array<SmoothInput, 2>> smooth_inputs;  // [layers][Sublayer], of int8 products
  std::shared_ptr<const void> holder;         // of what lies neither in `arena` nor in `source`
  std::shared_ptr<const RowCheck> row_check;  // of the word table, or null

  // Sizes checked, nothing loaded.
  static Result<std::unique_ptr<Impl>> Make(EncoderSpec spec);

  bool has_int8() const {
    for (const LayerPrecision& layer : precision) {
      for (const ProductChoice& choice : layer.products) {
        if (choice.format == NumberFormat::kInt8) return true;
      }
    }
    return false;
  }
  bool IsInt8(size_t l, ProductKind kind) const {
    return !precision.empty() && precision[l].IsInt8(kind);
  }
  // The norm whose rows, as they leave it, are the input of layer l's first product; null if
  // something else stands between, or there is none.
  const NormWeights* NormBefore(size_t l, Sublayer sublayer) const;

  bool Continues(size_t l) const { return l < layers.size() && spec.layers[l].continues; }
  size_t attention_columns() const { return spec.heads * spec.head_dim; }
  size_t max_tokens() const;  // of one text
  // Scores of content against positions that a token has, for queries or for keys.
  size_t position_columns() const {
    const size_t columns = spec.layers.front().distances.present()
                               ? 2 * spec.embeddings.max_positions - 1
                               : 2 * spec.relative_positions.span;
    return RoundUp(columns, kPanelColumns);
  }
  // Floats that they take. The kernel walks down a block of rows; those a multiple of 512 bytes
  // apart would share few sets of the cache.
  size_t position_stride() const {
    const size_t columns = position_columns();
    return columns % 128 == 0 && columns > 0 ? columns + kPanelColumns : columns;
  }
  // Fills distance_index, if positions score.
  void IndexDistances();
  bool norms_before_projection() const {
    return projection.present() && spec.embeddings.norm_place == EmbeddingNorm::kBeforeProjection;
  }
  // True if Q and K need FinishQkv: they are normed over all their heads.
  bool norms_whole_rows() const {
    return spec.head_norms == HeadNorms::kAllHeads && layers.front().query_norm.gamma != nullptr;
  }
  bool gated() const { return !layers.empty() && layers.front().ffn_gate.present(); }
  size_t chosen_experts() const;               // of a row, in whichever layer has the most; or 0
  uint64_t MultiplyAdds(size_t tokens) const;  // of the products with weights
  uint64_t ProductBytes() const;               // of those weights, as they are packed
};

// Half-open ranges; `end` past the last one means all.
struct Range {
  size_t begin = 0;
  size_t end = SIZE_MAX;
};

// What a product reads: rows as they are, or, if it is an int8 one, as bytes.
struct ProductInput {
  MatView<const float> rows;
  QuantizedRows bytes;
};

// Where a product's heads go.
struct HeadUnits {
  float* units = nullptr;  // of all heads
  size_t first = 0;        // the product's first one
  float query_scale = 1;
};

class ForwardPass {
 public:
  // How many workers take part. With one, buffers that are never alive together share memory; with
  // several, Q, K and V of two layers may be alive at once.
  ForwardPass(const Encoder::Impl& model, const RaggedBatch& batch, Workspace& workspace,
              Profile* profile, size_t workers = 1);

  static size_t Bytes(const Encoder::Impl& model, size_t tokens, size_t longest_text,
                      size_t workers = 1);

  // h = norm((word + type) + position), projected to `hidden` columns if the model does so.
  void Embed(Range rows);

  // Layer `l`: x is norm(h) in a pre-norm model and h itself in a post-norm one. Norms make the
  // bytes that an int8 product reads as well. Behind a bottleneck h is the narrow rows inside the
  // layer: PreNorm of attention makes them, PostNorm of the last feed-forward adds them to the wide
  // ones.
  void PreNorm(size_t l, Sublayer sublayer, Range rows);          // x = norm(h)
  void Qkv(size_t l, Range rows, Range panels = {});              // [q k v] = x Wqkv + b
  void FinishQkv(size_t l, Range rows);                           // norms over all heads
  void Attend(size_t l, Range rows, Range heads, size_t worker);  // c = softmax(q k^T) v
  void QuantizeContext(size_t l, Range rows);                     // c as bytes, if they are read
  void AttentionOutput(size_t l, Range rows, Range panels = {});  // h += c Wo + b
  void PostNorm(size_t l, Sublayer sublayer, Range rows);         // h = norm(h); below
  void Route(size_t l, Range rows);                               // experts are chosen
  void FeedForwardUp(size_t l, Range rows, Range panels = {});    // u = act(x W1 + b), or gated
  void QuantizeIntermediate(size_t l, Range rows);                // u as bytes, if they are read
  void FeedForwardDown(size_t l, Range rows, Range panels = {});  // h += u W2 + b

  // After the first layer's PostNorm, if the model has a convolution; else nothing:
  //   h = norm(h + act(w Wc + b)), w the embedded rows of the tokens around.
  void Convolve(size_t l, Range rows);

  // A pre-norm model whose layers norm the outputs of sublayers too has those (c Wo + b, u W2 + b)
  // in x instead of adding them at once; PostNorm then does h += norm(x).

  void FinalNorm(Range rows);

  // Behind the last attention: the pass has one row a text that has tokens, its first.
  void KeepFirstRows();

  // With experts, u has a slot for every row and expert chosen: the slots of the rows of one call
  // stand together, expert after expert. Calls of all three go by the same ranges of rows. A row of
  // a layer without experts has the place of its first slot, so that ranges of rows in different
  // layers do not meet.

  // Hands the attention rows of layer `l` to those who asked for them.
  void EmitAttention(size_t l, const Sinks& sinks);

  // Hands the input of a product to those who asked for it.
  void EmitInput(size_t l, ProductKind kind, const Sinks& sinks) const;

  size_t rows() const { return rows_; }
  MatView<const float> hidden() const {
    return {hidden_.data, rows_, hidden_.cols, hidden_.stride};
  }

 private:
  struct Layout;
  void PlaceStreams(const Layout& layout, Workspace& workspace);
  void PlaceSublayers(const Layout& layout, Workspace& workspace);
  void PlaceExperts(const Layout& layout, Workspace& workspace);
  void PlaceBytes(const Layout& layout, Workspace& workspace);
  void PlaceWindows();
  void CountPositions();
  size_t slots_of_row() const { return std::max<size_t>(model_.chosen_experts(), 1); }
  const NormWeights& NormOf(size_t l, Sublayer sublayer) const;
  NormArgs NormArguments(const NormWeights& norm, MatView<float> x, MatView<float> out) const;
  void NormRows(const NormWeights& norm, MatView<float> x, MatView<float> out);
  // The norm in front of (l, sublayer), rows from `first_row` on; what that reads as bytes as well.
  void NormRowsInto(size_t l, Sublayer sublayer, const NormWeights& norm, MatView<float> x,
                    MatView<float> out, size_t first_row);
  bool QuantizesInput(size_t l, Sublayer sublayer) const;
  // The slots of `rows` by expert: first[e] to first[e + 1].
  struct Slots {
    std::array<size_t, kMostExperts + 1> first;
  };
  Slots SlotsOf(size_t l, Range rows) const;
  void GatherRows(size_t l, Range rows);
  GemmArgs SlotProduct(const Linear& linear, const ProductInput& x, Range slots,
                       Range panels) const;
  void ExpertsUp(size_t l, Range rows, Range panels);
  void ExpertsDown(size_t l, Range rows, Range panels);
  void QuantizePlain(MatView<float> x, size_t split, const QuantizedRows& out, Range rows);
  const NormWeights& OutputNormOf(size_t l, Sublayer sublayer) const;
  void AddNormedRows(const NormWeights& norm, MatView<float> x, MatView<float> sum);
  GemmArgs Product(const Linear& linear, const ProductInput& x, Range rows, Range panels) const;
  // h += x W + b, or the same into `normed_`, with h or without it.
  enum class Sum : uint8_t { kHidden, kAside, kAsideWithHidden };
  void AddProduct(const Linear& linear, Sum sum, const ProductInput& x, Range rows, Range panels);
  MatView<const float> Input(size_t l, Sublayer sublayer) const;
  MatView<float> Stream() const { return model_.spec.bottleneck == 0 ? hidden_ : narrow_; }
  EmbedArgs EmbedArguments(MatView<float> out, size_t first_row) const;
  void EmbedWords(Range rows);
  void CopyWords(Range rows);
  void AddToHidden(const Linear& linear, MatView<float> x, Range rows);
  void Narrow(size_t l, Range rows);
  void Widen(size_t l, Range rows);
  uint64_t ProjectHeads(const Linear& linear, const ProductInput& x, const HeadUnits& heads,
                        Range rows, Range panels);
  float* HeadUnit(size_t l, size_t unit) const;
  AttentionArgs AttentionOf(size_t l, size_t text, size_t head) const;
  template <class Visit>
  void VisitTurnedUnits(size_t l, Range rows, Range panels, const Visit& visit);
  void NormHeads(size_t l, Range rows, Range panels);
  void NormWholeRows(const NormWeights& norm, float* units, size_t heads, Range rows);
  void Rotate(size_t l, Range rows, Range panels);
  void ScorePositions(size_t l, size_t head, AttentionArgs* args, float* scratch) const;
  void KeepEmbedded(Range rows);
  float* WindowRow(size_t text, size_t token) const;

  ProductInput InputOf(size_t l, Sublayer sublayer) const {
    return {Input(l, sublayer), input_bytes_};
  }

  // Global tokens of a text: every query sees their keys, and they see all keys by projections of
  // their own (Beltagy et al. 2020, Longformer).
  void ListGlobals();
  std::span<const int32_t> GlobalsOf(size_t text) const;
  std::span<const int32_t> GlobalQueries(size_t text, const AttentionArgs& args) const;
  void ShowGlobals(size_t text, AttentionArgs* args, float* scratch) const;
  AttentionArgs GlobalAttentionOf(size_t l, size_t text, size_t head, int32_t query,
                                  const AttentionArgs& beside) const;

  const Encoder::Impl& model_;
  RaggedBatch batch_;
  size_t rows_;  // one a token, until KeepFirstRows
  Profile* profile_;
  bool shared_ = false;           // one worker: one set of Q, K and V, feed-forward rows over them
  int32_t* positions_ = nullptr;  // [tokens]
  MatView<float> embedded_;       // [tokens, inputs of the projection], only with one
  MatView<float> hidden_;         // [tokens, hidden]
  // Only with a convolution: the rows of texts with zero rows between, before and after them, one
  // right after another, so that the rows around a token are one row of the product.
  float* windows_ = nullptr;           // [tokens + (texts + 1) * (taps / 2), hidden]
  std::vector<size_t> window_starts_;  // [texts]: where the rows around its first token begin
  MatView<float> normed_;              // [tokens, hidden], only pre-norm
  MatView<float> narrow_;              // [tokens, bottleneck], these two only with one
  MatView<float> narrow_query_;        // [tokens, bottleneck], if queries have their own
  MatView<float> context_;             // [tokens, heads * head_dim]
  MatView<float> up_;                  // [tokens, intermediate]
  MatView<float> gate_;                // [tokens, intermediate], only gated
  int32_t* choices_ = nullptr;         // [tokens, chosen], ascending; all these only with experts
  int32_t* slots_ = nullptr;           // [tokens, chosen]
  float* shares_ = nullptr;            // [tokens, chosen]: p
  MatView<float> logits_;              // [tokens, experts]
  MatView<float> slot_up_;             // [slots, intermediate], over up_
  MatView<float> slot_rows_;           // [slots, hidden]: what experts read, then what they give
  QuantizedRows slot_bytes_;           // [slots, hidden], int8
  QuantizedRows input_bytes_;          // [tokens, layer columns], these three only with int8
  QuantizedRows context_bytes_;        // [tokens, heads * head_dim]
  QuantizedRows up_bytes_;             // [tokens, intermediate]
  QuantizedRows slot_up_bytes_;        // [slots, intermediate], over up_bytes_
  float* qkv_[2] = {};                 // [head_units, unit_stride]: a unit is [tokens, head_stride]
  size_t unit_stride_ = 0;
  float* global_qkv_[2] = {};          // as qkv_, only if the batch has global tokens
  std::vector<int32_t> global_keys_;   // [global tokens]: places in their texts
  std::vector<size_t> global_starts_;  // [texts + 1] in global_keys_, or empty
  float* scratch_ = nullptr;           // [workers, scratch_floats]
  size_t scratch_floats_ = 0;
  size_t attention_floats_ = 0;  // of them, for the kernel; then scores of positions
};

}  // namespace pozor

#endif  // POZOR_ENGINE_FORWARD_H_
