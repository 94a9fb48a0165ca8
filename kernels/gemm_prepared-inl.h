// The loops of int8 micro-kernels whose activations need another form than bytes of a row: it is
// made once a block of rows, in a buffer on the stack, and all panels go by for each block.
#if defined(POZOR_KERNELS_GEMM_PREPARED_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_GEMM_PREPARED_INL_H_
#undef POZOR_KERNELS_GEMM_PREPARED_INL_H_
#else
#define POZOR_KERNELS_GEMM_PREPARED_INL_H_
#endif

#include "kernels/check.h"
#include "kernels/even_pieces.h"
#include "kernels/gemm.h"
#include "kernels/gemm_dequantize-inl.h"
#include "kernels/gemm_epilogue-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline constexpr size_t kPreparedBytes = 65536;

// The K group that a micro-kernel multiplies: inputs [begin, begin + 4 * steps) of rows prepared
// with `inputs` inputs each. A multiple of 16, except for the end of the last group.
struct PreparedGroup {
  const char* rows;
  size_t inputs;  // a multiple of 16
  size_t begin, steps;
};

// Micro provides
//   kMaxRows, kInputBytes  rows of a tile; bytes of a prepared input
//   kZeroShift             what was taken off every q: 0 or 128
//   Prepare(rows, count, inputs, to)
//   Multiply(group, count, panel, sums)   sums[count, 16] of a panel that starts at group.begin
template <class Micro>
void MultiplyPrepared(const GemmArgs& args) {
  constexpr size_t kTileSize = Micro::kMaxRows * kPanelColumns;
  alignas(kAlignment) char prepared[kPreparedBytes];
  alignas(kAlignment) int32_t sums[2 * kTileSize];
  alignas(kAlignment) float values[kTileSize];
  const PackedMatrix& b = *args.b;
  const size_t inputs = RoundUp(b.k, 16), row_bytes = HWY_MAX(inputs, 16) * Micro::kInputBytes;
  const size_t rows_that_fit = HWY_MIN(Micro::kMaxRows, kPreparedBytes / row_bytes / 2 * 2);
  POZOR_CHECK(rows_that_fit > 0);
  GemmEpilogue epilogue = args.epilogue;
  epilogue.bias = nullptr;  // DequantizeTile adds it
  const StoreTileFunction store = ChooseStoreTile(epilogue.activation);
  const size_t panel_bytes = PackedPanelBytes(b.layout, b.k);
  const EvenPieces blocks(args.m, rows_that_fit);
  size_t row = 0;
  for (size_t block = 0; block < blocks.pieces; ++block) {
    const size_t rows = blocks.Size(block);
    Micro::Prepare(args.quantized.From(row), rows, inputs, prepared);
    for (size_t panel = args.panel_begin; panel < args.panel_end; ++panel) {
      const int8_t* packed = static_cast<const int8_t*>(b.panels) + panel * panel_bytes;
      for (size_t g = 0; g < b.groups(); ++g) {
        const size_t begin = g == 0 ? 0 : b.split, end = g + 1 < b.groups() ? b.split : inputs;
        const PreparedGroup group = {prepared, inputs, begin, (end - begin) / 4};
        Micro::Multiply(group, rows, packed + begin * kPanelColumns, sums + g * kTileSize);
      }
      const FinishedTile tile = {values, row, rows, panel, 1, b.n};
      DequantizeTile(args, tile, {sums, kTileSize, kPanelColumns, Micro::kZeroShift}, values);
      store(epilogue, tile);
    }
    row += rows;
  }
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POZOR_KERNELS_GEMM_PREPARED_INL_H_
