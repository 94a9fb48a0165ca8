// The convolution beside the first layer, which reads the embedded rows around each token.
#include <algorithm>

#include "engine/forward.h"
#include "engine/forward_rows.h"

namespace pozor {

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

}  // namespace pozor
