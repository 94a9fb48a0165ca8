// The memory of one forward pass: what it needs and where each of its arrays lies.
#include <algorithm>

#include "engine/forward.h"
#include "kernels/attention.h"
#include "kernels/attention_s8.h"

namespace pozor {
namespace {

// Row stride of a buffer in floats. Rows a multiple of 4 KiB apart would meet in one cache set.
size_t RowStride(size_t cols) {
  const size_t stride = RoundUp(cols, kPanelColumns);
  return stride % 1024 == 0 ? stride + kPanelColumns : stride;
}

size_t LongestText(const RaggedBatch& batch) {
  size_t longest = 0;
  for (size_t i = 0; i < batch.texts(); ++i) longest = std::max(longest, batch.length(i));
  return longest;
}

// One worker never has Q, K, V and feed-forward rows alive at once; several may.
bool SharesMemory(size_t workers) { return workers == 1; }

MatView<float> Matrix(float* data, size_t rows, size_t cols) {
  return {data, rows, cols, RowStride(cols)};
}

}  // namespace

// In floats. Both the size of the workspace and the pointers into it come from here.
struct ForwardPass::Layout {
  size_t positions, embedded, hidden, windows, normed, narrow, narrow_query;
  size_t qkv, global_qkv, context, up, gate;
  size_t scratch, scratch_each, attention_each;
  size_t unit_stride;
  size_t choices, logits, slot_rows, slot_bytes;        // experts
  size_t input_bytes, context_bytes, up_bytes, scales;  // int8; each with scales of its own

  Layout(const Encoder::Impl& model, const RaggedBatch& batch, size_t workers, bool globals)
      : Layout(model, batch.tokens(), LongestText(batch), workers, globals) {}
  Layout(const Encoder::Impl& model, size_t tokens, size_t longest, size_t workers, bool globals);

  size_t TotalFloats(size_t workers) const;

 private:
  void SetStreams(const Encoder::Impl& model, size_t tokens);
  void SetSublayers(const Encoder::Impl& model, size_t tokens, size_t slots, bool globals);
  void SetScratch(const Encoder::Impl& model, size_t longest, size_t workers, bool globals);
  void SetExperts(const Encoder::Impl& model, size_t tokens, size_t slots);
  void SetBytes(const Encoder::Impl& model, size_t tokens, size_t slots);
};

namespace {

size_t RowFloats(size_t rows, size_t cols) { return RoundUp(rows * RowStride(cols), 16); }

}  // namespace

ForwardPass::Layout::Layout(const Encoder::Impl& model, size_t tokens, size_t longest,
                            size_t workers, bool globals) {
  const size_t slots = tokens * std::max<size_t>(model.chosen_experts(), 1);
  SetStreams(model, tokens);
  SetSublayers(model, tokens, slots, globals);
  SetScratch(model, longest, workers, globals);
  SetExperts(model, tokens, slots);
  SetBytes(model, tokens, slots);
}

void ForwardPass::Layout::SetStreams(const Encoder::Impl& model, size_t tokens) {
  const EncoderSpec& spec = model.spec;
  const bool pre = spec.norm_place == NormPlace::kPre;
  const bool second = spec.layers.front().second_attention_norm.gamma.present();
  const size_t beside = spec.convolution.linear.taps / 2;  // as if each token were a text
  positions = RoundUp(tokens, 16);
  embedded =
      model.projection.present() ? RowFloats(tokens, spec.embeddings.projection_inputs()) : 0;
  hidden = RowFloats(tokens, spec.hidden);
  windows =
      model.convolution.present() ? RoundUp((tokens + (tokens + 1) * beside) * spec.hidden, 16) : 0;
  normed = pre || second ? hidden : 0;
  narrow = RowFloats(tokens, spec.bottleneck);
  narrow_query = model.layers.front().narrow_query.present() ? narrow : 0;
}

void ForwardPass::Layout::SetSublayers(const Encoder::Impl& model, size_t tokens, size_t slots,
                                       bool globals) {
  unit_stride = tokens * model.head_stride + 16;
  qkv = model.head_units() * unit_stride;
  global_qkv = globals ? qkv : 0;
  context = RowFloats(tokens, model.attention_columns());
  up = RowFloats(slots, model.spec.intermediate);
  gate = model.gated() ? RowFloats(tokens, model.spec.intermediate) : 0;
}

void ForwardPass::Layout::SetScratch(const Encoder::Impl& model, size_t longest, size_t workers,
                                     bool globals) {
  const size_t head_dim = model.spec.head_dim;
  attention_each = AttentionScratchFloats(longest, head_dim);
  if (model.has_int8()) {
    attention_each = std::max(attention_each, AttentionS8ScratchFloats(longest, head_dim));
  }
  attention_each = RoundUp(attention_each, 16);
  const size_t global_rows = globals ? model.head_stride : 0;
  scratch_each = attention_each + 2 * longest * (model.position_stride() + global_rows);
  scratch = workers * scratch_each;
}

void ForwardPass::Layout::SetExperts(const Encoder::Impl& model, size_t tokens, size_t slots) {
  const size_t chosen = model.chosen_experts();
  choices = RoundUp(tokens * chosen, 16);  // three of these
  logits = chosen == 0 ? 0 : RowFloats(tokens, kMostExperts);
  slot_rows = chosen == 0 ? 0 : RowFloats(slots, model.spec.hidden);
}

void ForwardPass::Layout::SetBytes(const Encoder::Impl& model, size_t tokens, size_t slots) {
  const bool int8 = model.has_int8();
  const auto bytes = [int8](size_t rows, size_t cols) {
    return int8 ? rows * QuantizedStride(cols) / sizeof(float) : 0;
  };
  input_bytes = bytes(tokens, model.spec.layer_columns());
  context_bytes = bytes(tokens, model.attention_columns());
  up_bytes = bytes(slots, model.spec.intermediate);
  slot_bytes = bytes(model.chosen_experts() == 0 ? 0 : slots, model.spec.hidden);
  scales = int8 ? RoundUp(slots * 2 * sizeof(RowScale) / sizeof(float), 16) : 0;
}

size_t ForwardPass::Layout::TotalFloats(size_t workers) const {
  const bool shared = SharesMemory(workers);
  const size_t streams = positions + embedded + hidden + windows + normed + narrow + narrow_query;
  const size_t sublayers =
      shared ? std::max(qkv + context, up + gate) : 2 * qkv + context + up + gate;
  const size_t global = shared ? global_qkv : 2 * global_qkv;
  const size_t experts = 3 * choices + logits + slot_rows;
  const size_t quantized = input_bytes + context_bytes + up_bytes + slot_bytes + 5 * scales;
  return streams + sublayers + global + scratch + experts + quantized;
}

size_t ForwardPass::Bytes(const Encoder::Impl& model, size_t tokens, size_t longest_text,
                          size_t workers) {
  const Layout layout(model, tokens, longest_text, workers, false);
  return layout.TotalFloats(workers) * sizeof(float);
}

ForwardPass::ForwardPass(const Encoder::Impl& model, const RaggedBatch& batch, Workspace& workspace,
                         Profile* profile, size_t workers)
    : model_(model),
      batch_(batch),
      rows_(batch.tokens()),
      profile_(profile),
      shared_(SharesMemory(workers)) {
  ListGlobals();
  const Layout layout(model, batch, workers, !global_keys_.empty());
  workspace.Reset(layout.TotalFloats(workers) * sizeof(float));
  PlaceStreams(layout, workspace);
  PlaceSublayers(layout, workspace);
  PlaceExperts(layout, workspace);
  PlaceBytes(layout, workspace);
  CountPositions();
  PlaceWindows();
}

void ForwardPass::PlaceStreams(const Layout& layout, Workspace& workspace) {
  const EncoderSpec& spec = model_.spec;
  positions_ = reinterpret_cast<int32_t*>(workspace.Take(layout.positions));
  embedded_ = Matrix(workspace.Take(layout.embedded), rows_, spec.embeddings.projection_inputs());
  hidden_ = Matrix(workspace.Take(layout.hidden), rows_, spec.hidden);
  windows_ = workspace.Take(layout.windows);
  normed_ = Matrix(workspace.Take(layout.normed), rows_, spec.hidden);
  narrow_ = Matrix(workspace.Take(layout.narrow), rows_, spec.bottleneck);
  narrow_query_ = Matrix(workspace.Take(layout.narrow_query), rows_, spec.bottleneck);
}

void ForwardPass::PlaceSublayers(const Layout& layout, Workspace& workspace) {
  scratch_ = workspace.Take(layout.scratch);
  scratch_floats_ = layout.scratch_each;
  attention_floats_ = layout.attention_each;
  unit_stride_ = layout.unit_stride;
  global_qkv_[0] = workspace.Take(layout.global_qkv);
  global_qkv_[1] = shared_ ? global_qkv_[0] : workspace.Take(layout.global_qkv);
  float *context = nullptr, *up = nullptr, *gate = nullptr;
  if (shared_) {
    up = workspace.Take(std::max(layout.qkv + layout.context, layout.up + layout.gate));
    gate = up + layout.up;
    qkv_[0] = qkv_[1] = up;
    context = up + layout.qkv;
  } else {
    qkv_[0] = workspace.Take(layout.qkv);
    qkv_[1] = workspace.Take(layout.qkv);
    context = workspace.Take(layout.context);
    up = workspace.Take(layout.up);
    gate = workspace.Take(layout.gate);
  }
  const size_t each = slots_of_row(), intermediate = model_.spec.intermediate;
  context_ = Matrix(context, rows_, model_.attention_columns());
  slot_up_ = Matrix(up, rows_ * each, intermediate);
  up_ = {up, rows_, intermediate, each * slot_up_.stride};
  gate_ = Matrix(gate, rows_, intermediate);
}

void ForwardPass::PlaceExperts(const Layout& layout, Workspace& workspace) {
  choices_ = reinterpret_cast<int32_t*>(workspace.Take(layout.choices));
  slots_ = reinterpret_cast<int32_t*>(workspace.Take(layout.choices));
  shares_ = workspace.Take(layout.choices);
  logits_ = Matrix(workspace.Take(layout.logits), rows_, kMostExperts);
  slot_rows_ = Matrix(workspace.Take(layout.slot_rows), rows_ * slots_of_row(), model_.spec.hidden);
}

void ForwardPass::PlaceBytes(const Layout& layout, Workspace& workspace) {
  const auto scales = [&] { return reinterpret_cast<RowScale*>(workspace.Take(layout.scales)); };
  const auto bytes = [&](size_t floats, size_t cols, size_t groups) {
    auto* values = reinterpret_cast<uint8_t*>(workspace.Take(floats));
    return QuantizedRows{values, QuantizedStride(cols), scales(), groups};
  };
  const size_t intermediate = model_.spec.intermediate;
  input_bytes_ = bytes(layout.input_bytes, model_.spec.layer_columns(), 1);
  context_bytes_ = bytes(layout.context_bytes, model_.attention_columns(), 1);
  slot_bytes_ = bytes(layout.slot_bytes, model_.spec.hidden, 1);
  slot_up_bytes_ = bytes(layout.up_bytes, intermediate, DownSplit(intermediate) == 0 ? 1 : 2);
  up_bytes_ = slot_up_bytes_;
  up_bytes_.stride *= slots_of_row();
  up_bytes_.scales = scales();
}

}  // namespace pozor
