// What a GEMM does to a finished tile: bias, scale, activation, residual, plain or split store.
//
// The micro-kernel leaves its accumulators in a tile of at most 2 KiB on the stack (L1) and this
// code, compiled once an activation and not once a tile shape, carries them to C: the K loops stay
// small, and no register pressure of an epilogue can reach them.
#if defined(POZOR_KERNELS_GEMM_EPILOGUE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef POZOR_KERNELS_GEMM_EPILOGUE_INL_H_
#undef POZOR_KERNELS_GEMM_EPILOGUE_INL_H_
#else
#define POZOR_KERNELS_GEMM_EPILOGUE_INL_H_
#endif

#include "kernels/gemm.h"
#include "kernels/math-inl.h"
#include "kernels/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pozor::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A finished tile and its place in C.
struct FinishedTile {
  const float* values;  // [rows, panels * 16], 64-byte aligned
  size_t row, rows;     // rows of C
  size_t panel;         // first panel, of the packed columns
  size_t panels;
  size_t n;  // packed columns of the whole matrix
};

// One panel of the tile: 16 columns, `rows` rows.
template <Activation kActivation>
void StorePanel(const GemmEpilogue& e, const FinishedTile& tile, size_t panel_in_tile) {
  const DF df;
  const size_t column = (tile.panel + panel_in_tile) * kPanelColumns;
  const size_t stride = tile.panels * kPanelColumns;
  const bool scaled = column < e.scaled_columns;
  const VF scale = hn::Set(df, e.scale);
  size_t width = kPanelColumns;
  float* c = e.c + tile.row * e.c_stride + column;
  if (e.split_columns != 0) {
    c = e.c + column / e.split_columns * e.unit_stride + tile.row * e.c_stride +
        column % e.split_columns;
  } else if (column + kPanelColumns > tile.n) {
    width = tile.n - column;
  }

  for (size_t j = 0; j < width; j += kLanes) {
    const size_t lanes = HWY_MIN(kLanes, width - j);
    const VF bias = e.bias == nullptr ? hn::Zero(df) : hn::Load(df, e.bias + column + j);
    const float* from = tile.values + panel_in_tile * kPanelColumns + j;
    const float* residual =
        e.residual == nullptr ? nullptr : e.residual + tile.row * e.residual_stride + column + j;
    float* to = c + j;
    for (size_t r = 0; r < tile.rows; ++r, from += stride, to += e.c_stride) {
      VF x = hn::Load(df, from);
      if (e.bias != nullptr) x = hn::Add(x, bias);
      if (scaled) x = hn::Mul(x, scale);
      x = ActivateVector<kActivation>(df, x);
      if (residual != nullptr) {
        const float* at = residual + r * e.residual_stride;
        x = hn::Add(x, lanes == kLanes ? hn::LoadU(df, at) : hn::LoadN(df, at, lanes));
      }
      if (lanes == kLanes) {
        hn::StoreU(x, df, to);
      } else {
        hn::StoreN(x, df, to, lanes);
      }
    }
  }
}

template <Activation kActivation>
void StoreTile(const GemmEpilogue& epilogue, const FinishedTile& tile) {
  for (size_t p = 0; p < tile.panels; ++p) StorePanel<kActivation>(epilogue, tile, p);
}

using StoreTileFunction = void (*)(const GemmEpilogue&, const FinishedTile&);

inline StoreTileFunction ChooseStoreTile(Activation activation) {
  switch (activation) {
    case Activation::kNone:
      return &StoreTile<Activation::kNone>;
    case Activation::kGelu:
      return &StoreTile<Activation::kGelu>;
    case Activation::kGeluTanh:
      return &StoreTile<Activation::kGeluTanh>;
    case Activation::kQuickGelu:
      return &StoreTile<Activation::kQuickGelu>;
    case Activation::kRelu:
      return &StoreTile<Activation::kRelu>;
    case Activation::kRelu6:
      return &StoreTile<Activation::kRelu6>;
    case Activation::kReluSquared:
      return &StoreTile<Activation::kReluSquared>;
    case Activation::kLeakyRelu:
      return &StoreTile<Activation::kLeakyRelu>;
    case Activation::kSilu:
      return &StoreTile<Activation::kSilu>;
    case Activation::kTanh:
      return &StoreTile<Activation::kTanh>;
    case Activation::kSigmoid:
      return &StoreTile<Activation::kSigmoid>;
    case Activation::kMish:
      return &StoreTile<Activation::kMish>;
    case Activation::kElu:
      return &StoreTile<Activation::kElu>;
  }
  return nullptr;
}

}  // namespace pozor::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // POZOR_KERNELS_GEMM_EPILOGUE_INL_H_
