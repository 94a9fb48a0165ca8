// An encoder as data: what it computes and where its parameters stand in a weight file.
//
// An architecture (models/architectures) fills this in from a config; the engine's one forward
// function reads it. New behaviour is one more enum value here, with its own test.
#ifndef POZOR_ENGINE_SPEC_H_
#define POZOR_ENGINE_SPEC_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/activation.h"
#include "kernels/attention.h"
#include "kernels/rotary.h"

namespace pozor {

// kAffine: x gamma + beta, without statistics of the row.
enum class NormKind : uint8_t { kLayerNorm, kRmsNorm, kAffine };

// kPost: h = norm(h + f(h));  kPre: h = h + f(norm(h)).
enum class NormPlace : uint8_t { kPost, kPre };

// What the norms of queries and keys go over: every head by itself, or all heads of a row together.
enum class HeadNorms : uint8_t { kEachHead, kAllHeads };

enum class PositionKind : uint8_t {
  kNone,
  kLearned,                // a table in the weight file
  kSinusoidalInterleaved,  // sin on even columns, cos on odd ones (Vaswani et al. 2017)
  kSinusoidalHalves,       // sin in the first half of the columns, cos in the second
};

// A parameter in the weight file; an empty name says that the model has none.
struct TensorRef {
  std::string name;
  // A part of a fused tensor: rows [row_begin, row_begin + row_count) of its outputs; 0: all.
  size_t row_begin = 0;
  size_t row_count = 0;
  size_t fused_rows = 0;  // outputs of the whole fused tensor; 0: not fused
  // The rows of a part may stand in groups of so many, each `group_step` rows after the one before:
  // heads of a tensor that has Q, K and V of a head side by side. 0: all together.
  size_t group_rows = 0;
  size_t group_step = 0;

  bool present() const { return !name.empty(); }
};

// y = x W^T + b
struct LinearRef {
  TensorRef weight;  // [out, in], or [in, out] if transposed
  TensorRef bias;    // [out], or absent
  bool transposed = false;
  // A convolution of width 1 in that many groups of inputs and outputs, [out, in / groups, 1]; 0: a
  // matrix. It runs as a matrix with zeros outside the groups.
  size_t groups = 0;
  // A convolution over that many neighbouring rows, [out, in / taps, taps]; 0: a matrix. Its input
  // is those rows one after another.
  size_t taps = 0;
  // One of `stack` matrices one after another in the tensor, [stack * out, in] or, transposed,
  // [stack * in, out], and which; 0: the tensor is the matrix.
  size_t stack = 0;
  size_t place = 0;
};

struct NormRef {
  TensorRef gamma;  // [cols]
  TensorRef beta;   // [cols], or absent
};

// Where the norm of the embedding stands if there is a projection.
enum class EmbeddingNorm : uint8_t { kBeforeProjection, kAfterProjection };

struct EmbeddingSpec {
  TensorRef word;        // [vocab, size]
  TensorRef position;    // [max_positions, size], kLearned only
  TensorRef type;        // [types, size], or absent
  NormRef norm;          // or absent
  LinearRef projection;  // size -> hidden, or absent
  EmbeddingNorm norm_place = EmbeddingNorm::kBeforeProjection;
  // The projection reads words alone, and positions, types [.., hidden] and the norm follow it.
  bool projects_words = false;
  // It reads the words after, at and before each token, with zeros beyond the text (Sun et al.
  // 2020, MobileBERT).
  bool trigrams = false;
  PositionKind position_kind = PositionKind::kLearned;
  float word_scale = 1.0f;
  size_t vocab_size = 0;
  size_t size = 0;  // columns of the tables; hidden unless there is a projection
  size_t max_positions = 0;
  size_t type_count = 0;
  // Positions count from `position_offset`. With position_skips_id >= 0 (the RoBERTa family) tokens
  // of that id take position `position_skips_id` itself and do not advance the count.
  size_t position_offset = 0;
  int position_skips_id = -1;

  size_t projection_inputs() const { return trigrams ? 3 * size : size; }
};

// What is added to the score of query i and key j because they are j - i apart.
enum class ScoreBias : uint8_t {
  kNone,
  kBuckets,  // a learned number for each head and bucket of j - i (Raffel et al. 2020, T5)
  kSlopes,   // -slope |i - j|, a slope for each head (Press et al. 2022, ALiBi)
};

struct ScoreBiasSpec {
  ScoreBias kind = ScoreBias::kNone;
  TensorRef table;            // [buckets, heads], kBuckets only: half of them for j > i
  size_t buckets = 32;        // even
  size_t max_distance = 128;  // from here on all distances share the last bucket
};

// Which row of a table of relative positions stands for a distance.
enum class DistanceRows : uint8_t {
  kClipped,      // its own; beyond the span the outermost one
  kLogarithmic,  // its own within half the span, beyond in logarithmic steps up to max_distance
};

// Disentangled attention (He et al. 2021, DeBERTa): a table of relative positions, which layers
// project as they do content (LayerSpec::position_key, position_query).
struct RelativePositionSpec {
  size_t span = 0;  // rows on either side of distance 0; 0: no such table
  DistanceRows rows = DistanceRows::kClipped;
  size_t max_distance = 0;  // kLogarithmic
  TensorRef table = {};     // [2 * span, hidden], distance 0 at row `span`
  NormRef norm = {};        // of its rows, or absent
};

// Beside the first layer of a post-norm model (DeBERTa-v2's):
//   h = norm(h + act(x W^T + b)), x the rows of `taps` neighbouring tokens before that layer,
// zero beyond the ends of the text.
struct ConvolutionSpec {
  LinearRef linear;  // or absent; `taps` is odd
  NormRef norm;
  Activation activation = Activation::kTanh;
};

// Rotation of queries and keys (kernels/rotary.h). Pair i of `columns` / 2 turns at position p by
//   p * theta^(-2 i / columns) * frequency_scale
struct RotarySpec {
  RotaryPairs pairs = RotaryPairs::kHalves;
  size_t columns = 0;  // of each head, from the first on
  double theta = 10000;
  double frequency_scale = 1;
  // Frequencies and angles in double precision; else in single precision, as most models were
  // trained, which differs visibly at large positions.
  bool exact = false;
  // Instead of all that: [positions, columns], the sines of all pairs, then their cosines; or
  // absent.
  TensorRef table = {};
};

inline constexpr size_t kNone = static_cast<size_t>(-1);

inline constexpr size_t kMostExperts = 256;

// A mixture of experts in place of a feed-forward (Shazeer et al. 2017):
//   sum over the chosen e of p_e down_e(act(up_e(x))) + bias,  p = softmax(router(x))
// Chosen are the experts with the largest p, which are not renormalised; of equal ones the first.
struct ExpertsSpec {
  size_t count = 0;   // 0: a plain feed-forward
  size_t chosen = 0;  // for each row
  LinearRef router;   // hidden -> count
  TensorRef bias;     // [hidden], or absent
};

struct LayerSpec {
  size_t same_as = kNone;  // an earlier layer whose weights this one uses
  // Another part of the layer before it, without attention: one more feed-forward.
  bool continues = false;
  LinearRef query, key, value, attention_output;
  LinearRef global_query, global_key, global_value;  // of the rows of global tokens; or absent
  NormRef attention_norm;  // post: after the residual sum; pre: before the projections
  LinearRef ffn_up;        // hidden -> intermediate
  LinearRef ffn_gate;   // gated feed-forward: down(act(gate(x)) * up(x)); absent: down(act(up(x)))
  LinearRef ffn_down;   // intermediate -> hidden
  ExpertsSpec experts;  // if any, ffn_up and ffn_down are stacks of as many, without biases
  NormRef ffn_norm;
  // Norms of queries and keys, before they turn; or absent. kEachHead: root mean square ones,
  // [head_dim]; kAllHeads: of the model's kind, [heads * head_dim], keys [kv_heads * head_dim].
  NormRef query_norm, key_norm;
  // Of post-norm models: h = second(h + norm(h + f(h))) after attention; or absent.
  NormRef second_attention_norm;
  // Of pre-norm models: h += norm(f(x)) instead of h += f(x); or absent.
  NormRef attention_output_norm, ffn_output_norm;
  size_t window = kNoWindow;
  size_t rotary = kNone;  // of EncoderSpec::rotaries

  // Scores get q_i . E[i - j] (and k_j . E[i - j] if keys do so as well) before they are scaled:
  // Shaw et al. 2018, Huang et al. 2020. [2 * max_positions - 1, head_dim], distance 0 in the
  // middle; or absent.
  TensorRef distances;

  // Projections of EncoderSpec::relative_positions, hidden -> heads * head_dim, or absent. With row
  // p that stands for i - j, scores get q_i . position_key(p) and k_j . position_query(p) before
  // they are scaled. They may be the layer's `key` and `query`.
  LinearRef position_key, position_query;
  // With EncoderSpec::bottleneck: a layer works on x = norm(W h) in place of h, and its last part
  // ends with h = norm(h + W x). Queries and keys read `narrow_query` of h, if it is there, and
  // values then h itself (Sun et al. 2020, MobileBERT).
  LinearRef narrow, narrow_query;  // hidden -> bottleneck
  NormRef narrow_norm, narrow_query_norm;
  LinearRef widen;  // bottleneck -> hidden
  NormRef widen_norm;
};

// A part of a layer, both from 0; part 0 has its attention.
struct LayerPart {
  size_t layer = 0, part = 0;
};

struct EncoderSpec {
  std::string architecture;  // for messages and info: "bert"
  size_t hidden = 0;
  size_t bottleneck = 0;  // columns of the rows inside layers; 0: hidden
  size_t heads = 0;
  size_t kv_heads = 0;  // of keys and values, each for heads / kv_heads queries; 0: heads
  size_t head_dim = 0;
  float score_scale = 0;  // of q . k; 0: 1 / sqrt(head_dim)
  size_t intermediate = 0;
  float norm_epsilon = 1e-12f;
  NormKind norm_kind = NormKind::kLayerNorm;
  NormPlace norm_place = NormPlace::kPost;
  HeadNorms head_norms = HeadNorms::kEachHead;
  float gain_offset = 0;  // added to the gamma of every norm: 1 if they are stored less one
  Activation activation = Activation::kGelu;
  bool causal = false;
  size_t token_limit = 0;  // tokens up to which this is the model; 0: as many as it has positions
  ScoreBiasSpec score_bias;
  bool distances_score_keys = false;  // of LayerSpec::distances
  RelativePositionSpec relative_positions;
  ConvolutionSpec convolution;
  std::vector<RotarySpec> rotaries;
  EmbeddingSpec embeddings;
  std::vector<LayerSpec> layers;
  NormRef final_norm;  // or absent

  size_t layer_columns() const { return bottleneck == 0 ? hidden : bottleneck; }
  // Of positions and types.
  size_t embedding_columns() const { return embeddings.projects_words ? hidden : embeddings.size; }
  size_t embedding_norm_columns() const {
    const bool after = embeddings.norm_place == EmbeddingNorm::kAfterProjection;
    return after ? hidden : embedding_columns();
  }

  // Layers as the model counts them: parts of one are one.
  size_t layer_count() const {
    size_t count = 0;
    for (const LayerSpec& layer : layers) count += layer.continues ? 0 : 1;
    return count;
  }
  // What stands at `place` of `layers`.
  LayerPart PartAt(size_t place) const {
    LayerPart part;
    for (size_t l = 1; l <= place; ++l) {
      part =
          layers[l].continues ? LayerPart{part.layer, part.part + 1} : LayerPart{part.layer + 1, 0};
    }
    return part;
  }
  // Layer `number` is this many places from AttentionPlace(number) on.
  size_t PartsOf(size_t number) const {
    size_t place = AttentionPlace(number), parts = 1;
    while (place + parts < layers.size() && layers[place + parts].continues) ++parts;
    return parts;
  }
  // The part of layer `number` that has attention: its place in `layers`.
  size_t AttentionPlace(size_t number) const {
    size_t place = 0;
    while (layers[place].continues || number-- > 0) ++place;
    return place;
  }
};

}  // namespace pozor

#endif  // POZOR_ENGINE_SPEC_H_
