// Global tokens (Beltagy et al. 2020, Longformer): all queries see their keys besides their window,
// and they themselves see all keys by projections of their own.
#include <algorithm>

#include "engine/forward.h"

namespace pozor {

void ForwardPass::ListGlobals() {
  if (batch_.globals.empty()) return;
  for (size_t text = 0; text < batch_.texts(); ++text) {
    global_starts_.push_back(global_keys_.size());
    for (int32_t t = batch_.starts[text]; t < batch_.starts[text + 1]; ++t) {
      if (batch_.globals[t] != 0) global_keys_.push_back(t - batch_.starts[text]);
    }
  }
  global_starts_.push_back(global_keys_.size());
}

std::span<const int32_t> ForwardPass::GlobalsOf(size_t text) const {
  if (global_keys_.empty()) return {};
  return std::span(global_keys_)
      .subspan(global_starts_[text], global_starts_[text + 1] - global_starts_[text]);
}

// Those among the queries of `args`.
std::span<const int32_t> ForwardPass::GlobalQueries(size_t text, const AttentionArgs& args) const {
  const std::span<const int32_t> all = GlobalsOf(text);
  const auto begin = std::lower_bound(all.begin(), all.end(), args.query_begin,
                                      [](int32_t a, size_t b) { return size_t(a) < b; });
  const auto end = std::lower_bound(begin, all.end(), args.query_end,
                                    [](int32_t a, size_t b) { return size_t(a) < b; });
  return {begin, end};
}

// The keys and values of the text's global tokens, one after another in `scratch`.
void ForwardPass::ShowGlobals(size_t text, AttentionArgs* args, float* scratch) const {
  const std::span<const int32_t> globals = GlobalsOf(text);
  if (globals.empty()) return;
  const size_t stride = args->head_stride;
  float* keys = scratch;
  float* values = scratch + args->tokens * stride;
  for (size_t g = 0; g < globals.size(); ++g) {
    const size_t row = static_cast<size_t>(globals[g]) * stride;
    std::copy_n(args->k + row, stride, keys + g * stride);
    std::copy_n(args->v + row, stride, values + g * stride);
  }
  args->global_keys = globals.data();
  args->global_count = globals.size();
  args->global_k = keys;
  args->global_v = values;
}

// Attention of one global token, to where `beside` sends its row.
AttentionArgs ForwardPass::GlobalAttentionOf(size_t l, size_t text, size_t head, int32_t query,
                                             const AttentionArgs& beside) const {
  const AttentionArgs local = AttentionOf(l, text, head);
  const float* units = global_qkv_[model_.numbers[l] % 2];
  AttentionArgs args;
  args.q = units + (local.q - HeadUnit(l, 0));
  args.k = units + (local.k - HeadUnit(l, 0));
  args.v = units + (local.v - HeadUnit(l, 0));
  args.head_dim = local.head_dim;
  args.head_stride = local.head_stride;
  args.tokens = local.tokens;
  args.query_begin = static_cast<size_t>(query);
  args.query_end = args.query_begin + 1;
  args.out = beside.out;
  args.out_stride = beside.out_stride;
  return args;
}

}  // namespace pozor
