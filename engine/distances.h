// Tables of what depends on how far apart two tokens are, computed once at load.
#ifndef POZOR_ENGINE_DISTANCES_H_
#define POZOR_ENGINE_DISTANCES_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/spec.h"

namespace pozor {

// The longest text for which tables of distances are made.
inline constexpr size_t kLongestDistance = size_t{1} << 16;

// table [positions, spec.columns]: cosines and sines as kernels/rotary.h reads them.
void FillRotaryTable(const RotarySpec& spec, size_t positions, float* table);

// Bucket of a key `distance` = j - i away: small distances have one each, large ones share in
// logarithmic steps, as T5 and MPNet compute it in single precision.
size_t DistanceBucket(ptrdiff_t distance, const ScoreBiasSpec& spec);

// Row of a table of relative positions for query i and key j that are `distance` = i - j apart, as
// DeBERTa-v2 computes it in single precision (transformers' make_log_bucket_position). It never
// falls as `distance` grows.
size_t RelativePositionRow(ptrdiff_t distance, const RelativePositionSpec& spec);

// ALiBi's slope of a head: powers of two; for a number of heads that is none, every second one of
// twice as many after them.
double HeadSlope(size_t head, size_t heads);

// bias [heads, 2 * tokens - 1]: what is added at distance j - i, 0 in the middle. `learned`
// [buckets, heads] for kBuckets.
void FillScoreBias(const ScoreBiasSpec& spec, std::span<const float> learned, size_t heads,
                   size_t tokens, float* bias);

}  // namespace pozor

#endif  // POZOR_ENGINE_DISTANCES_H_
