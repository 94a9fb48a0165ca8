// Rotary position embedding (Su et al. 2021, RoFormer): pairs of columns turn by an angle that
// grows with the position.
#ifndef POZOR_KERNELS_ROTARY_H_
#define POZOR_KERNELS_ROTARY_H_

#include <cstddef>
#include <cstdint>

namespace pozor {

enum class RotaryPairs : uint8_t {
  kNone,
  kHalves,       // columns c and c + columns / 2 turn together (GPT-NeoX)
  kInterleaved,  // columns 2c and 2c + 1 turn together (RoFormer)
};

// Row r turns by the angles of position p = positions[r]. kHalves, for c < h = columns / 2:
//   x[c]     = x[c] cos(p, c) - x[c + h] sin(p, c)
//   x[c + h] = x[c + h] cos(p, c) + x[c] sin(p, c)
// Columns from `columns` on stay. Any alignment. Strides in floats.
struct RotaryArgs {
  float* x = nullptr;  // [rows, columns], in place
  size_t x_stride = 0;
  size_t rows = 0;
  size_t columns = 0;  // even
  RotaryPairs pairs = RotaryPairs::kHalves;

  // [positions, columns]. kHalves: the cosines of all pairs, then their sines. kInterleaved: the
  // cosine and the sine of a pair side by side.
  const float* table = nullptr;
  const int32_t* positions = nullptr;  // [rows]
};
void Rotate(const RotaryArgs& args);

}  // namespace pozor

#endif  // POZOR_KERNELS_ROTARY_H_
