// The ceilings that rows are divided by, measured in the same run on one thread and on several.
#ifndef POZOR_TOOLS_BENCH_ROOF_H_
#define POZOR_TOOLS_BENCH_ROOF_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/spec.h"
#include "kernels/cpu.h"
#include "kernels/peak.h"
#include "tools/bench/result.h"

namespace pozor::tools {

// Each arithmetic loop of this build that the machine can run, on each number of threads; the best
// of windows of a millisecond over `seconds`.
std::vector<ComputeRoof> MeasureComputeRoofs(std::span<const size_t> threads, double seconds);

// Reads of buffers that fit L1, L2, a share of L3, and none of them. Each thread has its own.
std::vector<BandwidthRoof> MeasureBandwidthRoofs(std::span<const size_t> threads, double seconds);

// The loop that bounds a precision on a tier: the one of the highest tier up to it. Where bf16 and
// bf16x3 have no instruction their products are of f32, and so is the loop. Null: none.
const PeakLoop* RoofLoop(std::string_view precision, CpuTier tier);

// What a thread of `threads` reaches just now, GFLOP/s: about a millisecond of the widest f32 loop.
// It moves with the clock and with neighbours on the same core, as a round beside it does.
double ProbeRoof(size_t threads);

// The f32 products of an encoder's layers for 1, 8, 32 and 128 tokens, weights hot, one thread.
std::vector<KernelRecord> MeasureKernels(size_t hidden, size_t intermediate, double seconds);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_BENCH_ROOF_H_
