// Weights of the kS8x16x4 layout in two parts, for CPUs that multiply bytes but have no byte dot
// product with a 32-bit sum.
//
// vpmaddubsw adds two products of an unsigned and a signed byte in 16 bits, and saturates. Eight
// inputs of a column give two sums of four products: of inputs (0, 1, 4, 5) and (2, 3, 6, 7). Such
// a sum cannot leave 16 bits if neither the positive weights in it nor the negative ones exceed 128
// together, for 255 * 128 < 2^15. So weights are bounded to that, the largest first, and what is
// taken off them, the rest, is kept apart: w = bounded + rest. One four of nine has a rest in
// all-MiniLM-L6-v2, mostly a single one. Sums of both parts are exact.
#ifndef POZOR_KERNELS_BOUNDED_H_
#define POZOR_KERNELS_BOUNDED_H_

#include <cstddef>
#include <cstdint>

#include "kernels/pack.h"

namespace pozor {

// Inputs of a matrix that can be bounded: a rest's place has 12 bits for them.
inline constexpr size_t kMaxBoundedInputs = 4096;

// Rests of four inputs of a column. Those that a column has too few have the value 0.
struct RestFour {
  uint16_t place[4];  // inputs; in the first one, 4096 times the column of the panel beside it
  int16_t value[4];

  size_t first_input() const { return place[0] % kMaxBoundedInputs; }
  size_t column() const { return place[0] / kMaxBoundedInputs; }
};

// A matrix in two parts; the memory belongs to the engine.
struct BoundedS8 {
  const int8_t* panels = nullptr;  // as PackedMatrix::panels
  // Rests of a panel's group g are rests[starts[i]] to rests[starts[i + 1]] with i = panel * groups
  // + g, column after column, at least one four each. [panel_count * groups + 1]
  const uint32_t* starts = nullptr;
  const RestFour* rests = nullptr;
};

// True if the int8 kernels of the active tier multiply faster with PackedMatrix::bounded.
bool PrefersBoundedS8();

// One panel of a kS8x16x4 matrix of at most kMaxBoundedInputs inputs.
struct BoundPanelArgs {
  const PackedMatrix* matrix = nullptr;
  size_t panel = 0;
  int8_t* bounded = nullptr;    // the panel, PackedPanelBytes() of it
  uint32_t* counts = nullptr;   // [groups]: fours of rests of each group
  RestFour* rests = nullptr;    // room for MaxRestFours(): group after group
  RestFour* scratch = nullptr;  // as much again
};

// Fours of rests that a panel has at most.
constexpr size_t MaxRestFours(size_t k) { return (RoundUp(k, 64) / 4 + 2) * kPanelColumns; }

// Returns the number of fours.
size_t BoundPanel(const BoundPanelArgs& args);

}  // namespace pozor

#endif  // POZOR_KERNELS_BOUNDED_H_
