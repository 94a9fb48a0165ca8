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

// Rests of two inputs of a column; an odd one stands beside itself with the value 0.
struct RestPair {
  uint16_t k[2];
  int16_t value[2];
};

// A matrix in two parts; the memory belongs to the engine.
struct BoundedS8 {
  const int8_t* panels = nullptr;  // as PackedMatrix::panels
  // Rests of column c of a panel's group g are rests[starts[i]] to rests[starts[i + 1]] with
  // i = (panel * groups + g) * 16 + c. [panel_count * groups * 16 + 1]
  const uint32_t* starts = nullptr;
  const RestPair* rests = nullptr;
};

// True if the int8 kernels of the active tier multiply faster with PackedMatrix::bounded.
bool PrefersBoundedS8();

// Inputs of a matrix that can be bounded: a rest's k has 16 bits.
inline constexpr size_t kMaxBoundedInputs = 65536;

// One panel of a kS8x16x4 matrix whose weights are in [-127, 127].
struct BoundPanelArgs {
  const PackedMatrix* matrix = nullptr;
  size_t panel = 0;
  int8_t* bounded = nullptr;    // the panel, PackedPanelBytes() of it
  uint32_t* counts = nullptr;   // [groups, 16]: pairs of each column
  RestPair* rests = nullptr;    // room for MaxRestPairs(): column after column, group after group
  RestPair* scratch = nullptr;  // as much again
};

// Pairs that a panel has at most.
constexpr size_t MaxRestPairs(size_t k) { return RoundUp(k, 64) * kPanelColumns; }

// Returns the number of pairs.
size_t BoundPanel(const BoundPanelArgs& args);

}  // namespace pozor

#endif  // POZOR_KERNELS_BOUNDED_H_
