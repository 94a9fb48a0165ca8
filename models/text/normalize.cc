#include "models/text/normalize.h"

#include <algorithm>
#include <utility>

#include "models/text/charsmap.h"
#include "models/text/parse.h"
#include "models/text/pattern.h"
#include "models/text/unicode.h"

namespace pozor {

using unicode::AsciiEnd;
using unicode::Decode;
using unicode::Is;

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

namespace {

// Calls take(character, begin, end) for each character of a text.
template <class Take>
void ForEachChar(std::string_view text, Take&& take) {
  for (size_t i = 0, size = 0; i < text.size(); i += size) {
    const char32_t c = Decode(text.data() + i, &size);
    take(c, i, i + size);
  }
}

// Copies runs of characters that `changes` leaves alone and hands the others to `rewrite`.
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

// Removes characters that are not ASCII.
template <class Remove>
void RemoveChars(AlignedText& text, AlignedText& spare, Remove&& remove) {
  if (AsciiEnd(text.bytes, 0) == text.bytes.size()) return;
  RewriteSome(text, spare, remove, [](char32_t, size_t, size_t, Rewriter&) {});
}

void LowercaseText(AlignedText& text, AlignedText& spare) {
  RewriteSome(
      text, spare,
      [](char32_t c) { return c == unicode::kDottedCapitalI || unicode::ToLower(c) != c; },
      [](char32_t c, size_t begin, size_t end, Rewriter& out) {
        if (c == unicode::kDottedCapitalI) {
          out.Replace(begin, U'i');
          out.Insert(end, char32_t{0x307});
        } else {
          out.Replace(begin, unicode::ToLower(c));
        }
      });
}

class Lowercase final : public Normalizer {
 public:
  void Apply(AlignedText& text, AlignedText& spare) const override { LowercaseText(text, spare); }
};

// One character of a normalisation form, with what it means for the old text: 1 is new, 0 takes
// the place of the next old character, -n of that and n more.
struct Change {
  char32_t c;
  int change;
  uint8_t combining;
  size_t order = 0;  // sorting by class keeps it among equals
};

void DecomposeInto(std::string_view text, bool compatibility, std::vector<Change>* out) {
  char32_t buffer[unicode::kMaxDecomposition];
  size_t pending = out->size();  // marks from here on are not in canonical order yet
  const auto sort = [&] {
    if (out->size() < pending + 2) return;
    std::sort(out->begin() + static_cast<ptrdiff_t>(pending), out->end(),
              [](const Change& a, const Change& b) {
                return a.combining != b.combining ? a.combining < b.combining : a.order < b.order;
              });
  };
  ForEachChar(text, [&](char32_t c, size_t, size_t) {
    int change = 0;
    for (const char32_t d : unicode::Decompose(c, compatibility, buffer)) {
      const uint8_t combining = unicode::RecordOf(d).combining;
      if (combining == 0) {
        sort();
        pending = out->size() + 1;
      }
      out->push_back({d, change, combining, out->size()});
      change = 1;
    }
  });
  sort();
}

// Canonical composition of a decomposed text.
void Recompose(std::vector<Change>* text) {
  std::vector<Change>& t = *text;
  size_t kept = 0;            // t[0, kept) is done
  size_t starter = t.size();  // the character that marks may join
  int last = -1;  // class of the last mark between the starter and here that stayed; -1: none
  for (const Change next : std::vector<Change>(t)) {
    const bool open = starter < kept && (last < 0 || last < next.combining);
    const char32_t composed = open ? unicode::Compose(t[starter].c, next.c) : 0;
    if (composed != 0) {
      t[starter].c = composed;
      t[starter].change += next.change - 1;
      continue;
    }
    if (next.combining == 0) {
      starter = kept;
      last = -1;
    } else if (starter < kept) {
      last = next.combining;
    }
    t[kept++] = next;
  }
  t.resize(kept);
}

// Rewrites [begin, end) of the old text by a list of changes.
void ApplyChanges(std::string_view old, size_t begin, const std::vector<Change>& changes,
                  Rewriter& out) {
  size_t at = begin;
  for (const Change& change : changes) {
    if (change.change > 0) {
      out.Insert(at, change.c);
      continue;
    }
    out.Replace(at, change.c);
    for (int i = change.change; i <= 0 && at < old.size(); ++i) {
      at += unicode::SequenceLength(old[at]);
    }
  }
}

// NFC, NFD, NFKC, NFKD (UAX 15).
class NormalizationForm final : public Normalizer {
 public:
  NormalizationForm(bool compatibility, bool compose)
      : compatibility_(compatibility), compose_(compose) {}

  void Apply(AlignedText& text, AlignedText& spare) const override {
    const std::string_view old = text.bytes;
    size_t i = AsciiEnd(old, 0);
    if (i == old.size()) return;
    Rewriter out(text, &spare);
    std::vector<Change> changes;
    size_t done = 0;
    while (i < old.size()) {
      // Nothing combines across two ASCII characters; the one before a mark may take it.
      const size_t begin = i > done ? i - 1 : i;
      if (done < begin) out.Copy(done, begin);
      size_t end = i;
      while (end < old.size() && static_cast<uint8_t>(old[end]) >= 0x80) ++end;
      Rewrite(old, begin, end, &changes, out);
      done = end;
      i = AsciiEnd(old, end);
    }
    if (done < old.size()) out.Copy(done, old.size());
    text.Swap(spare);
  }

 private:
  void Rewrite(std::string_view old, size_t begin, size_t end, std::vector<Change>* changes,
               Rewriter& out) const {
    changes->clear();
    DecomposeInto(old.substr(begin, end - begin), compatibility_, changes);
    if (compose_) Recompose(changes);
    ApplyChanges(old.substr(0, end), begin, *changes, out);
  }

  bool compatibility_, compose_;
};

class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const BertNormalizerOptions& options) : options_(options) {}
  const BertNormalizerOptions& options() const { return options_; }

  void Apply(AlignedText& text, AlignedText& spare) const override {
    if (options_.clean_text || options_.handle_chinese_chars) Clean(text, spare);
    if (options_.strip_accents) {
      decompose_.Apply(text, spare);
      RemoveChars(text, spare, [](char32_t c) { return Is(c, unicode::kBertAccentBit); });
    }
    if (options_.lowercase) LowercaseText(text, spare);
  }

 private:
  void Clean(AlignedText& text, AlignedText& spare) const {
    uint16_t mask = options_.clean_text ? unicode::kBertRemovedBit | unicode::kBertToSpaceBit : 0;
    if (options_.handle_chinese_chars) mask |= unicode::kCjkBit;
    RewriteSome(
        text, spare, [mask](char32_t c) { return c != ' ' && Is(c, mask); },
        [mask](char32_t c, size_t begin, size_t end, Rewriter& out) {
          const uint16_t bits = unicode::RecordOf(c).bits & mask;
          if ((bits & unicode::kBertRemovedBit) != 0) return;
          out.Replace(begin, " ");
          if ((bits & unicode::kCjkBit) == 0) return;
          out.Insert(end, c);
          out.Insert(end, " ");
        });
  }

  BertNormalizerOptions options_;
  NormalizationForm decompose_{false, false};
};

class StripAccents final : public Normalizer {
 public:
  void Apply(AlignedText& text, AlignedText& spare) const override {
    RemoveChars(text, spare, [](char32_t c) { return Is(c, unicode::kAccentBit); });
  }
};

class Strip final : public Normalizer {
 public:
  Strip(bool left, bool right) : left_(left), right_(right) {}

  void Apply(AlignedText& text, AlignedText& spare) const override {
    size_t begin = 0, end = text.bytes.size(), size = 0;
    while (left_ && begin < end && Is(Decode(text.bytes.data() + begin, &size), kSpace)) {
      begin += size;
    }
    while (right_ && begin < end && Is(unicode::DecodeBefore(text.bytes, end, &size), kSpace)) {
      end -= size;
    }
    if (begin == 0 && end == text.bytes.size()) return;
    Rewriter(text, &spare).Copy(begin, end);
    text.Swap(spare);
  }

 private:
  static constexpr uint16_t kSpace = unicode::kSpaceBit;
  bool left_, right_;
};

// The control characters and spaces of neural machine translation's normaliser.
class Nmt final : public Normalizer {
 public:
  void Apply(AlignedText& text, AlignedText& spare) const override {
    RewriteSome(
        text, spare, [](char32_t c) { return Removed(c) || Spaced(c); },
        [](char32_t c, size_t begin, size_t, Rewriter& out) {
          if (!Removed(c)) out.Replace(begin, " ");
        });
  }

 private:
  static bool Removed(char32_t c) {
    return (c >= 1 && c <= 8) || c == 0xB || (c >= 0xE && c <= 0x1F) || c == 0x7F || c == 0x8F ||
           c == 0x9F;
  }
  static bool Spaced(char32_t c) {
    return c == 9 || c == 0xA || c == 0xC || c == 0xD || c == 0x1680 ||
           (c >= 0x200B && c <= 0x200F) || c == 0x2028 || c == 0x2029 || c == 0x2581 ||
           c == 0xFEFF || c == 0xFFFD;
  }
};

class Prepend final : public Normalizer {
 public:
  explicit Prepend(std::string text) : text_(std::move(text)) {}

  void Apply(AlignedText& text, AlignedText& spare) const override {
    if (text.bytes.empty() || text_.empty()) return;
    Rewriter out(text, &spare);
    out.Replace(0, text_);
    out.Copy(0, text.bytes.size());
    text.Swap(spare);
  }

 private:
  std::string text_;
};

class Replace final : public Normalizer {
 public:
  Replace(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}

  void Apply(AlignedText& text, AlignedText& spare) const override {
    Pattern::Match match;
    if (!pattern_.Find(text.bytes, 0, &match)) {
      text.failed |= match.failed;
      return;
    }
    Rewriter out(text, &spare);
    size_t copied = 0;
    do {
      if (copied < match.begin) out.Copy(copied, match.begin);
      if (!content_.empty()) out.Insert(match.end, content_);
      copied = match.end;
    } while (pattern_.Find(text.bytes, match.next, &match));
    spare.failed = text.failed || match.failed;
    if (copied < text.bytes.size()) out.Copy(copied, text.bytes.size());
    text.Swap(spare);
  }

 private:
  Pattern pattern_;
  std::string content_;
};

// Each byte becomes the character that stands for it in a byte-level vocabulary.
class ByteLevelNormalizer final : public Normalizer {
 public:
  void Apply(AlignedText& text, AlignedText& spare) const override {
    Rewriter out(text, &spare);
    ForEachChar(text.bytes, [&](char32_t, size_t begin, size_t end) {
      out.Replace(begin, ByteChar(static_cast<uint8_t>(text.bytes[begin])));
      for (size_t i = begin + 1; i < end; ++i) {
        out.Insert(end, ByteChar(static_cast<uint8_t>(text.bytes[i])));
      }
    });
    text.Swap(spare);
  }
};

// SentencePiece's table of replacements, looked up by grapheme cluster where the cluster is short
// and by character elsewhere, as Hugging Face does it (SentencePiece takes the longest match).
class Precompiled final : public Normalizer {
 public:
  explicit Precompiled(CharsMap map) : map_(std::move(map)) {}

  void Apply(AlignedText& text, AlignedText& spare) const override {
    const std::string_view old = text.bytes;
    std::vector<Change> changes;  // of the whole text, kept only if origins are wanted
    std::string& out = spare.bytes;
    out.clear();
    size_t copied = 0;
    const auto keep_until = [&](size_t end) {
      if (text.tracked) {
        ForEachChar(old.substr(copied, end - copied),
                    [&](char32_t c, size_t, size_t) { changes.push_back({c, 0, 0}); });
      } else {
        out.append(old, copied, end - copied);
      }
    };
    bool found_any = false;
    ForEachHit(old, [&](size_t begin, size_t end, std::string_view found) {
      keep_until(begin);
      found_any = true;
      if (text.tracked) {
        Substitute(old.substr(begin, end - begin), found, &changes);
      } else {
        out.append(found);
      }
      copied = end;
    });
    if (!found_any) return;
    keep_until(old.size());
    if (text.tracked) {
      Rewriter rewriter(text, &spare);
      ApplyChanges(old, 0, changes, rewriter);
    } else {
      // The first character always takes the origin of the first, whatever was dropped before.
      const bool starts = text.lead > 0 && !out.empty();
      spare.spans.clear();
      spare.base = text.base;
      spare.tracked = false;
      spare.failed = text.failed;
      spare.lead = starts ? unicode::SequenceLength(out[0]) : 0;
    }
    text.Swap(spare);
  }

 private:
  // Calls hit(begin, end, replacement) for everything that is replaced.
  template <class Hit>
  void ForEachHit(std::string_view text, Hit&& hit) const {
    std::string_view found;
    for (size_t i = 0; i < text.size();) {
      const auto byte = static_cast<uint8_t>(text[i]);
      const auto next = static_cast<uint8_t>(i + 1 < text.size() ? text[i + 1] : 0);
      if (byte < 0x80 && next < 0x80 && byte != '\r') {
        // An ASCII character before another is a cluster of its own.
        if (map_.Replaces(byte) && map_.Find(text.substr(i, 1), &found)) hit(i, i + 1, found);
        ++i;
        continue;
      }
      const size_t end = unicode::GraphemeEnd(text, i);
      if (end - i < 6 && map_.Find(text.substr(i, end - i), &found)) {
        hit(i, end, found);
        i = end;
        continue;
      }
      for (size_t size = 0; i < end; i += size) {
        size = unicode::SequenceLength(text[i]);
        if (map_.Find(text.substr(i, size), &found)) hit(i, i + size, found);
      }
    }
  }

  // The new characters take the places of the old ones one by one; surplus new ones are added, the
  // last new one stands for surplus old ones too. If nothing is new the character before does,
  // and at the start of the text nobody (so that all origins shift), as Hugging Face has it.
  static void Substitute(std::string_view old, std::string_view found,
                         std::vector<Change>* changes) {
    const auto old_count = static_cast<int>(unicode::CountCodePoints(old));
    int count = 0;
    ForEachChar(found, [&](char32_t c, size_t, size_t) {
      changes->push_back({c, count < old_count ? 0 : 1, 0});
      ++count;
    });
    if (count < old_count && !changes->empty()) changes->back().change += count - old_count;
  }

  CharsMap map_;
};

class Sequence final : public Normalizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<Normalizer>> parts) : parts_(std::move(parts)) {}
  const std::vector<std::unique_ptr<Normalizer>>& parts() const { return parts_; }

  void Apply(AlignedText& text, AlignedText& spare) const override {
    for (const auto& part : parts_) part->Apply(text, spare);
  }

 private:
  std::vector<std::unique_ptr<Normalizer>> parts_;
};

using MaybeNormalizer = Result<std::unique_ptr<Normalizer>>;

MaybeNormalizer Parse(const JsonValue& json, const std::string& where, int depth);

MaybeNormalizer ParseSequence(const JsonValue& json, const std::string& where, int depth) {
  if (depth >= parse::kMaxDepth) {
    return parse::Bad(where, "normalizers",
                      "Sequences are nested deeper than " + std::to_string(parse::kMaxDepth));
  }
  const JsonValue* list = json.Find("normalizers");
  if (list == nullptr || !list->is_array()) return parse::Missing(where, "normalizers");
  std::vector<std::unique_ptr<Normalizer>> parts;
  for (const JsonValue& item : list->items()) {
    POZOR_TRY(auto part, Parse(item, where, depth + 1));
    if (part != nullptr) parts.push_back(std::move(part));
  }
  return MakeSequence(std::move(parts));
}

MaybeNormalizer ParseBert(const JsonValue& json, const std::string& where) {
  BertNormalizerOptions options;
  POZOR_TRY(options.clean_text, parse::Bool(json, "clean_text", true, where));
  POZOR_TRY(options.handle_chinese_chars, parse::Bool(json, "handle_chinese_chars", true, where));
  POZOR_TRY(options.lowercase, parse::Bool(json, "lowercase", true, where));
  POZOR_TRY(options.strip_accents, parse::Bool(json, "strip_accents", options.lowercase, where));
  return MakeBertNormalizer(options);
}

MaybeNormalizer ParseReplace(const JsonValue& json, const std::string& where) {
  POZOR_TRY(const parse::Pattern source, parse::PatternOf(json, where));
  POZOR_TRY(std::string content, parse::String(json, "content", std::nullopt, where));
  POZOR_TRY(Pattern pattern, Pattern::Compile(source.text, source.regex, where));
  return std::unique_ptr<Normalizer>(
      std::make_unique<Replace>(std::move(pattern), std::move(content)));
}

MaybeNormalizer Parse(const JsonValue& json, const std::string& where, int depth) {
  if (json.is_null()) return std::unique_ptr<Normalizer>();
  POZOR_TRY(const std::string_view type, parse::Type(json, where));
  const auto made = [](auto normalizer) {
    return std::unique_ptr<Normalizer>(std::move(normalizer));
  };
  if (type == "Sequence") return ParseSequence(json, where, depth);
  if (type == "BertNormalizer") return ParseBert(json, where);
  if (type == "Lowercase") return MakeLowercase();
  if (type == "StripAccents") return made(std::make_unique<StripAccents>());
  if (type == "Nmt") return made(std::make_unique<Nmt>());
  if (type == "NFC") return made(std::make_unique<NormalizationForm>(false, true));
  if (type == "NFD") return made(std::make_unique<NormalizationForm>(false, false));
  if (type == "NFKC") return made(std::make_unique<NormalizationForm>(true, true));
  if (type == "NFKD") return made(std::make_unique<NormalizationForm>(true, false));
  if (type == "ByteLevel") return made(std::make_unique<ByteLevelNormalizer>());
  if (type == "Replace") return ParseReplace(json, where);
  if (type == "Strip") {
    POZOR_TRY(const bool left, parse::Bool(json, "strip_left", std::nullopt, where));
    POZOR_TRY(const bool right, parse::Bool(json, "strip_right", std::nullopt, where));
    return made(std::make_unique<Strip>(left, right));
  }
  if (type == "Prepend") {
    POZOR_TRY(std::string text, parse::String(json, "prepend", std::nullopt, where));
    return made(std::make_unique<Prepend>(std::move(text)));
  }
  if (type == "Precompiled") {
    POZOR_TRY(const std::string map,
              parse::String(json, "precompiled_charsmap", std::nullopt, where));
    POZOR_TRY(CharsMap parsed, CharsMap::FromBase64(map, where));
    return made(std::make_unique<Precompiled>(std::move(parsed)));
  }
  return parse::Bad(where, "type", "unknown normalizer \"" + std::string(type) + "\"");
}

}  // namespace

std::unique_ptr<Normalizer> MakeBertNormalizer(const BertNormalizerOptions& options) {
  return std::make_unique<BertNormalizer>(options);
}

std::unique_ptr<Normalizer> MakeLowercase() { return std::make_unique<Lowercase>(); }

std::unique_ptr<Normalizer> MakeNfc() { return std::make_unique<NormalizationForm>(false, true); }

MaybeNormalizer MakeSentencePieceNormalizer(const SentencePieceNormalizerOptions& options,
                                            const std::string& where) {
  std::vector<std::unique_ptr<Normalizer>> parts;
  const auto replace = [&](const char* what, bool regex, const char* by) -> Status {
    POZOR_TRY(Pattern pattern, Pattern::Compile(what, regex, where));
    parts.push_back(std::make_unique<Replace>(std::move(pattern), by));
    return Status();
  };
  if (options.lowercase) {
    POZOR_RETURN_IF_ERROR(replace("``", false, "\""));
    POZOR_RETURN_IF_ERROR(replace("''", false, "\""));
    parts.push_back(std::make_unique<NormalizationForm>(true, false));
    parts.push_back(std::make_unique<StripAccents>());
    parts.push_back(MakeLowercase());
  }
  if (!options.charsmap.empty()) {
    POZOR_TRY(CharsMap map, CharsMap::FromBytes(options.charsmap, where));
    parts.push_back(std::make_unique<Precompiled>(std::move(map)));
  }
  if (options.remove_extra_spaces) {
    parts.push_back(std::make_unique<Strip>(true, true));
    POZOR_RETURN_IF_ERROR(replace(" {2,}", true, " "));
  }
  if (options.prepend) parts.push_back(std::make_unique<Prepend>("\u2581"));
  if (options.mark_spaces) POZOR_RETURN_IF_ERROR(replace(" ", false, "\u2581"));
  return MakeSequence(std::move(parts));
}

std::unique_ptr<Normalizer> MakeSequence(std::vector<std::unique_ptr<Normalizer>> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  return std::make_unique<Sequence>(std::move(parts));
}

const BertNormalizerOptions* AsBertNormalizer(const Normalizer* normalizer) {
  const auto* bert = dynamic_cast<const BertNormalizer*>(normalizer);
  return bert != nullptr ? &bert->options() : nullptr;
}

bool IsBertNormalizer(const Normalizer* normalizer) {
  if (AsBertNormalizer(normalizer) != nullptr) return true;
  const auto* sequence = dynamic_cast<const Sequence*>(normalizer);
  return sequence != nullptr && sequence->parts().size() == 2 &&
         dynamic_cast<const Lowercase*>(sequence->parts()[0].get()) != nullptr &&
         AsBertNormalizer(sequence->parts()[1].get()) != nullptr;
}

bool Lowercases(const Normalizer* normalizer) {
  if (const BertNormalizerOptions* bert = AsBertNormalizer(normalizer)) return bert->lowercase;
  if (dynamic_cast<const Lowercase*>(normalizer) != nullptr) return true;
  const auto* sequence = dynamic_cast<const Sequence*>(normalizer);
  return sequence != nullptr &&
         std::any_of(sequence->parts().begin(), sequence->parts().end(),
                     [](const auto& part) { return Lowercases(part.get()); });
}

MaybeNormalizer ParseNormalizer(const JsonValue& json, const std::string& where) {
  return Parse(json, where, 0);
}

}  // namespace pozor
