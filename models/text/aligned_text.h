// Text with the origin of each byte, and the means to rewrite it.
#ifndef POZOR_MODELS_TEXT_ALIGNED_TEXT_H_
#define POZOR_MODELS_TEXT_ALIGNED_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer.h"
#include "models/text/unicode.h"

namespace pozor {

// Text on its way through the pipeline.
struct AlignedText {
  std::string bytes;
  std::vector<Span> spans;  // if tracked: for each byte, the bytes of the original it comes from
  uint32_t base = 0;        // where this piece begins in the original
  size_t lead = 0;          // so many leading bytes come from the piece's first character
  bool tracked = false;
  bool failed = false;  // a regular expression took too many steps

  void Start(std::string_view original, uint32_t begin, bool track);
  void Clear();
  void Swap(AlignedText& other);
};

// Writes a new version of a text while it keeps the origins. Positions are those of the old one.
class Rewriter {
 public:
  Rewriter(const AlignedText& from, AlignedText* to);

  // Bytes [begin, end) as they are.
  void Copy(size_t begin, size_t end);
  // Something that takes the place of what stands at `at`.
  void Replace(size_t at, std::string_view bytes) { Put(at, at + 1, bytes); }
  void Replace(size_t at, char32_t c);
  // Something new that follows what ends at `end`; it shares the origin of the byte before.
  void Insert(size_t end, std::string_view bytes) { Put(end - 1, end, bytes); }
  void Insert(size_t end, char32_t c);

 private:
  void Put(size_t origin, size_t next, std::string_view bytes);

  const AlignedText& from_;
  AlignedText& to_;
};

// Calls take(character, begin, end) for each character of a text.
template <class Take>
void ForEachChar(std::string_view text, Take&& take) {
  for (size_t i = 0, size = 0; i < text.size(); i += size) {
    const char32_t c = unicode::Decode(text.data() + i, &size);
    take(c, i, i + size);
  }
}

// Copies runs of characters that `changes` leaves alone and hands the others to
// rewrite(character, begin, end, rewriter).
template <class Changes, class Rewrite>
void RewriteSome(AlignedText& text, AlignedText& spare, Changes&& changes, Rewrite&& rewrite) {
  Rewriter out(text, &spare);
  size_t copied = 0;
  ForEachChar(text.bytes, [&](char32_t c, size_t begin, size_t end) {
    if (!changes(c)) return;
    if (copied < begin) out.Copy(copied, begin);
    copied = end;
    rewrite(c, begin, end, out);
  });
  if (copied == 0) return;
  if (copied < text.bytes.size()) out.Copy(copied, text.bytes.size());
  text.Swap(spare);
}

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_ALIGNED_TEXT_H_
