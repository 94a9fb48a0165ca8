// AMX micro-kernels of int8 and bf16.
//
// bf16 sums follow the hardware's rules (even and odd inputs of a tile apart, denormals as zero):
// results do not depend on the row's place in a tile, but differ from VDPBF16PS and from f32 sums.
#include <cstddef>
#include <cstring>

#include "kernels/check.h"
#include "kernels/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm_amx.cc"
#include "hwy/foreach_target.h"  // re-includes this file once per target
#include "kernels/amx-inl.h"
#include "kernels/bf16-inl.h"
#include "kernels/gemm_amx-inl.h"
#include "kernels/gemm_dequantize-inl.h"
#include "kernels/gemm_epilogue-inl.h"
#include "kernels/simd-inl.h"

#if HWY_TARGET == HWY_AVX3

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace {

template <>
HWY_INLINE void StageRow<Halves>(const float* x, size_t k, size_t padded_k, uint8_t* to) {
  RoundRowToBf16(x, k, padded_k, reinterpret_cast<Bf16*>(to));
}

// Where dequantised rows go: to C, or to the stack for an epilogue of its own.
struct RowsOutput {
  float* panels[kMaxPanels];  // first row of each panel
  size_t stride;
  const float* scale;     // or null
  const float* residual;  // of the first panel, or null
  size_t residual_stride;
};

using D16 = hn::Repartition<int16_t, DF>;

// The ZeroPair of each of `count` rows, at the odd places of pairs[2 * kMaxRows * groups].
HWY_INLINE void ZeroPairs(const RowScale* rows, size_t count, int32_t* pairs) {
  static_assert(sizeof(RowScale) == 8 && offsetof(RowScale, zero) == 4);
  const DI32 di;
  const int32_t* words = reinterpret_cast<const int32_t*>(rows);
  for (size_t i = 0; i < 2 * count; i += kLanes) {
    const auto zeros = hn::LoadN(di, words + i, HWY_MIN(kLanes, 2 * count - i));
    hn::Store(hn::Or(zeros, hn::ShiftLeft<23>(zeros)), di,
              pairs + i);  // z, and 128 z in the high half
  }
}

// Takes finished tiles of integer sums to C. Beside tiles, which take an eighth of the time that
// vectors take for a product, these loops decide: what belongs to columns stays in registers, and
// an epilogue without activation goes straight to C.
class FinishBytes {
 public:
  explicit FinishBytes(const GemmArgs& args)
      : args_(args), epilogue_(args.epilogue), store_(ChooseStoreTile(args.epilogue.activation)) {
    POZOR_CHECK(args.b->k <= kMaxPairedInputs);
    epilogue_.bias = nullptr;  // Dequantize adds it
  }

  void StartPanels(size_t panel, size_t panels) {
    const PackedMatrix& b = *args_.b;
    const size_t column = panel * kPanelColumns, padded_n = b.panel_count() * kPanelColumns;
    for (size_t g = 0; g < b.groups(); ++g) {
      SumPairs(b.column_sums + g * padded_n + column, panels * kPanelColumns, corrections_[g]);
      column_scales_[g] = b.column_scales + g * padded_n + column;
    }
    bias_ = args_.epilogue.bias == nullptr ? kNoBias : args_.epilogue.bias + column;
    straight_ = GoesStraightToC(epilogue_, panel, panels, b.n);
  }

  void Finish(const int32_t* sums, FinishedTile tile) const {
    alignas(kAlignment) float values[kMaxSums];
    const size_t groups = args_.b->groups();
    RowsOutput out = {};
    if (straight_) {
      PointAtC(tile, &out);
    } else {
      for (size_t p = 0; p < tile.panels; ++p) out.panels[p] = values + p * kPanelColumns;
      out.stride = tile.panels * kPanelColumns;
    }
    const RowScale* rows = args_.quantized.scales + tile.row * groups;
    if (groups == 1) {
      tile.panels == 2 ? Dequantize<1, 2>(sums, rows, tile.rows, out)
                       : Dequantize<1, 1>(sums, rows, tile.rows, out);
    } else {
      tile.panels == 2 ? Dequantize<2, 2>(sums, rows, tile.rows, out)
                       : Dequantize<2, 1>(sums, rows, tile.rows, out);
    }
    if (straight_) return;
    tile.values = values;
    store_(epilogue_, tile);
  }

 private:
  void PointAtC(const FinishedTile& tile, RowsOutput* out) const {
    const size_t column = tile.panel * kPanelColumns;
    for (size_t p = 0; p < tile.panels; ++p) {
      out->panels[p] = OutputPanel(epilogue_, tile.row, column + p * kPanelColumns);
    }
    out->stride = epilogue_.c_stride;
    if (column < epilogue_.scaled_columns) out->scale = &epilogue_.scale;
    if (epilogue_.residual == nullptr) return;
    out->residual = epilogue_.residual + tile.row * epilogue_.residual_stride + column;
    out->residual_stride = epilogue_.residual_stride;
  }

  // The formulas of gemm.h. sums: [kGroups][kMaxRows][kPanels * 16]; rows: [count, kGroups].
  template <size_t kGroups, size_t kPanels>
  void Dequantize(const int32_t* HWY_RESTRICT sums, const RowScale* rows, size_t count,
                  const RowsOutput& out) const {
    static_assert(kPanelVectors == 1);
    const DF df;
    const DI32 di;
    const D16 d16;
    using V16 = hn::Vec<D16>;
    alignas(kAlignment) int32_t pairs[2 * 2 * kMaxRows];
    ZeroPairs(rows, count * kGroups, pairs);
    V16 corrections[kGroups][kPanels];
    VF column_scales[kGroups][kPanels], bias[kPanels];
    HWY_UNROLL(2)
    for (size_t p = 0; p < kPanels; ++p) {
      bias[p] = hn::Load(df, bias_ + p * kPanelColumns);
      HWY_UNROLL(2)
      for (size_t g = 0; g < kGroups; ++g) {
        corrections[g][p] = hn::BitCast(d16, hn::Load(di, corrections_[g] + p * kPanelColumns));
        column_scales[g][p] = hn::Load(df, column_scales_[g] + p * kPanelColumns);
      }
    }
    float* to[kMaxPanels] = {out.panels[0], out.panels[1]};
    const float* residual = out.residual;
    for (size_t r = 0; r < count; ++r, sums += kPanels * kPanelColumns) {
      VF x[kPanels];
      HWY_UNROLL(2)
      for (size_t p = 0; p < kPanels; ++p) x[p] = bias[p];
      HWY_UNROLL(2)
      for (size_t g = 0; g < kGroups; ++g) {
        const size_t at = r * kGroups + g;
        const V16 zero = hn::BitCast(d16, hn::Set(di, pairs[2 * at + 1]));
        const VF scale = hn::Set(df, rows[at].scale);
        HWY_UNROLL(2)
        for (size_t p = 0; p < kPanels; ++p) {
          const auto correction = hn::WidenMulPairwiseAdd(di, zero, corrections[g][p]);
          const auto sum = hn::Load(di, sums + g * kMaxSums + p * kPanelColumns);
          const VF scaled =
              hn::Mul(hn::ConvertTo(df, hn::Add(sum, correction)), column_scales[g][p]);
          const bool last = g + 1 == kGroups;
          x[p] = last ? hn::MulAdd(scaled, scale, x[p]) : hn::Add(hn::Mul(scaled, scale), x[p]);
        }
      }
      if (out.scale != nullptr) {
        HWY_UNROLL(2)
        for (size_t p = 0; p < kPanels; ++p) x[p] = hn::Mul(x[p], hn::Set(df, *out.scale));
      }
      if (residual != nullptr) {
        HWY_UNROLL(2)
        for (size_t p = 0; p < kPanels; ++p) {
          x[p] = hn::Add(x[p], hn::LoadU(df, residual + p * kPanelColumns));
        }
        residual += out.residual_stride;
      }
      HWY_UNROLL(2)
      for (size_t p = 0; p < kPanels; ++p) {
        hn::StoreU(x[p], df, to[p]);
        to[p] += out.stride;
      }
    }
  }

  alignas(kAlignment) static constexpr float kNoBias[kMaxColumns] = {};
  alignas(kAlignment) int32_t corrections_[2][kMaxColumns];
  const GemmArgs& args_;
  GemmEpilogue epilogue_;
  StoreTileFunction store_;
  const float* column_scales_[2];
  const float* bias_;
  bool straight_;
};

// The K groups of an int8 product in steps; a step that both share is done for each, with zeros in
// place of the other's inputs.
struct ByteGroups {
  size_t begin[2], end[2];  // inputs
  bool aligned;             // no step is shared

  explicit ByteGroups(const PackedMatrix& b) {
    const size_t k = RoundUp(b.k, Bytes::kStep);
    begin[0] = 0;
    end[0] = b.split == 0 ? k : b.split;
    begin[1] = end[0];
    end[1] = k;
    aligned = end[0] % Bytes::kStep == 0;
  }
  size_t First(size_t g) const { return begin[g] / Bytes::kStep; }
  size_t Steps(size_t g) const { return DivCeil(end[g], Bytes::kStep) - First(g); }
};

// Row r of the copy, with zeros around the inputs of each group.
void CopyRow(const uint8_t* from, const ByteGroups& groups, size_t r, StagedRows<1>* staged) {
  for (size_t g = 0; g < 2; ++g) {
    uint8_t* to = staged->Row(r, g);
    const size_t before = groups.begin[g] - groups.First(g) * Bytes::kStep;
    std::memset(to, 0, groups.Steps(g) * kTileRowBytes);
    std::memcpy(to + before, from + groups.begin[g], groups.end[g] - groups.begin[g]);
  }
}

void MultiplyBytes(const GemmArgs& args) {
  const ByteGroups groups(*args.b);
  TileRows in = {};
  in.groups = args.b->groups();
  for (size_t g = 0; g < in.groups; ++g) {
    in.first[g] = groups.First(g);
    in.steps[g] = groups.Steps(g);
  }
  const QuantizedRows& q = args.quantized;
  in.in_place = {{q.values, q.values + groups.begin[1]}, q.stride, 0};
  if (groups.aligned) in.in_place.rows = args.m / kTileRows * kTileRows;
  StagedRows<1> staged(HWY_MAX(in.steps[0], size_t{1}) * kTileRowBytes,
                       in.steps[1] * kTileRowBytes);
  for (size_t row = 0; row < args.m; row += in.rows, in.in_place.rows = 0) {
    const size_t first = row + in.in_place.rows;
    const size_t copied = HWY_MIN(staged.most(), args.m - first);
    for (size_t r = 0; r < copied; ++r)
      CopyRow(q.values + (first + r) * q.stride, groups, r, &staged);
    in.copied = staged.Close(copied);
    in.row = row;
    in.rows = in.in_place.rows + copied;
    MultiplyRows<Bytes, FinishBytes>(args, in);
  }
}

}  // namespace

void GemmAmxBytes(const GemmArgs& args) {
  if (args.m == 0) return;
  ConfigureTiles();
  MultiplyBytes(args);
}

void GemmAmxBf16(const GemmArgs& args) {
  if (args.m == 0) return;
  ConfigureTiles();
  MultiplyHalves<Halves>(args);
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET == HWY_AVX3
