// From rows of tokens to what a user wants to see: heads reduced, specials dropped, word pieces
// merged. Everything works on blocks of rows; only rollout needs whole matrices.
#ifndef POZOR_TOOLS_ATTENTION_TRANSFORM_H_
#define POZOR_TOOLS_ATTENTION_TRANSFORM_H_

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/attention/source.h"

namespace pozor::tools {

enum class WordRows : uint8_t { kMean, kFirst, kMax };  // of the pieces of a word that looks
enum class Reduction : uint8_t { kNone, kMeanHeads, kMaxHeads, kRollout, kCls };

std::string_view ReductionName(Reduction reduction);

struct TransformOptions {
  std::optional<WordRows> words;  // merge: sum over the pieces looked at
  bool no_special = false;
  bool renormalise = false;  // rows sum to 1 again
  Reduction reduction = Reduction::kNone;
  size_t row_begin = 0, row_end = SIZE_MAX;  // only without words and no_special
  size_t max_memory = 0;                     // for rollout; 0: no ceiling
};

// A token, or the tokens of a word.
struct Unit {
  std::string text;
  size_t first = 0, past_end = 0;
  int32_t word = -1;  // of the text record; -1: none
};

// The units that remain, in the order of the text.
std::vector<Unit> MakeUnits(const TextRecord& text, const TransformOptions& options);

struct UnitRows {
  size_t layer = 0;  // of a rollout: 0
  size_t head = 0;   // of reduced heads: 0
  size_t row_begin = 0;
  size_t rows = 0, columns = 0;
  size_t stride = 0;            // floats from one row to the next
  const float* data = nullptr;  // [rows, stride]

  const float* Row(size_t i) const { return data + i * stride; }
};
using UnitSink = std::function<Status(const UnitRows&)>;

// What comes out, known before the first row.
struct TransformShape {
  std::vector<std::pair<size_t, size_t>> matrices;  // layer, head; in order
  bool per_layer = true, per_head = true;           // false: there is only one of it
  size_t rows = 0, columns = 0;
  std::vector<Unit> units;  // of the columns, and of the rows from row_begin
};

Result<TransformShape> ShapeOf(const AttentionRecord& record, const TransformOptions& options);

// Streams `source` through the transformation into `sink`.
Status StreamTransformed(AttentionSource& source, const TransformOptions& options,
                         const UnitSink& sink);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_TRANSFORM_H_
