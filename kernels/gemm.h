// Matrix product of row-major activations with prepacked weights: C = epilogue(A B).
//
// f32: one accumulator a C element, K ascending, one fused multiply-add a step, so that an
// element's bits depend neither on the tile shape nor on the rows around it nor on the tier.
//
// Split bf16: high a times low b, high by high and low by high, in f32 sums: within 2^-15 of a term
// of the exact product. An input that is infinite, as one above 3.39e38 is, makes its row NaN.
//
// int8: exact integer sums of each K group, then for one group
//   x = fma(float(sum q w - zero * column_sum) * column_scale, scale, bias)
// and for two, the second in the fma:
//   t = float(sum_1 - zero_1 * column_sum_1) * column_scale_1 * scale_1
//   x = fma(float(sum_2 - zero_2 * column_sum_2) * column_scale_2, scale_2, t + bias)
// in place of `acc + bias` below; without bias, bias is 0.
#ifndef POZOR_KERNELS_GEMM_H_
#define POZOR_KERNELS_GEMM_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kernels/activation.h"
#include "kernels/cpu.h"
#include "kernels/pack.h"
#include "kernels/quantize.h"

namespace pozor {

// What happens to an accumulator before it is stored:
//   x = acc + bias[n];  x *= scale if n < scaled_columns;  x = activation(x);  x += residual[m][n]
struct GemmEpilogue {
  const float* bias = nullptr;  // [panels * 16], packed column order, 64-byte aligned; or null
  Activation activation = Activation::kNone;
  const float* residual = nullptr;  // [m, n] or null; may be `c` itself; plain output only
  size_t residual_stride = 0;

  // Multiplies the first columns, packed order: 1/sqrt(head_dim) on Q. A multiple of 16 columns.
  float scale = 1.0f;
  size_t scaled_columns = 0;

  // Plain output: C row m at c + m * c_stride, columns [0, n).
  // Split output (split_columns != 0, a multiple of 16): packed column p belongs to unit
  // u = p / split_columns and is stored at c + u * unit_stride + m * c_stride + p % split_columns.
  // All 16 columns of every panel are stored then, padding columns as well.
  float* c = nullptr;
  size_t c_stride = 0;
  size_t split_columns = 0;
  size_t unit_stride = 0;
};

struct GemmArgs {
  const float* a = nullptr;  // [m, k], any alignment; f32 layouts
  size_t a_stride = 0;       // in floats, >= k
  QuantizedRows quantized;   // [m, k] in b's groups; kS8x16x4 reads these instead
  size_t m = 0;
  const PackedMatrix* b = nullptr;
  size_t panel_begin = 0;  // panels [begin, end) of b, 16 columns each
  size_t panel_end = 0;
  GemmEpilogue epilogue;
};

// A row of the table gemm_kernels.inc.
struct GemmKernel {
  std::string_view
      name;             // <tier>-<a><b><acc>-<mr>x<nr>x<kr>[-variant], e.g. avx512-f32f32f32-6x64x1
  CpuTier tier;         // needs at least this tier
  PackedLayout layout;  // reads weights of this layout
  size_t mr, nr, kr;    // tile: rows, columns, K a step
  size_t min_m, max_m;  // chosen for these numbers of rows; max_m 0: no limit
  void (*run)(const GemmArgs& args);
};

// Every row that this build contains, runnable here or not.
std::span<const GemmKernel> AllGemmKernels();

// True if the CPU and the tier cap admit the kernel.
bool IsGemmKernelSupported(const GemmKernel& kernel);

// True if the active tier has kernels for the layout: always, but for kSplitBf16x16x2. Ask before
// weights are packed.
bool HasGemmKernel(PackedLayout layout);

// The kernel for a layout and a number of rows on the active tier: a fixed table, no timing. Where
// that tier has none but the CPU does, the CPU's. POZOR_KERNEL=<name> forces a row.
const GemmKernel& FindGemmKernel(PackedLayout layout, size_t m);

// Forces a row for its layout, whatever the number of rows; an empty name removes the force. False,
// and nothing changed, if the active tier has no such row. A lower cap set later wins over it.
bool ForceGemmKernel(std::string_view name);

// Reads POZOR_KERNEL. Empty string: applied, or not set. Otherwise one sentence that names the bad
// value and the admissible ones. FindGemmKernel calls it once by itself.
std::string ApplyGemmKernelFromEnvironment();

// FindGemmKernel(args.b->layout, args.m).run(args).
void Gemm(const GemmArgs& args);

}  // namespace pozor

#endif  // POZOR_KERNELS_GEMM_H_
