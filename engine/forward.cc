#include "engine/forward.h"

#include <algorithm>

#include "kernels/attention.h"
#include "kernels/attention_s8.h"
#include "kernels/check.h"
#include "kernels/embed.h"
#include "kernels/norm.h"

namespace pozor {
namespace {

// Row stride of a buffer in floats. Rows a multiple of 4 KiB apart would meet in one cache set.
size_t RowStride(size_t cols) {
  const size_t stride = RoundUp(cols, kPanelColumns);
  return stride % 1024 == 0 ? stride + kPanelColumns : stride;
}

Range Clip(Range range, size_t size) { return {range.begin, std::min(range.end, size)}; }

template <class T>
MatView<T> Part(MatView<T> x, Range rows) {
  return {x.Row(rows.begin), rows.end - rows.begin, x.cols, x.stride};
}

MatView<const float> Const(MatView<float> x) { return {x.data, x.rows, x.cols, x.stride}; }

// The layout of a pass's workspace, in floats. Both the size and the pointers come from here.
struct Layout {
  size_t positions, embedded, hidden, windows, normed, narrow, narrow_query, qkv, global_qkv,
      context, up, gate, scratch;
  size_t choices, logits, slot_rows, slot_bytes;        // experts
  size_t input_bytes, context_bytes, up_bytes, scales;  // int8
  size_t unit_stride;
  size_t attention_each, scratch_each;

  Layout(const Encoder::Impl& model, size_t tokens, size_t longest, size_t workers,
         bool globals = false) {
    const EncoderSpec& spec = model.spec;
    const auto rows = [tokens](size_t cols) { return RoundUp(tokens * RowStride(cols), 16); };
    const bool pre = spec.norm_place == NormPlace::kPre;
    positions = RoundUp(tokens, 16);
    embedded = model.projection.present() ? rows(spec.embeddings.projection_inputs()) : 0;
    hidden = rows(spec.hidden);
    const size_t beside = spec.convolution.linear.taps / 2;  // as if each token were a text
    windows = model.convolution.present()
                  ? RoundUp((tokens + (tokens + 1) * beside) * spec.hidden, 16)
                  : 0;
    const bool second = spec.layers.front().second_attention_norm.gamma.present();
    normed = pre || second ? rows(spec.hidden) : 0;
    narrow = rows(spec.bottleneck);
    narrow_query = model.layers.front().narrow_query.present() ? narrow : 0;
    unit_stride = tokens * model.head_stride + 16;
    qkv = model.head_units() * unit_stride;
    global_qkv = globals ? qkv : 0;
    context = rows(model.attention_columns());
    const size_t chosen = model.chosen_experts(), slots = tokens * std::max<size_t>(chosen, 1);
    up = RoundUp(slots * RowStride(spec.intermediate), 16);
    gate = model.gated() ? rows(spec.intermediate) : 0;
    choices = RoundUp(tokens * chosen, 16);  // three of these
    logits = chosen == 0 ? 0 : rows(kMostExperts);
    slot_rows = chosen == 0 ? 0 : RoundUp(slots * RowStride(spec.hidden), 16);
    const bool int8 = model.has_int8();
    attention_each = AttentionScratchFloats(longest, spec.head_dim);
    if (int8) {
      attention_each = std::max(attention_each, AttentionS8ScratchFloats(longest, spec.head_dim));
    }
    attention_each = RoundUp(attention_each, 16);
    const size_t global_rows = globals ? model.head_stride : 0;
    scratch_each = attention_each + 2 * longest * (model.position_stride() + global_rows);
    scratch = workers * scratch_each;
    const auto bytes = [int8](size_t count, size_t cols) {
      return int8 ? count * QuantizedStride(cols) / sizeof(float) : 0;
    };
    input_bytes = bytes(tokens, spec.layer_columns());
    context_bytes = bytes(tokens, model.attention_columns());
    up_bytes = bytes(slots, spec.intermediate);
    slot_bytes = bytes(chosen == 0 ? 0 : slots, spec.hidden);
    scales = int8 ? RoundUp(slots * 2 * sizeof(RowScale) / sizeof(float), 16) : 0;  // of one
  }

  size_t TotalFloats(size_t workers) const {
    const size_t attention_and_ffn =
        workers == 1 ? std::max(qkv + context, up + gate) : 2 * qkv + context + up + gate;
    const size_t global = workers == 1 ? global_qkv : 2 * global_qkv;
    const size_t quantized = input_bytes + context_bytes + up_bytes + slot_bytes + 5 * scales;
    const size_t experts = 3 * choices + logits + slot_rows;
    return positions + embedded + hidden + windows + normed + narrow + narrow_query +
           attention_and_ffn + global + scratch + quantized + experts;
  }
};

uint64_t Flops(const GemmArgs& args) {
  const size_t columns = std::min(args.panel_end * kPanelColumns, args.b->n) -
                         std::min(args.panel_begin * kPanelColumns, args.b->n);
  return 2 * uint64_t{args.m} * columns * args.b->k;
}

size_t LongestText(const RaggedBatch& batch) {
  size_t longest = 0;
  for (size_t i = 0; i < batch.texts(); ++i) longest = std::max(longest, batch.length(i));
  return longest;
}

}  // namespace

uint64_t Encoder::Impl::MultiplyAdds(size_t tokens) const {
  uint64_t each = 0;
  for (size_t l = 0; l < layers.size(); ++l) {
    const LayerWeights& layer = layers[l];
    for (const Linear* linear :
         {&layer.qkv, &layer.value, &layer.attention_output, &layer.ffn_gate, &layer.ffn_up,
          &layer.ffn_down, &layer.narrow, &layer.narrow_query, &layer.widen}) {
      each += uint64_t{linear->in()} * linear->out();
    }
    each += uint64_t{2} * spec.layers[l].experts.chosen * spec.hidden * spec.intermediate;
  }
  return tokens * each;
}

size_t ForwardPass::Bytes(const Encoder::Impl& model, size_t tokens, size_t longest_text,
                          size_t workers) {
  return Layout(model, tokens, longest_text, workers).TotalFloats(workers) * sizeof(float);
}

ForwardPass::ForwardPass(const Encoder::Impl& model, const RaggedBatch& batch, Workspace& workspace,
                         Profile* profile, size_t workers)
    : model_(model),
      batch_(batch),
      rows_(batch.tokens()),
      profile_(profile),
      shared_(workers == 1) {
  const EncoderSpec& spec = model.spec;
  const size_t rows = batch.tokens();
  ListGlobals();
  const Layout layout(model, rows, LongestText(batch), workers, !global_keys_.empty());
  workspace.Reset(layout.TotalFloats(workers) * sizeof(float));
  const auto matrix = [rows](float* data, size_t cols) {
    return MatView<float>{data, rows, cols, RowStride(cols)};
  };
  const size_t each = std::max<size_t>(model.chosen_experts(), 1);
  const auto of_slots = [&](float* data, size_t cols) {
    return MatView<float>{data, rows * each, cols, RowStride(cols)};
  };
  const auto place_up = [&](float* data) {
    slot_up_ = of_slots(data, spec.intermediate);
    up_ = {data, rows, spec.intermediate, each * slot_up_.stride};
  };
  int32_t* positions = reinterpret_cast<int32_t*>(workspace.Take(layout.positions));
  CountPositions(positions);
  positions_ = positions;
  embedded_ = matrix(workspace.Take(layout.embedded), spec.embeddings.projection_inputs());
  hidden_ = matrix(workspace.Take(layout.hidden), spec.hidden);
  windows_ = workspace.Take(layout.windows);
  PlaceWindows();
  normed_ = matrix(workspace.Take(layout.normed), spec.hidden);
  narrow_ = matrix(workspace.Take(layout.narrow), spec.bottleneck);
  narrow_query_ = matrix(workspace.Take(layout.narrow_query), spec.bottleneck);
  scratch_ = workspace.Take(layout.scratch);
  scratch_floats_ = layout.scratch_each;
  attention_floats_ = layout.attention_each;
  unit_stride_ = layout.unit_stride;
  global_qkv_[0] = workspace.Take(layout.global_qkv);
  global_qkv_[1] = shared_ ? global_qkv_[0] : workspace.Take(layout.global_qkv);
  const auto bytes = [&](size_t floats, size_t cols, size_t groups) {
    auto* values = reinterpret_cast<uint8_t*>(workspace.Take(floats));
    auto* scales = reinterpret_cast<RowScale*>(workspace.Take(layout.scales));
    return QuantizedRows{values, QuantizedStride(cols), scales, groups};
  };
  input_bytes_ = bytes(layout.input_bytes, spec.layer_columns(), 1);
  context_bytes_ = bytes(layout.context_bytes, model.attention_columns(), 1);
  slot_bytes_ = bytes(layout.slot_bytes, spec.hidden, 1);
  choices_ = reinterpret_cast<int32_t*>(workspace.Take(layout.choices));
  slots_ = reinterpret_cast<int32_t*>(workspace.Take(layout.choices));
  shares_ = workspace.Take(layout.choices);
  logits_ = matrix(workspace.Take(layout.logits), kMostExperts);
  slot_rows_ = of_slots(workspace.Take(layout.slot_rows), spec.hidden);
  slot_up_bytes_ =
      bytes(layout.up_bytes, spec.intermediate, DownSplit(spec.intermediate) == 0 ? 1 : 2);
  up_bytes_ = slot_up_bytes_;
  up_bytes_.stride *= each;
  up_bytes_.scales = reinterpret_cast<RowScale*>(workspace.Take(layout.scales));
  if (shared_) {
    float* region = workspace.Take(std::max(layout.qkv + layout.context, layout.up + layout.gate));
    qkv_[0] = qkv_[1] = region;
    context_ = matrix(region + layout.qkv, model.attention_columns());
    place_up(region);
    gate_ = matrix(region + layout.up, spec.intermediate);
  } else {
    qkv_[0] = workspace.Take(layout.qkv);
    qkv_[1] = workspace.Take(layout.qkv);
    context_ = matrix(workspace.Take(layout.context), model.attention_columns());
    place_up(workspace.Take(layout.up));
    gate_ = matrix(workspace.Take(layout.gate), spec.intermediate);
  }
}

void ForwardPass::PlaceWindows() {
  if (!model_.convolution.present()) return;
  const size_t hidden = model_.spec.hidden, beside = model_.spec.convolution.linear.taps / 2;
  size_t row = 0;
  for (size_t text = 0; text < batch_.texts(); ++text) {
    window_starts_.push_back(row);
    if (batch_.length(text) == 0) continue;
    std::fill_n(windows_ + row * hidden, beside * hidden, 0.0f);
    row += beside + batch_.length(text);
  }
  std::fill_n(windows_ + row * hidden, beside * hidden, 0.0f);
}

// Where the rows around a token of a text begin.
float* ForwardPass::WindowRow(size_t text, size_t token) const {
  return windows_ + (window_starts_[text] + token) * model_.spec.hidden;
}

// Copies what the first layer is about to change.
void ForwardPass::KeepEmbedded(Range rows) {
  if (!model_.convolution.present()) return;
  const size_t beside = model_.spec.convolution.linear.taps / 2;
  for (size_t text = 0; text < batch_.texts(); ++text) {
    const auto first = static_cast<size_t>(batch_.starts[text]);
    const size_t end = std::min(rows.end, first + batch_.length(text));
    for (size_t row = std::max(rows.begin, first); row < end; ++row) {
      std::copy_n(hidden_.Row(row), hidden_.cols, WindowRow(text, row - first + beside));
    }
  }
}

void ForwardPass::CountPositions(int32_t* positions) const {
  const EmbeddingSpec& embeddings = model_.spec.embeddings;
  for (size_t text = 0; text < batch_.texts(); ++text) {
    int32_t next = static_cast<int32_t>(embeddings.position_offset);
    for (int32_t t = batch_.starts[text]; t < batch_.starts[text + 1]; ++t) {
      const bool skipped =
          embeddings.position_skips_id >= 0 && batch_.ids[t] == embeddings.position_skips_id;
      positions[t] = skipped ? embeddings.position_skips_id : next++;
    }
  }
}

void ForwardPass::Embed(Range rows) {
  const ZoneTimer timer(profile_, Zone::kEmbed);
  rows = Clip(rows, rows_);
  const EmbeddingSpec& embeddings = model_.spec.embeddings;
  if (embeddings.projects_words) return EmbedWords(rows);
  const MatView<float> sum = Part(model_.projection.present() ? embedded_ : hidden_, rows);
  EmbedArgs args;
  args.word = model_.word;
  args.position = model_.position;
  args.type = model_.type;
  args.word_scale = embeddings.word_scale;
  args.ids = batch_.ids.data() + rows.begin;
  args.positions = positions_ + rows.begin;
  args.types = batch_.types.empty() ? nullptr : batch_.types.data() + rows.begin;
  args.tokens = sum.rows;
  args.cols = sum.cols;
  args.out = sum.data;
  args.out_stride = sum.stride;
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
  EmbedArgs args;
  args.word = model_.position;
  args.ids = positions_ + rows.begin;
  args.type = model_.type;
  args.types = batch_.types.empty() ? nullptr : batch_.types.data() + rows.begin;
  args.tokens = hidden.rows;
  args.cols = hidden.cols;
  args.out = hidden.data;
  args.out_stride = hidden.stride;
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

// h += x W + b, of the wide rows.
void ForwardPass::AddToHidden(const Linear& linear, MatView<float> x, Range rows) {
  GemmArgs args = Product(linear, {Const(x), {}}, rows, {});
  args.epilogue.c = hidden_.Row(rows.begin);
  args.epilogue.c_stride = hidden_.stride;
  args.epilogue.residual = args.epilogue.c;
  args.epilogue.residual_stride = hidden_.stride;
  Gemm(args);
}

NormArgs ForwardPass::NormArguments(const NormWeights& norm, MatView<float> x,
                                    MatView<float> out) const {
  NormArgs args;
  args.x = x.data;
  args.x_stride = x.stride;
  args.gamma = norm.gamma;
  args.beta = norm.beta;
  args.epsilon = model_.spec.norm_epsilon;
  args.rows = x.rows;
  args.cols = x.cols;
  args.out = out.data;
  args.out_stride = out.stride;
  return args;
}

void ForwardPass::NormRows(const NormWeights& norm, MatView<float> x, MatView<float> out) {
  if (norm.gamma == nullptr) return;
  const NormArgs args = NormArguments(norm, x, out);
  switch (model_.spec.norm_kind) {
    case NormKind::kLayerNorm:
      return LayerNorm(args);
    case NormKind::kRmsNorm:
      return RmsNorm(args);
    case NormKind::kAffine:
      return AffineNorm(args);
  }
}

// sum += norm(x); x may change.
void ForwardPass::AddNormedRows(const NormWeights& norm, MatView<float> x, MatView<float> sum) {
  if (model_.spec.norm_kind == NormKind::kLayerNorm) {
    NormRows(norm, x, x);
    for (size_t r = 0; r < x.rows; ++r) {
      for (size_t c = 0; c < x.cols; ++c) sum.Row(r)[c] += x.Row(r)[c];
    }
    return;
  }
  NormArgs args;
  args.x = x.data;
  args.x_stride = x.stride;
  args.gamma = norm.gamma;
  args.shortcut = sum.data;
  args.shortcut_stride = sum.stride;
  args.epsilon = model_.spec.norm_epsilon;
  args.rows = x.rows;
  args.cols = x.cols;
  args.out = sum.data;
  args.out_stride = sum.stride;
  RmsNorm(args);
}

const NormWeights& ForwardPass::NormOf(size_t l, Sublayer sublayer) const {
  const LayerWeights& layer = model_.layers[l];
  return sublayer == Sublayer::kAttention ? layer.attention_norm : layer.ffn_norm;
}

const NormWeights& ForwardPass::OutputNormOf(size_t l, Sublayer sublayer) const {
  const LayerWeights& layer = model_.layers[l];
  return sublayer == Sublayer::kAttention ? layer.attention_output_norm : layer.ffn_output_norm;
}

MatView<const float> ForwardPass::Input(size_t l, Sublayer sublayer) const {
  const bool normed =
      model_.spec.norm_place == NormPlace::kPre && NormOf(l, sublayer).gamma != nullptr;
  if (normed) return Const(normed_);
  const bool own = sublayer == Sublayer::kAttention && model_.layers[l].narrow_query.present();
  return Const(own ? narrow_query_ : Stream());
}

void ForwardPass::Narrow(size_t l, Range rows) {
  const LayerWeights& layer = model_.layers[l];
  const ZoneTimer timer(profile_, Zone::kQkv);
  const MatView<const float> hidden = Const(Part(hidden_, rows));
  const auto make = [&](const Linear& linear, const NormWeights& norm, MatView<float> out) {
    if (!linear.present()) return;
    linear.Apply(hidden, out);
    NormRows(norm, out, out);
  };
  make(layer.narrow, layer.narrow_norm, Part(narrow_, rows));
  make(layer.narrow_query, layer.narrow_query_norm, Part(narrow_query_, rows));
}

void ForwardPass::Widen(size_t l, Range rows) {
  AddToHidden(model_.layers[l].widen, narrow_, rows);
  NormRows(model_.layers[l].widen_norm, Part(hidden_, rows), Part(hidden_, rows));
}

void ForwardPass::PreNorm(size_t l, Sublayer sublayer, Range rows) {
  rows = Clip(rows, rows_);
  const bool narrows = sublayer == Sublayer::kAttention && model_.layers[l].narrow.present();
  if (narrows) return Narrow(l, rows);
  if (model_.spec.norm_place != NormPlace::kPre) return;
  const ZoneTimer timer(profile_, Zone::kNorm);
  NormRowsInto(l, sublayer, NormOf(l, sublayer), Part(hidden_, rows), Part(normed_, rows),
               rows.begin);
}

void ForwardPass::PostNorm(size_t l, Sublayer sublayer, Range rows) {
  const bool pre = model_.spec.norm_place == NormPlace::kPre;
  if (pre && OutputNormOf(l, sublayer).gamma == nullptr) return;
  const ZoneTimer timer(profile_, Zone::kNorm);
  rows = Clip(rows, rows_);
  if (pre) {
    AddNormedRows(OutputNormOf(l, sublayer), Part(normed_, rows), Part(hidden_, rows));
    return;
  }
  const NormWeights& second = model_.layers[l].second_attention_norm;
  const bool ends_layer = sublayer == Sublayer::kFeedForward;
  if (!ends_layer && second.gamma != nullptr) {
    AddNormedRows(NormOf(l, sublayer), Part(normed_, rows), Part(hidden_, rows));
    NormRowsInto(l, Sublayer::kFeedForward, second, Part(hidden_, rows), Part(hidden_, rows),
                 rows.begin);
  } else if (l == 0 && ends_layer && model_.convolution.present()) {
    NormRows(NormOf(l, sublayer), Part(hidden_, rows), Part(hidden_, rows));
  } else {
    const MatView<float> x = Part(Stream(), rows);
    const bool continued = ends_layer && model_.Continues(l + 1);
    NormRowsInto(ends_layer ? l + 1 : l,
                 ends_layer && !continued ? Sublayer::kAttention : Sublayer::kFeedForward,
                 NormOf(l, sublayer), x, x, rows.begin);
    if (ends_layer && model_.layers[l].widen.present()) Widen(l, rows);
  }
}

void ForwardPass::Convolve(size_t l, Range rows) {
  if (l != 0 || !model_.convolution.present()) return;
  const ZoneTimer timer(profile_, Zone::kConvolution);
  rows = Clip(rows, rows_);
  const bool only_first = rows_ != batch_.tokens();  // KeepFirstRows: a row a text
  size_t kept = 0;
  for (size_t text = 0; text < batch_.texts(); ++text) {
    const size_t length = batch_.length(text);
    if (length == 0) continue;
    const size_t first = only_first ? kept++ : static_cast<size_t>(batch_.starts[text]);
    const size_t begin = std::max(rows.begin, first);
    const size_t end = std::min(rows.end, first + (only_first ? 1 : length));
    if (begin >= end) continue;
    const MatView<const float> windows = {WindowRow(text, begin - first), end - begin,
                                          model_.convolution.in(), model_.spec.hidden};
    GemmArgs args = model_.convolution.Arguments(windows);
    args.epilogue.c = hidden_.Row(begin);
    args.epilogue.c_stride = hidden_.stride;
    args.epilogue.residual = args.epilogue.c;
    args.epilogue.residual_stride = hidden_.stride;
    Gemm(args);
  }
  NormRowsInto(1, Sublayer::kAttention, model_.convolution_norm, Part(hidden_, rows),
               Part(hidden_, rows), rows.begin);
}

void ForwardPass::FinalNorm(Range rows) {
  const ZoneTimer timer(profile_, Zone::kNorm);
  rows = Clip(rows, rows_);
  NormRows(model_.final_norm, Part(hidden_, rows), Part(hidden_, rows));
}

void ForwardPass::KeepFirstRows() {
  size_t kept = 0;
  for (size_t text = 0; text < batch_.texts(); ++text) {
    if (batch_.length(text) == 0) continue;
    const auto first = static_cast<size_t>(batch_.starts[text]);
    if (first != kept) {
      std::copy_n(hidden_.Row(first), hidden_.cols, hidden_.Row(kept));
      std::copy_n(context_.Row(first), context_.cols, context_.Row(kept));
      std::copy_n(narrow_.Row(first), narrow_.cols, narrow_.Row(kept));
    }
    ++kept;
  }
  rows_ = kept;
}

float* ForwardPass::HeadUnit(size_t l, size_t unit) const {
  return qkv_[model_.numbers[l] % 2] + unit * unit_stride_;
}

GemmArgs ForwardPass::Product(const Linear& linear, const ProductInput& x, Range rows,
                              Range panels) const {
  rows = Clip(rows, rows_);
  panels = Clip(panels, linear.panels());
  GemmArgs args = linear.is_int8()
                      ? linear.Arguments(x.bytes.From(rows.begin), rows.end - rows.begin)
                      : linear.Arguments(Part(x.rows, rows));
  args.panel_begin = panels.begin;
  args.panel_end = panels.end;
  return args;
}

// Those heads of the product whose panels, counted from unit 0, are in `panels`. Returns the work.
uint64_t ForwardPass::ProjectHeads(const Linear& linear, const ProductInput& x,
                                   const HeadUnits& heads, Range rows, Range panels) {
  const size_t before = heads.first * model_.head_stride / kPanelColumns;
  panels = Clip(panels, before + linear.panels());
  panels.begin = std::max(panels.begin, before);
  if (panels.begin >= panels.end) return 0;
  GemmArgs args = Product(linear, x, rows, {panels.begin - before, panels.end - before});
  args.epilogue.scale = heads.query_scale;
  args.epilogue.scaled_columns = heads.first == 0 ? model_.spec.heads * model_.head_stride : 0;
  args.epilogue.c = heads.units + heads.first * unit_stride_ + rows.begin * model_.head_stride;
  args.epilogue.c_stride = model_.head_stride;
  args.epilogue.split_columns = model_.head_stride;
  args.epilogue.unit_stride = unit_stride_;
  Gemm(args);
  return Flops(args);
}

void ForwardPass::Qkv(size_t l, Range rows, Range panels) {
  const LayerWeights& layer = model_.layers[l];
  const ProductInput x = InputOf(l, Sublayer::kAttention);
  ZoneTimer timer(profile_, Zone::kQkv);
  const float scale = layer.query_norm.gamma == nullptr ? model_.query_scale : 1.0f;
  timer.AddFlops(ProjectHeads(layer.qkv, x, {HeadUnit(l, 0), 0, scale}, rows, panels));
  if (layer.value.present()) {
    const HeadUnits values = {HeadUnit(l, 0), model_.spec.heads + model_.kv_heads()};
    timer.AddFlops(ProjectHeads(layer.value, {Const(hidden_), {}}, values, rows, panels));
  }
  if (!global_keys_.empty()) {
    const HeadUnits global = {global_qkv_[model_.numbers[l] % 2], 0, model_.query_scale};
    ProjectHeads(layer.global_qkv, x, global, rows, panels);
  }
  if (model_.norms_whole_rows()) return;  // FinishQkv does it
  NormHeads(l, rows, panels);
  Rotate(l, rows, panels);
}

AttentionArgs ForwardPass::AttentionOf(size_t l, size_t text, size_t head) const {
  const EncoderSpec& spec = model_.spec;
  const size_t first = static_cast<size_t>(batch_.starts[text]) * model_.head_stride;
  AttentionArgs args;
  args.q = HeadUnit(l, head) + first;
  const size_t kv_heads = model_.kv_heads(), kv_head = head / (spec.heads / kv_heads);
  args.k = HeadUnit(l, spec.heads + kv_head) + first;
  args.v = HeadUnit(l, spec.heads + kv_heads + kv_head) + first;
  args.head_dim = spec.head_dim;
  args.head_stride = model_.head_stride;
  args.tokens = batch_.length(text);
  args.query_end = args.tokens;
  args.window = spec.layers[l].window;
  args.causal = spec.causal;
  if (model_.score_bias != nullptr) {
    const size_t longest = model_.max_tokens();
    args.relative_bias = model_.score_bias + head * (2 * longest - 1) + longest - 1;
  }
  return args;
}

void ForwardPass::Attend(size_t l, Range rows, Range heads, size_t worker) {
  rows = Clip(rows, rows_);
  heads = Clip(heads, model_.spec.heads);
  ZoneTimer timer(profile_, Zone::kAttention);
  const auto attend = model_.IsInt8(l, ProductKind::kAttention) ? AttentionS8 : Attention;
  for (size_t text = 0; text < batch_.texts(); ++text) {
    const size_t first = static_cast<size_t>(batch_.starts[text]);
    const size_t begin = std::max(rows.begin, first);
    const size_t end = std::min(rows.end, first + batch_.length(text));
    if (begin >= end) continue;
    for (size_t head = heads.begin; head < heads.end; ++head) {
      AttentionArgs args = AttentionOf(l, text, head);
      args.query_begin = begin - first;
      args.query_end = end - first;
      args.out = context_.Row(first) + head * args.head_dim;
      args.out_stride = context_.stride;
      float* scratch = scratch_ + worker * scratch_floats_;
      ScorePositions(l, head, &args, scratch + attention_floats_);
      ShowGlobals(text, &args, scratch + attention_floats_);
      attend(args, scratch);
      for (const int32_t query : GlobalQueries(text, args)) {
        Attention(GlobalAttentionOf(l, text, head, query, args), scratch);
      }
      timer.AddFlops(4 * (end - begin) * args.tokens * args.head_dim);
    }
  }
}

void ForwardPass::AddProduct(const Linear& linear, Sum sum, const ProductInput& x, Range rows,
                             Range panels) {
  GemmArgs args = Product(linear, x, rows, panels);
  const MatView<float> out = sum == Sum::kHidden ? Stream() : normed_;
  args.epilogue.c = out.Row(rows.begin);
  args.epilogue.c_stride = out.stride;
  if (sum != Sum::kAside) {
    args.epilogue.residual = Stream().Row(rows.begin);
    args.epilogue.residual_stride = Stream().stride;
  }
  Gemm(args);
}

void ForwardPass::AttentionOutput(size_t l, Range rows, Range panels) {
  const Linear& linear = model_.layers[l].attention_output;
  const ProductInput x = {Const(context_), context_bytes_};
  const ZoneTimer timer(profile_, Zone::kAttentionOutput, Flops(Product(linear, x, rows, panels)));
  const bool second = model_.layers[l].second_attention_norm.gamma != nullptr;
  const bool normed = OutputNormOf(l, Sublayer::kAttention).gamma != nullptr;
  const Sum sum = second ? Sum::kAsideWithHidden : normed ? Sum::kAside : Sum::kHidden;
  AddProduct(linear, sum, x, rows, panels);
}

void ForwardPass::FeedForwardUp(size_t l, Range rows, Range panels) {
  const LayerWeights& layer = model_.layers[l];
  if (layer.experts.present()) return ExpertsUp(l, rows, panels);
  const ProductInput x = InputOf(l, Sublayer::kFeedForward);
  GemmArgs args = Product(layer.ffn_up, x, rows, panels);
  const bool gated = layer.ffn_gate.present();
  const ZoneTimer timer(profile_, Zone::kFeedForwardUp, Flops(args) * (gated ? 2 : 1));
  args.epilogue.c = up_.Row(rows.begin);
  args.epilogue.c_stride = up_.stride;
  Gemm(args);
  if (!gated) return;

  args = Product(layer.ffn_gate, x, rows, panels);
  args.epilogue.c = gate_.Row(rows.begin);
  args.epilogue.c_stride = gate_.stride;
  Gemm(args);
  const size_t first = args.panel_begin * kPanelColumns;
  const size_t columns = std::min(args.panel_end * kPanelColumns, up_.cols) - first;
  for (size_t row = rows.begin; row < rows.begin + args.m; ++row) {
    float* up = up_.Row(row) + first;
    ActivateGated(model_.spec.activation, gate_.Row(row) + first, up, up, columns);
  }
}

void ForwardPass::FeedForwardDown(size_t l, Range rows, Range panels) {
  if (model_.layers[l].experts.present()) return ExpertsDown(l, rows, panels);
  const Linear& linear = model_.layers[l].ffn_down;
  const ProductInput x = {Const(up_), up_bytes_};
  const ZoneTimer timer(profile_, Zone::kFeedForwardDown, Flops(Product(linear, x, rows, panels)));
  const bool normed = OutputNormOf(l, Sublayer::kFeedForward).gamma != nullptr;
  AddProduct(linear, normed ? Sum::kAside : Sum::kHidden, x, rows, panels);
}

void ForwardPass::EmitInput(size_t l, ProductKind kind, const Sinks& sinks) const {
  if (!sinks.product_inputs) return;
  const Range all = {0, rows_};
  if (kind == ProductKind::kDown && model_.layers[l].experts.present()) {
    const Slots slots = SlotsOf(l, all);
    for (size_t e = 0; e < model_.layers[l].experts.up.size(); ++e) {
      sinks.expert_inputs(l, e, Part(Const(slot_up_), {slots.first[e], slots.first[e + 1]}));
    }
    return;
  }
  switch (kind) {
    case ProductKind::kQkv:
      return sinks.product_inputs(l, kind, Part(Input(l, Sublayer::kAttention), all));
    case ProductKind::kAttention:
      return;
    case ProductKind::kOutput:
      return sinks.product_inputs(l, kind, Part(Const(context_), all));
    case ProductKind::kUp:
      return sinks.product_inputs(l, kind, Part(Input(l, Sublayer::kFeedForward), all));
    case ProductKind::kDown:
      return sinks.product_inputs(l, kind, Part(Const(up_), all));
  }
}

void ForwardPass::EmitAttention(size_t l, const Sinks& sinks) {
  if (!sinks.attention) return;
  const size_t number = model_.numbers[l];
  const auto weigh =
      model_.IsInt8(l, ProductKind::kAttention) ? AttentionS8Weights : AttentionWeights;
  std::vector<size_t> heads;
  for (size_t head = 0; head < model_.spec.heads; ++head) {
    if (!sinks.wants_attention || sinks.wants_attention(number, head)) heads.push_back(head);
  }
  for (size_t text = 0; text < batch_.texts() && !heads.empty(); ++text) {
    const size_t tokens = batch_.length(text);
    const size_t end = std::min(sinks.query_end, tokens);
    if (sinks.query_begin >= end) continue;
    const size_t blocks = (end - sinks.query_begin + kQueryBlock - 1) / kQueryBlock;
    const size_t stride = RoundUp(tokens, kPanelColumns);
    const AlignedBuffer rows(std::min(kQueryBlock, tokens) * stride * sizeof(float));
    for (size_t i = 0; i < blocks * heads.size(); ++i) {
      const size_t block = sinks.heads_together ? i / heads.size() : i % blocks;
      const size_t head = heads[sinks.heads_together ? i % heads.size() : i / blocks];
      AttentionArgs args = AttentionOf(l, text, head);
      args.query_begin = sinks.query_begin + block * kQueryBlock;
      args.query_end = std::min(args.query_begin + kQueryBlock, end);
      ScorePositions(l, head, &args, scratch_ + attention_floats_);
      ShowGlobals(text, &args, scratch_ + attention_floats_);
      weigh(args, scratch_, rows.As<float>(), stride);
      for (const int32_t query : GlobalQueries(text, args)) {
        AttentionWeights(
            GlobalAttentionOf(l, text, head, query, args), scratch_,
            rows.As<float>() + (static_cast<size_t>(query) - args.query_begin) * stride, stride);
      }
      const MatView<const float> weights = {rows.As<float>(), args.query_end - args.query_begin,
                                            tokens, stride};
      sinks.attention({number, head, text, args.query_begin, weights});
    }
  }
}

}  // namespace pozor
