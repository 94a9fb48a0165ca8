// How a loop is cut into tiles.
#ifndef POZOR_KERNELS_EVEN_PIECES_H_
#define POZOR_KERNELS_EVEN_PIECES_H_

#include <cstddef>

#include "kernels/types.h"

namespace pozor {

// Cuts `count` into the fewest pieces of at most `most`, as even as possible, so that no piece is
// a sliver: 128 rows in sixes are 18 x 6 + 4 x 5, not 21 x 6 + 2.
struct EvenPieces {
  size_t pieces, base, longer;  // the first `longer` pieces have base + 1

  EvenPieces(size_t count, size_t most)
      : pieces(DivCeil(count, most)),
        base(pieces == 0 ? 0 : count / pieces),
        longer(pieces == 0 ? 0 : count % pieces) {}
  size_t Size(size_t piece) const { return base + (piece < longer ? 1 : 0); }
};

}  // namespace pozor

#endif  // POZOR_KERNELS_EVEN_PIECES_H_
