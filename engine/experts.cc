// A mixture of experts: rows are sorted by expert, every expert's products run over its own rows,
// and each row adds up what its experts give in their order. So a row's bits depend on it alone.
#include "engine/experts.h"

#include <algorithm>
#include <cmath>

#include "engine/forward.h"
#include "kernels/check.h"

namespace pozor {

void ChooseExperts(std::span<const float> logits, std::span<int32_t> experts, float* shares) {
  size_t taken = 0;
  for (; taken < experts.size(); ++taken) {
    const auto end = experts.begin() + static_cast<std::ptrdiff_t>(taken);
    size_t best = logits.size();
    for (size_t e = 0; e < logits.size(); ++e) {
      if (std::find(experts.begin(), end, static_cast<int32_t>(e)) != end) continue;
      if (best == logits.size() || logits[e] > logits[best]) best = e;
    }
    experts[taken] = static_cast<int32_t>(best);
  }
  const double largest = double{logits[static_cast<size_t>(experts[0])]};
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  std::sort(experts.begin(), experts.end());
  for (size_t i = 0; i < experts.size(); ++i) {
    const double logit = double{logits[static_cast<size_t>(experts[i])]};
    shares[i] = static_cast<float>(std::exp(logit - largest) / sum);
  }
}

ExpertWeights ExpertWeights::Alias() const {
  ExpertWeights alias;
  alias.router = router.Alias();
  for (const Linear& linear : up) alias.up.push_back(linear.Alias());
  for (const Linear& linear : down) alias.down.push_back(linear.Alias());
  alias.bias = bias;
  return alias;
}

size_t Encoder::Impl::chosen_experts() const {
  size_t most = 0;
  for (const LayerSpec& layer : spec.layers) most = std::max(most, layer.experts.chosen);
  return most;
}

void ForwardPass::Route(size_t l, Range rows) {
  const ExpertWeights& experts = model_.layers[l].experts;
  if (!experts.present()) return;
  const ZoneTimer timer(profile_, Zone::kFeedForwardUp);
  rows.end = std::min(rows.end, rows_);
  const size_t chosen = model_.spec.layers[l].experts.chosen, count = experts.up.size();
  GemmArgs args = Product(experts.router, {Input(l, Sublayer::kFeedForward), {}}, rows, {});
  args.epilogue.c = logits_.Row(rows.begin);
  args.epilogue.c_stride = logits_.stride;
  Gemm(args);
  for (size_t row = rows.begin; row < rows.end; ++row) {
    ChooseExperts({logits_.Row(row), count}, {choices_ + row * chosen, chosen},
                  shares_ + row * chosen);
  }
  GatherRows(l, rows);
}

ForwardPass::Slots ForwardPass::SlotsOf(size_t l, Range rows) const {
  const ExpertsSpec& spec = model_.spec.layers[l].experts;
  Slots slots;
  std::fill_n(slots.first.begin(), spec.count + 1, size_t{0});
  for (size_t i = rows.begin * spec.chosen; i < rows.end * spec.chosen; ++i) {
    ++slots.first[static_cast<size_t>(choices_[i]) + 1];
  }
  slots.first[0] = rows.begin * spec.chosen;
  for (size_t e = 0; e < spec.count; ++e) slots.first[e + 1] += slots.first[e];
  return slots;
}

// Copies the rows, or their bytes, to their slots.
void ForwardPass::GatherRows(size_t l, Range rows) {
  const size_t chosen = model_.spec.layers[l].experts.chosen;
  const MatView<const float> x = Input(l, Sublayer::kFeedForward);
  const bool int8 = model_.IsInt8(l, ProductKind::kUp);
  Slots next = SlotsOf(l, rows);
  for (size_t i = rows.begin * chosen; i < rows.end * chosen; ++i) {
    const size_t slot = next.first[static_cast<size_t>(choices_[i])]++;
    slots_[i] = static_cast<int32_t>(slot);
    if (int8) {
      const QuantizedRows from = input_bytes_.From(i / chosen), to = slot_bytes_.From(slot);
      std::copy_n(from.values, from.stride, to.values);
      *to.scales = *from.scales;
    } else {
      std::copy_n(x.Row(i / chosen), x.cols, slot_rows_.Row(slot));
    }
  }
}

GemmArgs ForwardPass::SlotProduct(const Linear& linear, const ProductInput& x, Range slots,
                                  Range panels) const {
  const size_t count = slots.end - slots.begin;
  const MatView<const float> rows = {x.rows.Row(slots.begin), count, x.rows.cols, x.rows.stride};
  GemmArgs args = linear.is_int8() ? linear.Arguments(x.bytes.From(slots.begin), count)
                                   : linear.Arguments(rows);
  args.panel_begin = panels.begin;
  args.panel_end = std::min(panels.end, linear.panels());
  return args;
}

void ForwardPass::ExpertsUp(size_t l, Range rows, Range panels) {
  ZoneTimer timer(profile_, Zone::kFeedForwardUp);
  rows.end = std::min(rows.end, rows_);
  const std::vector<Linear>& experts = model_.layers[l].experts.up;
  const MatView<const float> x = {slot_rows_.data, slot_rows_.rows, slot_rows_.cols,
                                  slot_rows_.stride};
  const Slots slots = SlotsOf(l, rows);
  for (size_t e = 0; e < experts.size(); ++e) {
    const Range of = {slots.first[e], slots.first[e + 1]};
    if (of.begin == of.end) continue;
    GemmArgs args = SlotProduct(experts[e], {x, slot_bytes_}, of, panels);
    args.epilogue.c = slot_up_.Row(of.begin);
    args.epilogue.c_stride = slot_up_.stride;
    Gemm(args);
    timer.AddFlops(2 * args.m * args.b->k * (args.panel_end - args.panel_begin) * kPanelColumns);
  }
}

// h += p_1 y_1 + p_2 y_2 + ... + bias, in this order.
void ForwardPass::ExpertsDown(size_t l, Range rows, Range panels) {
  ZoneTimer timer(profile_, Zone::kFeedForwardDown);
  rows.end = std::min(rows.end, rows_);
  const ExpertWeights& experts = model_.layers[l].experts;
  const MatView<const float> x = {slot_up_.data, slot_up_.rows, slot_up_.cols, slot_up_.stride};
  const Slots slots = SlotsOf(l, rows);
  for (size_t e = 0; e < experts.down.size(); ++e) {
    const Range of = {slots.first[e], slots.first[e + 1]};
    if (of.begin == of.end) continue;
    GemmArgs args = SlotProduct(experts.down[e], {x, slot_up_bytes_}, of, panels);
    args.epilogue.c = slot_rows_.Row(of.begin);
    args.epilogue.c_stride = slot_rows_.stride;
    Gemm(args);
    timer.AddFlops(2 * args.m * args.b->k * (args.panel_end - args.panel_begin) * kPanelColumns);
  }
  const size_t chosen = model_.spec.layers[l].experts.chosen;
  const size_t first = std::min(panels.begin * kPanelColumns, hidden_.cols);
  const size_t last =
      panels.end == SIZE_MAX ? hidden_.cols : std::min(panels.end * kPanelColumns, hidden_.cols);
  for (size_t row = rows.begin; row < rows.end; ++row) {
    float* sum = slot_rows_.Row(static_cast<size_t>(slots_[row * chosen]));
    for (size_t c = first; c < last; ++c) sum[c] *= shares_[row * chosen];
    for (size_t i = row * chosen + 1; i < (row + 1) * chosen; ++i) {
      const float* y = slot_rows_.Row(static_cast<size_t>(slots_[i]));
      for (size_t c = first; c < last; ++c) sum[c] += shares_[i] * y[c];
    }
    float* h = hidden_.Row(row);
    for (size_t c = first; c < last && experts.bias != nullptr; ++c) sum[c] += experts.bias[c];
    for (size_t c = first; c < last; ++c) h[c] += sum[c];
  }
}

}  // namespace pozor
