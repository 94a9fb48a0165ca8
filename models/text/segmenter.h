// Cutting pieces at what a pattern finds.
#ifndef POZOR_MODELS_TEXT_SEGMENTER_H_
#define POZOR_MODELS_TEXT_SEGMENTER_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "models/text/pretokenize.h"

namespace pozor {

// What becomes of the delimiters that a pattern finds.
enum class Behavior { kRemoved, kIsolated, kMergedWithPrevious, kMergedWithNext, kContiguous };

// Takes the matches and the stretches between them in order and puts out pieces.
class Segmenter {
 public:
  Segmenter(Behavior behavior, std::vector<Piece>* out) : behavior_(behavior), out_(*out) {}

  void Add(size_t begin, size_t end, bool is_match) {
    switch (behavior_) {
      case Behavior::kIsolated:
        Emit(begin, end);
        return;
      case Behavior::kRemoved:
        if (!is_match) Emit(begin, end);
        return;
      case Behavior::kContiguous:
        Join(begin, end, is_match == was_match_);
        break;
      case Behavior::kMergedWithPrevious:
        Join(begin, end, is_match && !was_match_);
        break;
      case Behavior::kMergedWithNext:
        // A match waits for what follows; another match sends it off alone.
        Join(begin, end, !is_match && was_match_);
        break;
    }
    was_match_ = is_match;
  }

  void Finish() {
    if (held_) Emit(begin_, end_);
    held_ = was_match_ = false;
  }

 private:
  void Join(size_t begin, size_t end, bool join) {
    if (held_ && !join) Emit(begin_, end_);
    if (!held_ || !join) begin_ = begin;
    end_ = end;
    held_ = true;
  }

  void Emit(size_t begin, size_t end) {
    if (begin == end) return;
    out_.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end), -1});
  }

  Behavior behavior_;
  std::vector<Piece>& out_;
  size_t begin_ = 0, end_ = 0;  // the piece that may still grow
  bool held_ = false, was_match_ = false;
};

// Replaces each text piece by what split(piece text, offset, segmenter) makes of it.
template <class Split>
void SplitPieces(PieceList& list, Behavior behavior, Split&& split) {
  list.spare_pieces.clear();
  Segmenter segmenter(behavior, &list.spare_pieces);
  const std::string_view text = list.text.bytes;
  for (const Piece& piece : list.pieces) {
    if (piece.id >= 0) {
      list.spare_pieces.push_back(piece);
      continue;
    }
    split(text.substr(0, piece.end), size_t{piece.begin}, segmenter);
    segmenter.Finish();
  }
  list.pieces.swap(list.spare_pieces);
}

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_SEGMENTER_H_
