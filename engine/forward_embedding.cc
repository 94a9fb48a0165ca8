// From token ids to the first rows of the encoder.
#include <algorithm>

#include "engine/forward.h"
#include "engine/forward_rows.h"
#include "kernels/embed.h"

namespace pozor {

void ForwardPass::CountPositions() {
  const EmbeddingSpec& embeddings = model_.spec.embeddings;
  for (size_t text = 0; text < batch_.texts(); ++text) {
    int32_t next = static_cast<int32_t>(embeddings.position_offset);
    for (int32_t t = batch_.starts[text]; t < batch_.starts[text + 1]; ++t) {
      const bool skipped =
          embeddings.position_skips_id >= 0 && batch_.ids[t] == embeddings.position_skips_id;
      positions_[t] = skipped ? embeddings.position_skips_id : next++;
    }
  }
}

// Types, and where the sum of the rows from `first_row` on goes.
EmbedArgs ForwardPass::EmbedArguments(MatView<float> out, size_t first_row) const {
  EmbedArgs args;
  args.type = model_.type;
  args.types = batch_.types.empty() ? nullptr : batch_.types.data() + first_row;
  args.tokens = out.rows;
  args.cols = out.cols;
  args.out = out.data;
  args.out_stride = out.stride;
  return args;
}

void ForwardPass::Embed(Range rows) {
  const ZoneTimer timer(profile_, Zone::kEmbed);
  rows = Clip(rows, rows_);
  const EmbeddingSpec& embeddings = model_.spec.embeddings;
  if (embeddings.projects_words) return EmbedWords(rows);
  const MatView<float> sum = Part(model_.projection.present() ? embedded_ : hidden_, rows);
  EmbedArgs args = EmbedArguments(sum, rows.begin);
  args.word = model_.word;
  args.word_scale = embeddings.word_scale;
  args.ids = batch_.ids.data() + rows.begin;
  args.position = model_.position;
  args.positions = positions_ + rows.begin;
  EmbedSum(args);
  const MatView<float> hidden = Part(hidden_, rows);
  const bool norms_sum = model_.norms_before_projection();
  if (norms_sum) NormRows(model_.embedding_norm, sum, sum);
  if (model_.projection.present()) model_.projection.Apply(Const(sum), hidden);
  const NormWeights none;
  const NormWeights& norm = norms_sum ? none : model_.embedding_norm;
  if (model_.spec.norm_place == NormPlace::kPost) {
    NormRowsInto(0, Sublayer::kAttention, norm, hidden, hidden, rows.begin);
  } else {
    NormRows(norm, hidden, hidden);
  }
  KeepEmbedded(rows);
}

// h = norm((position + type) + words W + b)
void ForwardPass::EmbedWords(Range rows) {
  const MatView<float> hidden = Part(hidden_, rows);
  EmbedArgs args = EmbedArguments(hidden, rows.begin);
  args.word = model_.position;
  args.ids = positions_ + rows.begin;
  EmbedSum(args);
  CopyWords(rows);
  AddToHidden(model_.projection, embedded_, rows);
  NormRowsInto(0, Sublayer::kAttention, model_.embedding_norm, hidden, hidden, rows.begin);
}

// The words that the projection reads.
void ForwardPass::CopyWords(Range rows) {
  const EmbeddingSpec& embeddings = model_.spec.embeddings;
  const auto copy = [&](float* out, int32_t token, int32_t begin, int32_t end) {
    if (token < begin || token >= end) {
      std::fill_n(out, embeddings.size, 0.0f);
    } else {
      const auto id = static_cast<size_t>(batch_.ids[static_cast<size_t>(token)]);
      std::copy_n(model_.word + id * embeddings.size, embeddings.size, out);
    }
  };
  for (size_t text = 0; text < batch_.texts(); ++text) {
    const int32_t begin = batch_.starts[text], end = batch_.starts[text + 1];
    const int32_t first = std::max(begin, static_cast<int32_t>(rows.begin));
    for (int32_t t = first; t < std::min(end, static_cast<int32_t>(rows.end)); ++t) {
      float* out = embedded_.Row(static_cast<size_t>(t));
      if (!embeddings.trigrams) copy(out, t, begin, end);
      for (int32_t i = 0; embeddings.trigrams && i < 3; ++i) {
        copy(out + static_cast<size_t>(i) * embeddings.size, t + 1 - i, begin, end);
      }
    }
  }
}

}  // namespace pozor
