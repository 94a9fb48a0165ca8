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

// Where row `row` of the panel that starts at packed column `column` is stored.
inline float* OutputPanel(const GemmEpilogue& e, size_t row, size_t column) {
  float* c = e.c + row * e.c_stride;
  if (e.split_columns == 0) return c + column;
  return c + column / e.split_columns * e.unit_stride + column % e.split_columns;
}

// True if the columns of `panels` panels share an output: no activation, all scaled or none, no
// partial panel.
inline bool GoesStraightToC(const GemmEpilogue& e, size_t panel, size_t panels, size_t n) {
  const size_t begin = panel * kPanelColumns, end = begin + panels * kPanelColumns;
  const bool whole_panels = e.split_columns != 0 || end <= n;
  const bool one_scale = end <= e.scaled_columns || begin >= e.scaled_columns;
  return e.activation == Activation::kNone && whole_panels && one_scale;
}

// A column of vectors of a tile on its way to C.
struct TileColumn {
  const float* from;  // [rows] at from_stride
  size_t from_stride;
  const float* residual;  // or null
  size_t residual_stride;
  float* to;
  size_t to_stride;
  size_t rows;
};

// Activation, and bias if kBias, only: the feed-forward's first product, where this loop shows.
template <Activation kActivation, bool kBias>
void StoreColumn(TileColumn column, const float* bias_at) {
  const DF df;
  const VF bias = kBias ? hn::Load(df, bias_at) : hn::Zero(df);
  for (size_t r = 0; r < column.rows; ++r) {
    VF x = hn::Load(df, column.from);
    if constexpr (kBias) x = hn::Add(x, bias);
    hn::StoreU(ActivateVector<kActivation>(df, x), df, column.to);
    column.from += column.from_stride;
    column.to += column.to_stride;
  }
}

// Anything else, for the first `lanes` columns; kWhole: all of them. Masked stores are for the last
// columns only: on AMD before Zen 4 one takes as long as a GELU. bias_at and scale may be null.
template <Activation kActivation, bool kWhole>
void StoreColumnOf(TileColumn column, const float* bias_at, const float* scale, size_t lanes) {
  const DF df;
  for (size_t r = 0; r < column.rows; ++r) {
    VF x = hn::Load(df, column.from);
    if (bias_at != nullptr) x = hn::Add(x, hn::Load(df, bias_at));
    if (scale != nullptr) x = hn::Mul(x, hn::Set(df, *scale));
    x = ActivateVector<kActivation>(df, x);
    if (column.residual != nullptr) {
      x = hn::Add(x,
                  kWhole ? hn::LoadU(df, column.residual) : hn::LoadN(df, column.residual, lanes));
      column.residual += column.residual_stride;
    }
    if constexpr (kWhole) {
      hn::StoreU(x, df, column.to);
    } else {
      hn::StoreN(x, df, column.to, lanes);
    }
    column.from += column.from_stride;
    column.to += column.to_stride;
  }
}

// One panel of the tile: 16 columns, `rows` rows.
template <Activation kActivation>
void StorePanel(const GemmEpilogue& e, const FinishedTile& tile, size_t panel_in_tile) {
  const size_t first = (tile.panel + panel_in_tile) * kPanelColumns;
  const float* scale = first < e.scaled_columns ? &e.scale : nullptr;
  size_t width = kPanelColumns;
  if (e.split_columns == 0) width = HWY_MIN(width, tile.n - first);
  float* c = OutputPanel(e, tile.row, first);
  for (size_t j = 0; j < width; j += kLanes) {
    const size_t lanes = HWY_MIN(kLanes, width - j);
    const float* bias = e.bias == nullptr ? nullptr : e.bias + first + j;
    TileColumn column = {.from = tile.values + panel_in_tile * kPanelColumns + j,
                         .from_stride = tile.panels * kPanelColumns,
                         .residual = nullptr,
                         .residual_stride = e.residual_stride,
                         .to = c + j,
                         .to_stride = e.c_stride,
                         .rows = tile.rows};
    if (e.residual != nullptr) {
      column.residual = e.residual + tile.row * e.residual_stride + first + j;
    }
    if (lanes != kLanes) {
      StoreColumnOf<kActivation, false>(column, bias, scale, lanes);
    } else if (scale != nullptr || column.residual != nullptr) {
      StoreColumnOf<kActivation, true>(column, bias, scale, lanes);
    } else if (bias != nullptr) {
      StoreColumn<kActivation, true>(column, bias);
    } else {
      StoreColumn<kActivation, false>(column, nullptr);
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
