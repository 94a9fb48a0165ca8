#include "engine/spec_check.h"

#include <string>

#include "engine/distances.h"
#include "engine/relative_positions.h"

namespace pozor {
namespace {

// Sizes beyond this are no encoder's; below it no product of two overflows.
constexpr size_t kLargestSize = size_t{1} << 24;
constexpr size_t kLongestComputedTable = size_t{1} << 16;
constexpr size_t kMostTaps = 255;

// What depends on distances needs a longest text.
Status CheckDistances(const EncoderSpec& spec) {
  const auto wrong = [&](const std::string& what) {
    return Unsupported(spec.architecture + ": " + what + "; check the model's config");
  };
  const EmbeddingSpec& embeddings = spec.embeddings;
  const bool positions = embeddings.position_kind != PositionKind::kNone;
  const size_t longest = positions ? embeddings.max_positions : spec.token_limit;
  const bool tables = spec.score_bias.kind != ScoreBias::kNone || !spec.rotaries.empty() ||
                      spec.relative_positions.span != 0;
  if (tables && (longest == 0 || longest > kLongestDistance)) {
    return wrong("texts of " + std::to_string(longest) + " tokens are too long for a table");
  }
  if (spec.score_bias.buckets < 4 || spec.score_bias.buckets % 2 != 0 ||
      spec.score_bias.buckets > kLargestSize ||
      spec.score_bias.max_distance <= spec.score_bias.buckets / 4) {
    return wrong(std::to_string(spec.score_bias.buckets) + " buckets up to distance " +
                 std::to_string(spec.score_bias.max_distance) + " cannot be");
  }
  for (const RotarySpec& rotary : spec.rotaries) {
    if (rotary.columns == 0 || rotary.columns % 2 != 0 || rotary.columns > spec.head_dim) {
      return wrong("rotation of " + std::to_string(rotary.columns) + " columns of a head of " +
                   std::to_string(spec.head_dim) + " cannot be");
    }
  }
  return {};
}

// Layers may only repeat earlier ones.
Status CheckReferences(const EncoderSpec& spec) {
  for (size_t l = 0; l < spec.layers.size(); ++l) {
    const LayerSpec& layer = spec.layers[l];
    const bool rotary = layer.rotary == kNone || layer.rotary < spec.rotaries.size();
    if (rotary && (layer.same_as == kNone || layer.same_as < l)) continue;
    return Unsupported(spec.architecture + ": layer " + std::to_string(l) +
                       " refers to what is not there; check the model's config");
  }
  return {};
}

// A convolution looks as far to one side as to the other.
Status CheckConvolution(const EncoderSpec& spec) {
  const LinearRef& linear = spec.convolution.linear;
  if (!linear.weight.present()) return {};
  const bool post = spec.norm_place == NormPlace::kPost;
  if (post && linear.taps % 2 == 1 && linear.taps <= kMostTaps) return {};
  return Unsupported(spec.architecture + ": a convolution over " + std::to_string(linear.taps) +
                     " tokens" + (post ? "" : " in a pre-norm model") +
                     " cannot be; check the model's config");
}

// What a layer behind a bottleneck cannot have.
bool IsAdorned(const LayerSpec& layer) {
  return layer.global_query.weight.present() || layer.experts.count != 0 ||
         layer.second_attention_norm.gamma.present() || layer.query_norm.gamma.present();
}

// The first part of every layer leads into the bottleneck, the last one out of it.
Status CheckParts(const EncoderSpec& spec) {
  const auto wrong = [&](const std::string& what) {
    return Unsupported(spec.architecture + ": " + what + " cannot be; check the model's config");
  };
  const bool narrow = spec.bottleneck != 0, post = spec.norm_place == NormPlace::kPost;
  for (size_t l = 0; l < spec.layers.size(); ++l) {
    const LayerSpec& layer = spec.layers[l];
    const bool first = !layer.continues;
    const bool last = l + 1 == spec.layers.size() || !spec.layers[l + 1].continues;
    const bool plain =
        post && !spec.convolution.linear.weight.present() && spec.relative_positions.span == 0;
    if ((l == 0 && !first) || (!plain && (!first || narrow))) return wrong("layers in such parts");
    const bool fits = layer.narrow.weight.present() == (narrow && first) &&
                      layer.widen.weight.present() == (narrow && last) &&
                      (narrow || !layer.narrow_query.weight.present()) &&
                      !(narrow && IsAdorned(layer));
    if (!fits) return wrong("a bottleneck like that of layer " + std::to_string(l));
  }
  const EmbeddingSpec& words = spec.embeddings;
  const bool plain = words.position_kind != PositionKind::kNone && words.word_scale == 1.0f &&
                     words.projection.weight.present() && post;
  return (words.projects_words && !plain) || (words.trigrams && !words.projects_words)
             ? wrong("a projection of words like this")
             : Status();
}

// Norms beyond the two of every layer are root mean square ones, but for those over whole rows.
Status CheckNorms(const EncoderSpec& spec) {
  const bool rms = spec.norm_kind == NormKind::kRmsNorm;
  const bool pre = spec.norm_place == NormPlace::kPre;
  for (const LayerSpec& layer : spec.layers) {
    const bool query = layer.query_norm.gamma.present(), key = layer.key_norm.gamma.present();
    const bool outputs =
        layer.attention_output_norm.gamma.present() || layer.ffn_output_norm.gamma.present();
    const bool second = layer.second_attention_norm.gamma.present();
    const bool heads = rms || !query || spec.head_norms == HeadNorms::kAllHeads;
    if (query == key && heads && ((rms && pre) || !outputs) && !(second && pre)) continue;
    return Unsupported(spec.architecture + ": norms of " + (outputs ? "outputs" : "heads") +
                       " of this kind cannot be; check the model's config");
  }
  return {};
}

// Experts are as many as there are matrices for them, and have no gates or biases of their own.
// Every layer that has some chooses as many: rows of all layers share the places for what they
// give.
Status CheckExperts(const EncoderSpec& spec) {
  size_t chosen = 0;
  for (const LayerSpec& layer : spec.layers) {
    const ExpertsSpec& experts = layer.experts;
    if (experts.count == 0 && experts.chosen == 0) continue;
    if (chosen == 0) chosen = experts.chosen;
    const bool sizes = experts.count <= kMostExperts && experts.chosen > 0 &&
                       experts.chosen <= experts.count && experts.chosen == chosen &&
                       layer.ffn_up.stack == experts.count && layer.ffn_down.stack == experts.count;
    const bool plain = !layer.ffn_gate.weight.present() && !layer.ffn_up.bias.present() &&
                       !layer.ffn_down.bias.present() && !layer.ffn_output_norm.gamma.present();
    if (sizes && plain) continue;
    return Unsupported(spec.architecture + ": " + std::to_string(experts.chosen) + " of " +
                       std::to_string(experts.count) + " experts" +
                       (sizes ? " with gates or biases" : "") +
                       " cannot be; check the model's config");
  }
  return {};
}

Status CheckSizes(const EncoderSpec& spec) {
  const EmbeddingSpec& embeddings = spec.embeddings;
  struct Named {
    const char* name;
    size_t value;
  };
  const Named sizes[] = {{"hidden size", spec.hidden},
                         {"bottleneck size", spec.layer_columns()},
                         {"number of heads", spec.heads},
                         {"head size", spec.head_dim},
                         {"intermediate size", spec.intermediate},
                         {"vocabulary size", embeddings.vocab_size},
                         {"embedding size", embeddings.size},
                         {"number of layers", spec.layers.size()}};
  for (const Named& size : sizes) {
    if (size.value == 0 || size.value > kLargestSize) {
      return Unsupported(spec.architecture + ": " + size.name + " of " +
                         std::to_string(size.value) + " cannot be; check the model's config");
    }
  }
  if (!embeddings.projection.weight.present() && embeddings.size != spec.hidden) {
    return Unsupported(spec.architecture +
                       ": embedding size differs from hidden size without a projection; check the "
                       "model's config");
  }
  if (spec.kv_heads != 0 && spec.heads % spec.kv_heads != 0) {
    return Unsupported(spec.architecture + ": " + std::to_string(spec.heads) +
                       " heads cannot share " + std::to_string(spec.kv_heads) +
                       " of keys and values; check the model's config");
  }
  return {};
}

Status CheckPositionTable(const EncoderSpec& spec) {
  const EmbeddingSpec& embeddings = spec.embeddings;
  if (embeddings.position_kind == PositionKind::kNone) return {};
  const size_t limit =
      embeddings.position_kind == PositionKind::kLearned ? kLargestSize : kLongestComputedTable;
  const int64_t positions = static_cast<int64_t>(embeddings.max_positions);
  if (embeddings.max_positions == 0 || embeddings.max_positions > limit ||
      embeddings.position_offset >= embeddings.max_positions ||
      embeddings.position_skips_id >= positions) {
    return Unsupported(spec.architecture + ": position table of " +
                       std::to_string(embeddings.max_positions) + " rows from " +
                       std::to_string(embeddings.position_offset) +
                       " on cannot be; check the model's config");
  }
  return {};
}

}  // namespace

Status CheckSpec(const EncoderSpec& spec) {
  POZOR_RETURN_IF_ERROR(CheckSizes(spec));
  POZOR_RETURN_IF_ERROR(CheckDistances(spec));
  POZOR_RETURN_IF_ERROR(CheckReferences(spec));
  POZOR_RETURN_IF_ERROR(CheckNorms(spec));
  POZOR_RETURN_IF_ERROR(CheckRelativePositions(spec));
  POZOR_RETURN_IF_ERROR(CheckConvolution(spec));
  POZOR_RETURN_IF_ERROR(CheckExperts(spec));
  POZOR_RETURN_IF_ERROR(CheckParts(spec));
  return CheckPositionTable(spec);
}

}  // namespace pozor
