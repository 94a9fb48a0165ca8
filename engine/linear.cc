#include "engine/linear.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "kernels/check.h"

namespace pozor {
namespace {

// Outputs of the tensor in the file, of which a block may be a part.
size_t StoredOutputs(const TensorRef& ref, size_t out) {
  return ref.fused_rows == 0 ? out : ref.fused_rows;
}

// Row of a tensor's part that output n is, counted from row_begin on.
size_t RowOf(const TensorRef& ref, size_t n) {
  return ref.group_rows == 0 ? n : n / ref.group_rows * ref.group_step + n % ref.group_rows;
}

bool IsInside(const TensorRef& ref, size_t out) {
  if (ref.fused_rows == 0) {
    return ref.group_rows == 0 && ref.row_begin == 0 &&
           (ref.row_count == 0 || ref.row_count == out);
  }
  const size_t rows = out == 0 ? 0 : RowOf(ref, out - 1) + 1;
  return ref.row_count == out && rows <= ref.fused_rows && ref.row_begin <= ref.fused_rows - rows;
}

// `group`: of the block's outputs; rows that stand apart do so by the same groups.
Status CheckRange(const TensorRef& ref, size_t out, size_t group) {
  if (IsInside(ref, out) && (ref.group_rows == 0 || ref.group_rows == group)) return {};
  return InvalidArgument("tensor '" + ref.name + "': rows " + std::to_string(ref.row_begin) +
                         " to " + std::to_string(ref.row_begin + ref.row_count) +
                         " are not the part of it that the model needs; check the architecture");
}

std::vector<size_t> StoredShape(const LinearRef& ref, size_t in, size_t out) {
  const size_t stored = StoredOutputs(ref.weight, out), stack = std::max<size_t>(ref.stack, 1);
  if (ref.groups != 0) return {stored, in / ref.groups, 1};
  if (ref.taps != 0) return {stored, in / ref.taps, ref.taps};
  if (ref.transposed) return {stack * in, stored};
  return {stack * stored, in};
}

bool IsConvolution(const LinearRef& ref) { return ref.groups != 0 || ref.taps != 0; }

// Groups need whole tensors, and as many inputs and outputs each; taps need whole tensors, stacks
// whole matrices.
Status CheckGroups(const LinearRef& ref, size_t in, size_t out) {
  const bool plain = !ref.transposed && ref.weight.fused_rows == 0 && ref.stack == 0;
  if (ref.taps != 0 && (!plain || ref.groups != 0 || in % ref.taps != 0)) {
    return InvalidArgument("tensor '" + ref.weight.name + "': " + std::to_string(ref.taps) +
                           " taps of " + std::to_string(in) +
                           " inputs cannot be; check the model's config");
  }
  if (ref.stack != 0 && (ref.place >= ref.stack || ref.weight.fused_rows != 0)) {
    return InvalidArgument("tensor '" + ref.weight.name + "': matrix " + std::to_string(ref.place) +
                           " of " + std::to_string(ref.stack) +
                           " cannot be; check the architecture");
  }
  if (ref.groups == 0 || (plain && in % ref.groups == 0 && out % ref.groups == 0)) return {};
  return InvalidArgument("tensor '" + ref.weight.name + "': " + std::to_string(ref.groups) +
                         " groups of " + std::to_string(in) + " inputs and " + std::to_string(out) +
                         " outputs cannot be; check the model's config");
}

// Packed column -> output of the block, -1 for padding.
std::vector<int32_t> ColumnMap(const LinearBlock& block) {
  std::vector<int32_t> columns(block.packed_columns(), -1);
  const size_t group = block.group == 0 ? block.out : block.group;
  const size_t padded = block.group == 0 ? block.out : block.padded_group;
  for (size_t n = 0; n < block.out; ++n) {
    columns[n / group * padded + n % group] = static_cast<int32_t>(n);
  }
  return columns;
}

// Packed column -> row of the weight from row_begin on, -1 for padding.
std::vector<int32_t> RowMap(const LinearBlock& block) {
  std::vector<int32_t> rows = ColumnMap(block);
  for (int32_t& row : rows) {
    if (row >= 0) row = static_cast<int32_t>(RowOf(block.ref->weight, static_cast<size_t>(row)));
  }
  return rows;
}

// Where panels go, and as what.
struct Panels {
  PackedLayout layout = PackedLayout::kF32x16;
  char* at = nullptr;
  size_t panel_bytes = 0;

  // Columns of `weight` from this place on.
  void Pack(const WeightView& weight, std::span<const int32_t> columns) const {
    const size_t count = DivCeil(columns.size(), kPanelColumns);
    PackPlain(layout, weight, columns.data(), columns.size(), 0, count, at);
  }
  Panels From(size_t panel) const { return {layout, at + panel * panel_bytes, panel_bytes}; }
};

// Packs from the file's own pages, without a copy between.
void PackMapped(const float* data, const LinearBlock& block, size_t in, const Panels& panels) {
  const LinearRef& ref = *block.ref;
  const size_t stored = StoredOutputs(ref.weight, block.out);
  const std::vector<int32_t> columns = RowMap(block);
  const size_t rows = block.out == 0 ? 0 : RowOf(ref.weight, block.out - 1) + 1;
  WeightView view{.data = data, .k = in, .n = rows, .k_stride = 1, .n_stride = in};
  if (ref.transposed) {
    view.data += ref.weight.row_begin;
    view.k_stride = stored;
    view.n_stride = 1;
  } else {
    view.data += ref.weight.row_begin * in;
  }
  panels.Pack(view, columns);
}

// Converts and packs one panel after another: its rows are read into a small buffer.
Status PackConverted(const TensorSource& source, const TensorInfo& tensor, const LinearBlock& block,
                     size_t in, const Panels& panels) {
  const std::vector<int32_t> columns = RowMap(block);
  std::vector<float> rows(kPanelColumns * in);
  std::array<int32_t, kPanelColumns> local;
  for (size_t begin = 0; begin < columns.size(); begin += kPanelColumns) {
    const size_t count = std::min(kPanelColumns, columns.size() - begin);
    int32_t used = 0;
    size_t first = 0;
    for (size_t i = 0; i < count; ++i) {  // sources of a panel are consecutive: groups are in order
      local[i] = columns[begin + i] < 0 ? -1 : used;
      if (columns[begin + i] >= 0 && used++ == 0) first = static_cast<size_t>(columns[begin + i]);
    }
    const size_t row = block.ref->weight.row_begin + first;
    const size_t rows_used = static_cast<size_t>(used);
    const size_t matrix = block.ref->place * in * block.out;
    POZOR_RETURN_IF_ERROR(source.Read(tensor, matrix + row * in, rows_used * in, rows.data()));
    const WeightView view{
        .data = rows.data(), .k = in, .n = rows_used, .k_stride = 1, .n_stride = in};
    panels.From(begin / kPanelColumns).Pack(view, std::span(local).first(count));
  }
  return {};
}

// rows [out, in / groups] -> [out, in]
std::vector<float> SpreadGroups(const std::vector<float>& rows, size_t groups, size_t in,
                                size_t out) {
  const size_t each = in / groups;
  std::vector<float> matrix(in * out);
  for (size_t n = 0; n < out; ++n) {
    std::copy_n(&rows[n * each], each, &matrix[n * in + n / (out / groups) * each]);
  }
  return matrix;
}

// rows [out, in, taps] -> [out, taps, in]
std::vector<float> TapsFirst(const std::vector<float>& rows, size_t taps, size_t in, size_t out) {
  std::vector<float> matrix(rows.size());
  for (size_t n = 0; n < out; ++n) {
    for (size_t c = 0; c < in; ++c) {
      for (size_t tap = 0; tap < taps; ++tap) {
        matrix[(n * taps + tap) * in + c] = rows[(n * in + c) * taps + tap];
      }
    }
  }
  return matrix;
}

Status PackWeight(WeightReader& weights, const LinearBlock& block, size_t in,
                  const Panels& panels) {
  const LinearRef& ref = *block.ref;
  POZOR_TRY(const TensorInfo* tensor,
            weights.Take(ref.weight.name, StoredShape(ref, in, block.out)));
  const TensorSource& source = weights.source();
  const size_t matrix = ref.place * in * block.out;
  if (const float* mapped = IsConvolution(ref) ? nullptr : source.Map(*tensor)) {
    PackMapped(mapped + matrix, block, in, panels);
  } else if (ref.transposed || IsConvolution(ref)) {  // a panel needs values from the whole matrix
    std::vector<float> whole(ref.stack == 0 ? tensor->elements() : in * block.out);
    POZOR_RETURN_IF_ERROR(source.Read(*tensor, matrix, whole.size(), whole.data()));
    if (ref.groups != 0) whole = SpreadGroups(whole, ref.groups, in, block.out);
    if (ref.taps != 0) whole = TapsFirst(whole, ref.taps, in / ref.taps, block.out);
    PackMapped(whole.data(), block, in, panels);
  } else {
    POZOR_RETURN_IF_ERROR(PackConverted(source, *tensor, block, in, panels));
  }
  source.Release(*tensor);
  return {};
}

// Zeros where there is no bias: adding them changes nothing.
Status PackBias(WeightReader& weights, const LinearBlock& block, float* bias) {
  const TensorRef& ref = block.ref->bias;
  std::fill_n(bias, block.packed_columns(), 0.0f);
  if (!ref.present()) return {};
  const std::array<size_t, 1> shape = {StoredOutputs(ref, block.out)};
  POZOR_TRY(const TensorInfo* tensor, weights.Take(ref.name, shape));
  std::vector<float> values(block.out == 0 ? 0 : RowOf(ref, block.out - 1) + 1);
  POZOR_RETURN_IF_ERROR(
      weights.source().Read(*tensor, ref.row_begin, values.size(), values.data()));
  const std::vector<int32_t> columns = ColumnMap(block);
  for (size_t p = 0; p < columns.size(); ++p) {
    if (columns[p] >= 0) bias[p] = values[RowOf(ref, static_cast<size_t>(columns[p]))];
  }
  return {};
}

}  // namespace

size_t Linear::PackedBytes(size_t in, size_t packed_columns, PackedLayout layout) {
  const size_t panels = DivCeil(packed_columns, kPanelColumns);
  return panels * PackedPanelBytes(layout, in) +
         RoundUp(panels * kPanelColumns * sizeof(float), kAlignment);
}

Status Linear::Check(WeightReader& weights, const LinearBlock& block, size_t in) {
  const LinearRef& ref = *block.ref;
  POZOR_RETURN_IF_ERROR(CheckRange(ref.weight, block.out, block.group));
  POZOR_RETURN_IF_ERROR(CheckGroups(ref, in, block.out));
  POZOR_TRY([[maybe_unused]] const TensorInfo* weight,
            weights.Take(ref.weight.name, StoredShape(ref, in, block.out)));
  if (!ref.bias.present()) return {};
  POZOR_RETURN_IF_ERROR(CheckRange(ref.bias, block.out, block.group));
  const std::array<size_t, 1> bias_shape = {StoredOutputs(ref.bias, block.out)};
  POZOR_TRY([[maybe_unused]] const TensorInfo* bias, weights.Take(ref.bias.name, bias_shape));
  return {};
}

Result<Linear> Linear::Create(WeightReader& weights, const LinearRef& ref, size_t in, size_t out,
                              Activation activation) {
  const LinearBlock block{.ref = &ref, .out = out};
  POZOR_RETURN_IF_ERROR(Check(weights, block, in));
  Workspace arena;
  arena.Reset(PackedBytes(in, out));
  POZOR_TRY(Linear linear, CreateIn(arena, weights, {&block, 1}, in, activation));
  linear.own_ = std::move(arena).Release();
  return linear;
}

Result<Linear> Linear::CreateIn(Workspace& arena, WeightReader& weights,
                                std::span<const LinearBlock> blocks, size_t in,
                                Activation activation, PackedLayout layout) {
  size_t columns = 0;
  for (const LinearBlock& block : blocks) {
    POZOR_CHECK(columns % kPanelColumns == 0);  // every block starts a panel
    columns += block.packed_columns();
  }
  const size_t panel_bytes = PackedPanelBytes(layout, in);
  const size_t panel_count = DivCeil(columns, kPanelColumns);
  float* memory = arena.Take(panel_count * panel_bytes / sizeof(float));
  const Panels panels = {layout, reinterpret_cast<char*>(memory), panel_bytes};
  float* bias = arena.Take(panel_count * kPanelColumns);
  std::fill_n(bias, panel_count * kPanelColumns, 0.0f);

  size_t column = 0;
  for (const LinearBlock& block : blocks) {
    POZOR_RETURN_IF_ERROR(PackWeight(weights, block, in, panels.From(column / kPanelColumns)));
    POZOR_RETURN_IF_ERROR(PackBias(weights, block, bias + column));
    column += block.packed_columns();
  }
  Linear linear;
  linear.matrix_ = {.layout = layout, .panels = memory, .k = in, .n = columns};
  linear.bias_ = bias;
  linear.activation_ = activation;
  return linear;
}

Linear Linear::FromPacked(const PackedMatrix& matrix, const float* bias, Activation activation) {
  Linear linear;
  linear.matrix_ = matrix;
  linear.bias_ = bias;
  linear.activation_ = activation;
  return linear;
}

GemmArgs Linear::Arguments(const QuantizedRows& x, size_t rows) const {
  GemmArgs args;
  args.quantized = x;
  args.m = rows;
  args.b = &matrix_;
  args.panel_end = panels();
  args.epilogue.bias = bias_;
  args.epilogue.activation = activation_;
  return args;
}

GemmArgs Linear::Arguments(MatView<const float> x) const {
  POZOR_DCHECK(x.cols == matrix_.k && !is_int8());
  GemmArgs args = Arguments(QuantizedRows(), x.rows);
  args.a = x.data;
  args.a_stride = x.stride;
  return args;
}

void Linear::Apply(MatView<const float> x, MatView<float> out) const {
  POZOR_CHECK(x.rows == out.rows && out.cols == matrix_.n);
  GemmArgs args = Arguments(x);
  args.epilogue.c = out.data;
  args.epilogue.c_stride = out.stride;
  if (args.m > 0) Gemm(args);
}

}  // namespace pozor
