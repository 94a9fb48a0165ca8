#include "models/text/aligned_text.h"

#include <algorithm>
#include <utility>

namespace pozor {

void AlignedText::Start(std::string_view original, uint32_t begin, bool track) {
  bytes.assign(original);
  base = begin;
  tracked = track;
  failed = false;
  lead = original.empty() ? 0 : unicode::SequenceLength(original[0]);
  spans.clear();
  if (!track) return;
  spans.reserve(original.size());
  for (size_t i = 0; i < original.size();) {
    const auto size = static_cast<uint32_t>(unicode::SequenceLength(original[i]));
    const uint32_t at = begin + static_cast<uint32_t>(i);
    spans.insert(spans.end(), size, Span{at, at + size});
    i += size;
  }
}

void AlignedText::Clear() {
  bytes.clear();
  spans.clear();
  lead = 0;
}

void AlignedText::Swap(AlignedText& other) {
  bytes.swap(other.bytes);
  spans.swap(other.spans);
  std::swap(base, other.base);
  std::swap(lead, other.lead);
  std::swap(tracked, other.tracked);
  std::swap(failed, other.failed);
}

Rewriter::Rewriter(const AlignedText& from, AlignedText* to) : from_(from), to_(*to) {
  to_.Clear();
  to_.base = from.base;
  to_.tracked = from.tracked;
  to_.failed = from.failed;
  to_.bytes.reserve(from.bytes.size() + 16);
}

void Rewriter::Copy(size_t begin, size_t end) {
  if (to_.bytes.size() == to_.lead && begin < from_.lead) {
    to_.lead += std::min(end, from_.lead) - begin;
  }
  to_.bytes.append(from_.bytes, begin, end - begin);
  if (from_.tracked) {
    to_.spans.insert(to_.spans.end(), from_.spans.begin() + static_cast<ptrdiff_t>(begin),
                     from_.spans.begin() + static_cast<ptrdiff_t>(end));
  }
}

// `next` is the end of the byte that gives the origin; 0 if there is no such byte.
void Rewriter::Put(size_t origin, size_t next, std::string_view bytes) {
  const bool first = next == 0 || origin < from_.lead;
  if (first && to_.bytes.size() == to_.lead) to_.lead += bytes.size();
  to_.bytes.append(bytes);
  if (from_.tracked) {
    const Span span = next == 0 ? Span{from_.base, from_.base} : from_.spans[origin];
    to_.spans.insert(to_.spans.end(), bytes.size(), span);
  }
}

void Rewriter::Replace(size_t at, char32_t c) {
  char bytes[4];
  Replace(at, {bytes, unicode::EncodeUtf8(c, bytes)});
}

void Rewriter::Insert(size_t end, char32_t c) {
  char bytes[4];
  Insert(end, {bytes, unicode::EncodeUtf8(c, bytes)});
}

}  // namespace pozor
