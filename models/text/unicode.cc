#include "models/text/unicode.h"

#include <algorithm>
#include <cstring>

namespace pozor::unicode {
namespace {

constexpr char32_t kHangulBase = 0xAC00, kLBase = 0x1100, kVBase = 0x1161, kTBase = 0x11A7;
constexpr char32_t kLCount = 19, kVCount = 21, kTCount = 28;
constexpr char32_t kHangulCount = kLCount * kVCount * kTCount;

bool Continues(std::string_view text, size_t i) {
  return i < text.size() && (static_cast<uint8_t>(text[i]) & 0xC0u) == 0x80u;
}

// Length of the valid sequence at i, 0 if there is none.
size_t ValidSequence(std::string_view text, size_t i) {
  const auto lead = static_cast<uint8_t>(text[i]);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t size = SequenceLength(text[i]);
  for (size_t k = 1; k < size; ++k) {
    if (!Continues(text, i + k)) return 0;
  }
  const auto second = static_cast<uint8_t>(text[i + 1]);
  if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second > 0x9F)) return 0;
  if ((lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second > 0x8F)) return 0;
  return size;
}

}  // namespace

size_t EncodeUtf8(char32_t c, char* out) {
  const auto put = [out](size_t i, char32_t bits) { out[i] = static_cast<char>(bits); };
  if (c < 0x80) {
    put(0, c);
    return 1;
  }
  if (c < 0x800) {
    put(0, 0xC0 | c >> 6);
    put(1, 0x80 | (c & 0x3F));
    return 2;
  }
  if (c < 0x10000) {
    put(0, 0xE0 | c >> 12);
    put(1, 0x80 | (c >> 6 & 0x3F));
    put(2, 0x80 | (c & 0x3F));
    return 3;
  }
  put(0, 0xF0 | c >> 18);
  put(1, 0x80 | (c >> 12 & 0x3F));
  put(2, 0x80 | (c >> 6 & 0x3F));
  put(3, 0x80 | (c & 0x3F));
  return 4;
}

void AppendUtf8(char32_t c, std::string* out) {
  char bytes[4];
  out->append(bytes, EncodeUtf8(c, bytes));
}

size_t AsciiEnd(std::string_view text, size_t begin) {
  size_t i = begin;
  for (; i + 8 <= text.size(); i += 8) {
    uint64_t bytes;
    std::memcpy(&bytes, text.data() + i, 8);
    if ((bytes & 0x8080808080808080u) != 0) break;
  }
  while (i < text.size() && static_cast<uint8_t>(text[i]) < 0x80) ++i;
  return i;
}

size_t FindInvalidUtf8(std::string_view text) {
  size_t i = 0;
  while (true) {
    i = AsciiEnd(text, i);
    while (i < text.size() && static_cast<uint8_t>(text[i]) >= 0x80) {
      const size_t size = ValidSequence(text, i);
      if (size == 0) return i;
      i += size;
    }
    if (i >= text.size()) return text.size();
  }
}

bool BeginsCharacter(std::string_view bytes) {
  // What is missing may be filled up with the lowest or the highest continuation.
  for (const char fill : {'\x80', '\xBF'}) {
    std::string whole(bytes);
    whole.resize(std::max(bytes.size(), SequenceLength(bytes[0])), fill);
    if (bytes.size() <= SequenceLength(bytes[0]) && ValidSequence(whole, 0) == whole.size()) {
      return true;
    }
  }
  return false;
}

size_t CountCodePoints(std::string_view text) {
  return static_cast<size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xC0u) != 0x80u; }));
}

std::span<const char32_t> Decompose(char32_t c, bool compatibility,
                                    char32_t (&out)[kMaxDecomposition]) {
  if (c - kHangulBase < kHangulCount) {
    const char32_t s = c - kHangulBase;
    out[0] = kLBase + s / (kVCount * kTCount);
    out[1] = kVBase + s % (kVCount * kTCount) / kTCount;
    out[2] = kTBase + s % kTCount;
    return {out, s % kTCount == 0 ? size_t{2} : size_t{3}};
  }
  const size_t place =
      compatibility ? Lookup(kNfkdIndex, kNfkdData, c) : Lookup(kNfdIndex, kNfdData, c);
  if (place == 0) {
    out[0] = c;
    return {out, size_t{1}};
  }
  const size_t size = kDecompositions[place];
  for (size_t i = 0; i < size; ++i) out[i] = kDecompositions[place + 1 + i];
  return {out, size};
}

char32_t Compose(char32_t first, char32_t second) {
  if (first - kLBase < kLCount && second - kVBase < kVCount) {
    return kHangulBase + ((first - kLBase) * kVCount + (second - kVBase)) * kTCount;
  }
  if (first - kHangulBase < kHangulCount && (first - kHangulBase) % kTCount == 0 &&
      second - (kTBase + 1) < kTCount - 1) {
    return first + (second - kTBase);
  }
  const uint64_t key = uint64_t{first} << 32 | second;
  const uint64_t* end = std::end(kComposedFrom);
  const uint64_t* found = std::lower_bound(std::begin(kComposedFrom), end, key);
  return found != end && *found == key ? kComposedTo[found - kComposedFrom] : 0;
}

namespace {

// What the rules that look further back than one character need to know of the cluster so far.
struct ClusterState {
  uint8_t grapheme = kOther;
  bool pictograph = false;  // GB11: a pictograph, then only Extend
  bool pictograph_joined = false;
  bool odd_regional = false;  // GB12, GB13
  bool consonant = false;     // GB9c: a consonant, then only linkers and extends
  bool linked = false;
};

bool BreaksBetween(const ClusterState& before, const CharRecord& after) {
  const uint8_t a = before.grapheme, b = after.grapheme;
  if (a == kCarriageReturn && b == kLineFeed) return false;
  if (a == kControl || a == kCarriageReturn || a == kLineFeed) return true;
  if (b == kControl || b == kCarriageReturn || b == kLineFeed) return true;
  if (a == kHangulL && (b == kHangulL || b == kHangulV || b == kHangulLV || b == kHangulLVT)) {
    return false;
  }
  if ((a == kHangulLV || a == kHangulV) && (b == kHangulV || b == kHangulT)) return false;
  if ((a == kHangulLVT || a == kHangulT) && b == kHangulT) return false;
  if (b == kExtend || b == kJoiner || b == kSpacingMark || a == kPrepend) return false;
  if (after.conjunct == 1 && before.consonant && before.linked) return false;
  if (b == kPictograph && before.pictograph_joined) return false;
  return !(a == kRegional && b == kRegional && before.odd_regional);
}

void Take(const CharRecord& record, ClusterState* state) {
  const uint8_t g = record.grapheme;
  state->pictograph_joined = g == kJoiner && state->pictograph;
  if (g == kPictograph) {
    state->pictograph = true;
  } else if (g != kExtend) {
    state->pictograph = false;
  }
  state->odd_regional = g == kRegional && !state->odd_regional;
  if (record.conjunct == 1) {
    state->consonant = true;
    state->linked = false;
  } else if (record.conjunct == 2) {
    state->linked = true;
  } else if (record.conjunct != 3) {
    state->consonant = state->linked = false;
  }
  state->grapheme = g;
}

}  // namespace

size_t GraphemeEnd(std::string_view text, size_t begin) {
  ClusterState state;
  size_t i = begin, size = 0;
  while (i < text.size()) {
    const CharRecord& record = RecordOf(Decode(text.data() + i, &size));
    if (i > begin && BreaksBetween(state, record)) break;
    Take(record, &state);
    i += size;
  }
  return i;
}

}  // namespace pozor::unicode
