#include "kernels/embed.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/embed.cc"
#include "hwy/foreach_target.h"
#include "kernels/rows-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

// Word rows lie anywhere in a table larger than the caches: ask for the row of a token this many
// tokens ahead.
constexpr size_t kTokensAhead = 2;

HWY_INLINE void PrefetchRow(const float* row, size_t cols) {
  for (size_t c = 0; c < cols; c += 16) __builtin_prefetch(row + c);
}

void EmbedRows(const EmbedArgs& args) {
  const DF df;
  const size_t cols = args.cols;
  const VF scale = hn::Set(df, args.word_scale);
  for (size_t t = 0; t < args.tokens; ++t) {
    if (t + kTokensAhead < args.tokens) {
      PrefetchRow(args.word + static_cast<size_t>(args.ids[t + kTokensAhead]) * cols, cols);
    }
    const float* word = args.word + static_cast<size_t>(args.ids[t]) * cols;
    float* out = args.out + t * args.out_stride;
    if (args.type != nullptr) {
      const size_t row = args.types == nullptr ? 0 : static_cast<size_t>(args.types[t]);
      MapRow2(word, args.type + row * cols, out, cols,
              [&](VF w, VF type) HWY_ATTR { return hn::Add(hn::Mul(w, scale), type); });
    } else {
      MapRow(word, out, cols, [&](VF w) HWY_ATTR { return hn::Mul(w, scale); });
    }
    if (args.position != nullptr) {
      MapRow2(out, args.position + static_cast<size_t>(args.positions[t]) * cols, out, cols,
              [](VF sum, VF position) HWY_ATTR { return hn::Add(sum, position); });
    }
  }
}

}  // namespace
}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pozor {
HWY_EXPORT(EmbedRows);

void EmbedSum(const EmbedArgs& args) { HWY_DYNAMIC_DISPATCH(EmbedRows)(args); }

}  // namespace pozor
#endif
