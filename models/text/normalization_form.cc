// Normalisers that rewrite by lists of changes: Unicode's normalisation forms and SentencePiece's
// table of replacements.
#include <algorithm>
#include <utility>
#include <vector>

#include "models/text/charsmap.h"
#include "models/text/normalize.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

using unicode::AsciiEnd;

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

}  // namespace

std::unique_ptr<Normalizer> MakeNormalizationForm(bool compatibility, bool compose) {
  return std::make_unique<NormalizationForm>(compatibility, compose);
}

std::unique_ptr<Normalizer> MakePrecompiled(CharsMap map) {
  return std::make_unique<Precompiled>(std::move(map));
}

}  // namespace pozor
