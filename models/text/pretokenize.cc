#include "models/text/pretokenize.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "models/text/parse.h"
#include "models/text/pattern.h"
#include "models/text/unicode.h"

namespace pozor {

void PieceList::Clear() {
  text.Clear();
  pieces.clear();
  failed = false;
}

namespace {

using unicode::Decode;
using unicode::Is;

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

// Splits at single characters that `matches`.
template <class Matches>
void SplitAtChars(PieceList& list, Behavior behavior, Matches&& matches) {
  SplitPieces(list, behavior, [&](std::string_view text, size_t begin, Segmenter& out) {
    size_t last = begin;
    for (size_t i = begin, size = 0; i < text.size(); i += size) {
      if (!matches(Decode(text.data() + i, &size))) continue;
      if (last < i) out.Add(last, i, false);
      out.Add(i, i + size, true);
      last = i + size;
    }
    if (last < text.size()) out.Add(last, text.size(), false);
  });
}

class WhitespaceSplit final : public PreTokenizer {
 public:
  void Apply(PieceList& list) const override {
    SplitAtChars(list, Behavior::kRemoved, [](char32_t c) { return Is(c, unicode::kSpaceBit); });
  }
};

class Punctuation final : public PreTokenizer {
 public:
  explicit Punctuation(Behavior behavior) : behavior_(behavior) {}
  void Apply(PieceList& list) const override {
    SplitAtChars(list, behavior_, [](char32_t c) { return Is(c, unicode::kPunctuationBit); });
  }

 private:
  Behavior behavior_;
};

class BertPreTokenizer final : public PreTokenizer {
 public:
  void Apply(PieceList& list) const override {
    WhitespaceSplit().Apply(list);
    Punctuation(Behavior::kIsolated).Apply(list);
  }
};

class Digits final : public PreTokenizer {
 public:
  explicit Digits(bool individual) : individual_(individual) {}
  void Apply(PieceList& list) const override {
    SplitAtChars(list, individual_ ? Behavior::kIsolated : Behavior::kContiguous,
                 [](char32_t c) { return Is(c, unicode::kNumericBit); });
  }

 private:
  bool individual_;
};

class CharDelimiterSplit final : public PreTokenizer {
 public:
  explicit CharDelimiterSplit(char32_t delimiter) : delimiter_(delimiter) {}
  void Apply(PieceList& list) const override {
    SplitAtChars(list, Behavior::kRemoved, [this](char32_t c) { return c == delimiter_; });
  }

 private:
  char32_t delimiter_;
};

// \w+|[^\w\s]+
class Whitespace final : public PreTokenizer {
 public:
  void Apply(PieceList& list) const override {
    SplitPieces(list, Behavior::kIsolated, [](std::string_view text, size_t begin, Segmenter& out) {
      size_t last = begin;
      uint16_t kind = 0;
      for (size_t i = begin, size = 0; i < text.size(); i += size) {
        const uint16_t bits = unicode::RecordOf(Decode(text.data() + i, &size)).bits;
        const uint16_t now = bits & (unicode::kWordBit | unicode::kSpaceBit);
        if (i > begin && now != kind) {
          if (kind != unicode::kSpaceBit) out.Add(last, i, false);
          last = i;
        }
        kind = now;
      }
      if (kind != unicode::kSpaceBit) out.Add(last, text.size(), false);
    });
  }
};

class Split final : public PreTokenizer {
 public:
  Split(Pattern pattern, Behavior behavior, bool invert)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  void Apply(PieceList& list) const override {
    SplitPieces(list, behavior_, [&](std::string_view text, size_t begin, Segmenter& out) {
      const std::string_view piece = text.substr(begin);
      size_t last = 0, from = 0;
      Pattern::Match match;
      while (pattern_.Find(piece, from, &match)) {
        if (last < match.begin) out.Add(begin + last, begin + match.begin, invert_);
        out.Add(begin + match.begin, begin + match.end, !invert_);
        last = match.end;
        from = match.next;
      }
      list.failed |= match.failed;
      if (last < piece.size()) out.Add(begin + last, text.size(), invert_);
    });
  }

 private:
  Pattern pattern_;
  Behavior behavior_;
  bool invert_;
};

class FixedLength final : public PreTokenizer {
 public:
  explicit FixedLength(size_t length) : length_(length) {}
  void Apply(PieceList& list) const override {
    SplitPieces(list, Behavior::kIsolated,
                [this](std::string_view text, size_t begin, Segmenter& out) {
                  size_t last = begin, count = 0;
                  for (size_t i = begin; i < text.size(); ++count) {
                    if (count == length_) {
                      out.Add(last, i, false);
                      last = i;
                      count = 0;
                    }
                    i += unicode::SequenceLength(text[i]);
                  }
                  out.Add(last, text.size(), false);
                });
  }

 private:
  size_t length_;
};

// Cuts where the script changes; kana counts as Han, a space belongs to any script. What stands
// before the first character with a script is dropped, as in the original.
class UnicodeScripts final : public PreTokenizer {
 public:
  void Apply(PieceList& list) const override {
    SplitPieces(list, Behavior::kIsolated, [](std::string_view text, size_t begin, Segmenter& out) {
      int last_script = -1;
      size_t last = text.size();
      for (size_t i = begin, size = 0; i < text.size(); i += size) {
        const uint8_t script = ScriptFor(Decode(text.data() + i, &size));
        if (script == 0) continue;
        if (script != last_script) {
          if (last_script >= 0) out.Add(last, i, false);
          last = i;
        }
        last_script = script;
      }
      out.Add(last, text.size(), false);
    });
  }

 private:
  static uint8_t ScriptFor(char32_t c) {
    if (c == 0x30FC) return unicode::kScriptHan;
    if (c == ' ') return 0;
    const uint8_t script = unicode::ScriptOf(c);
    const bool kana = script == unicode::kScriptHiragana || script == unicode::kScriptKatakana;
    return kana ? unicode::kScriptHan : script;
  }
};

// Rewrites the text pieces one by one; rewrite(piece, out) writes the new form of each.
template <class Rewrite>
void RewritePieces(PieceList& list, Rewrite&& rewrite) {
  Rewriter out(list.text, &list.spare);
  for (Piece& piece : list.pieces) {
    const auto begin = static_cast<uint32_t>(list.spare.bytes.size());
    if (piece.id >= 0) {
      out.Copy(piece.begin, piece.end);
    } else {
      rewrite(piece, out);
    }
    piece.begin = begin;
    piece.end = static_cast<uint32_t>(list.spare.bytes.size());
  }
  list.text.Swap(list.spare);
}

class Metaspace final : public PreTokenizer {
 public:
  enum class Scheme { kAlways, kFirst, kNever };
  Metaspace(std::string replacement, Scheme scheme, bool split)
      : replacement_(std::move(replacement)), scheme_(scheme), split_(split) {}

  void Apply(PieceList& list) const override {
    const AlignedText& text = list.text;
    RewritePieces(list, [&](const Piece& piece, Rewriter& out) {
      const std::string_view bytes(text.bytes.data() + piece.begin, piece.end - piece.begin);
      const bool begun = bytes[0] == ' ' || bytes.starts_with(replacement_);
      // Whether the piece comes from the very start of the text.
      const bool first =
          text.tracked ? text.spans[piece.begin].begin == 0 : piece.begin < text.lead;
      const bool wanted = scheme_ == Scheme::kAlways || (scheme_ == Scheme::kFirst && first);
      if (wanted && !begun) out.Replace(piece.begin, replacement_);
      size_t copied = 0;
      for (size_t at; (at = bytes.find(' ', copied)) != std::string_view::npos; copied = at + 1) {
        if (copied < at) out.Copy(piece.begin + copied, piece.begin + at);
        out.Replace(piece.begin + at, replacement_);
      }
      if (copied < bytes.size()) out.Copy(piece.begin + copied, piece.end);
    });
    if (split_) SplitWords(list);
  }

 private:
  // As Split(replacement, MergedWithNext).
  void SplitWords(PieceList& list) const {
    SplitPieces(list, Behavior::kMergedWithNext,
                [this](std::string_view text, size_t begin, Segmenter& out) {
                  size_t last = begin;
                  for (size_t at; (at = text.find(replacement_, last)) != std::string_view::npos;
                       last = at + replacement_.size()) {
                    if (last < at) out.Add(last, at, false);
                    out.Add(at, at + replacement_.size(), true);
                  }
                  if (last < text.size()) out.Add(last, text.size(), false);
                });
  }

  std::string replacement_;
  Scheme scheme_;
  bool split_;
};

class ByteLevel final : public PreTokenizer {
 public:
  ByteLevel(bool add_prefix_space, bool use_regex)
      : add_prefix_space_(add_prefix_space), use_regex_(use_regex) {}
  void set_add_prefix_space(bool value) { add_prefix_space_ = value; }
  void drop_mapping() { map_ = false; }

  void Apply(PieceList& list) const override {
    if (add_prefix_space_) {
      RewritePieces(list, [&](const Piece& piece, Rewriter& out) {
        if (list.text.bytes[piece.begin] != ' ') out.Replace(piece.begin, " ");
        out.Copy(piece.begin, piece.end);
      });
    }
    if (use_regex_) words_.Apply(list);
    if (!map_) return;
    const std::string_view text = list.text.bytes;
    RewritePieces(list, [&](const Piece& piece, Rewriter& out) {
      for (size_t i = piece.begin; i < piece.end; ++i) {
        out.Replace(i, ByteChar(static_cast<uint8_t>(text[i])));
      }
    });
  }

 private:
  bool add_prefix_space_, use_regex_;
  bool map_ = true;
  Split words_{Pattern::Gpt2(), Behavior::kIsolated, false};
};

class Sequence final : public PreTokenizer {
 public:
  explicit Sequence(std::vector<std::unique_ptr<PreTokenizer>> parts) : parts_(std::move(parts)) {}
  const std::vector<std::unique_ptr<PreTokenizer>>& parts() const { return parts_; }
  void Apply(PieceList& list) const override {
    for (const auto& part : parts_) part->Apply(list);
  }

 private:
  std::vector<std::unique_ptr<PreTokenizer>> parts_;
};

using MaybePreTokenizer = Result<std::unique_ptr<PreTokenizer>>;

MaybePreTokenizer Parse(const JsonValue& json, const std::string& where, int depth);

MaybePreTokenizer ParseSequence(const JsonValue& json, const std::string& where, int depth) {
  if (depth >= parse::kMaxDepth) {
    return parse::Bad(where, "pretokenizers",
                      "Sequences are nested deeper than " + std::to_string(parse::kMaxDepth));
  }
  const JsonValue* list = json.Find("pretokenizers");
  if (list == nullptr || !list->is_array()) return parse::Missing(where, "pretokenizers");
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  for (const JsonValue& item : list->items()) {
    POZOR_TRY(auto part, Parse(item, where, depth + 1));
    if (part != nullptr) parts.push_back(std::move(part));
  }
  return std::unique_ptr<PreTokenizer>(std::make_unique<Sequence>(std::move(parts)));
}

Result<Behavior> ParseBehavior(const JsonValue& json, std::optional<std::string> otherwise,
                               const std::string& where) {
  POZOR_TRY(const std::string name, parse::String(json, "behavior", std::move(otherwise), where));
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  return parse::Bad(where, "behavior", "unknown value \"" + name + "\"");
}

MaybePreTokenizer ParseSplit(const JsonValue& json, const std::string& where) {
  POZOR_TRY(const parse::Pattern source, parse::PatternOf(json, where));
  POZOR_TRY(const Behavior behavior, ParseBehavior(json, std::nullopt, where));
  POZOR_TRY(const bool invert, parse::Bool(json, "invert", false, where));
  POZOR_TRY(Pattern pattern, Pattern::Compile(source.text, source.regex, where));
  return std::unique_ptr<PreTokenizer>(
      std::make_unique<Split>(std::move(pattern), behavior, invert));
}

Result<std::string> OneCharacter(const JsonValue& json, std::string_view key,
                                 const std::string& where) {
  POZOR_TRY(std::string text, parse::String(json, key, std::nullopt, where));
  if (unicode::CountCodePoints(text) != 1) {
    return parse::Bad(where, key, "\"" + text + "\" is not one character");
  }
  return text;
}

MaybePreTokenizer ParseMetaspace(const JsonValue& json, const std::string& where) {
  POZOR_TRY(std::string replacement, OneCharacter(json, "replacement", where));
  POZOR_TRY(const std::string name, parse::String(json, "prepend_scheme", "always", where));
  POZOR_TRY(const bool prefix, parse::Bool(json, "add_prefix_space", true, where));
  POZOR_TRY(const bool split, parse::Bool(json, "split", true, where));
  using Scheme = Metaspace::Scheme;
  Scheme scheme = Scheme::kAlways;
  if (name == "first") {
    scheme = Scheme::kFirst;
  } else if (name == "never") {
    scheme = Scheme::kNever;
  } else if (name != "always") {
    return parse::Bad(where, "prepend_scheme", "unknown value \"" + name + "\"");
  }
  if (!prefix && json.Find("prepend_scheme") != nullptr && scheme != Scheme::kNever) {
    return parse::Bad(where, "add_prefix_space", "it contradicts prepend_scheme");
  }
  if (!prefix) scheme = Scheme::kNever;
  return std::unique_ptr<PreTokenizer>(
      std::make_unique<Metaspace>(std::move(replacement), scheme, split));
}

MaybePreTokenizer ParseByteLevel(const JsonValue& json, const std::string& where) {
  POZOR_TRY(const bool prefix, parse::Bool(json, "add_prefix_space", std::nullopt, where));
  POZOR_TRY(const bool regex, parse::Bool(json, "use_regex", true, where));
  return std::unique_ptr<PreTokenizer>(std::make_unique<ByteLevel>(prefix, regex));
}

MaybePreTokenizer Parse(const JsonValue& json, const std::string& where, int depth) {
  if (json.is_null()) return std::unique_ptr<PreTokenizer>();
  POZOR_TRY(const std::string_view type, parse::Type(json, where));
  const auto made = [](auto parsed) { return std::unique_ptr<PreTokenizer>(std::move(parsed)); };
  if (type == "Sequence") return ParseSequence(json, where, depth);
  if (type == "BertPreTokenizer") return made(std::make_unique<BertPreTokenizer>());
  if (type == "Whitespace") return made(std::make_unique<Whitespace>());
  if (type == "WhitespaceSplit") return made(std::make_unique<WhitespaceSplit>());
  if (type == "UnicodeScripts") return made(std::make_unique<UnicodeScripts>());
  if (type == "Split") return ParseSplit(json, where);
  if (type == "Metaspace") return ParseMetaspace(json, where);
  if (type == "ByteLevel") return ParseByteLevel(json, where);
  if (type == "Punctuation") {
    POZOR_TRY(const Behavior behavior, ParseBehavior(json, "Isolated", where));
    return made(std::make_unique<Punctuation>(behavior));
  }
  if (type == "Digits") {
    POZOR_TRY(const bool individual, parse::Bool(json, "individual_digits", false, where));
    return made(std::make_unique<Digits>(individual));
  }
  if (type == "Delimiter" || type == "CharDelimiterSplit") {
    POZOR_TRY(const std::string delimiter, OneCharacter(json, "delimiter", where));
    size_t size = 0;
    return made(std::make_unique<CharDelimiterSplit>(Decode(delimiter.data(), &size)));
  }
  if (type == "FixedLength") {
    POZOR_TRY(const int64_t length, parse::Count(json, "length", 5, where));
    if (length == 0) return parse::Bad(where, "length", "it is 0");
    return made(std::make_unique<FixedLength>(static_cast<size_t>(length)));
  }
  return parse::Bad(where, "type", "unknown pre-tokenizer \"" + std::string(type) + "\"");
}

}  // namespace

MaybePreTokenizer ParsePreTokenizer(const JsonValue& json, const std::string& where) {
  return Parse(json, where, 0);
}

std::unique_ptr<PreTokenizer> MakeBertPreTokenizer() {
  return std::make_unique<BertPreTokenizer>();
}

std::unique_ptr<PreTokenizer> MakeByteLevel(bool qwen, bool add_prefix_space) {
  auto bytes = std::make_unique<ByteLevel>(add_prefix_space, !qwen);
  if (!qwen) return bytes;
  std::vector<std::unique_ptr<PreTokenizer>> parts;
  parts.push_back(std::make_unique<Split>(Pattern::Gpt4(1), Behavior::kIsolated, false));
  parts.push_back(std::move(bytes));
  return std::make_unique<Sequence>(std::move(parts));
}

std::unique_ptr<PreTokenizer> MakeMetaspace(bool prepend, bool split) {
  const auto scheme = prepend ? Metaspace::Scheme::kAlways : Metaspace::Scheme::kNever;
  return std::make_unique<Metaspace>("\u2581", scheme, split);
}

bool IsBertPreTokenizer(const PreTokenizer* pre_tokenizer) {
  return dynamic_cast<const BertPreTokenizer*>(pre_tokenizer) != nullptr;
}

namespace {

ByteLevel* LastByteLevel(PreTokenizer* pre_tokenizer) {
  auto* sequence = dynamic_cast<Sequence*>(pre_tokenizer);
  if (sequence == nullptr) return dynamic_cast<ByteLevel*>(pre_tokenizer);
  return sequence->parts().empty() ? nullptr : LastByteLevel(sequence->parts().back().get());
}

}  // namespace

bool EndsInByteLevel(const PreTokenizer* pre_tokenizer) {
  return LastByteLevel(const_cast<PreTokenizer*>(pre_tokenizer)) != nullptr;
}

void DropByteMapping(PreTokenizer* pre_tokenizer) {
  if (ByteLevel* last = LastByteLevel(pre_tokenizer)) last->drop_mapping();
}

bool SetAddPrefixSpace(PreTokenizer* pre_tokenizer, bool value) {
  if (auto* bytes = dynamic_cast<ByteLevel*>(pre_tokenizer)) {
    bytes->set_add_prefix_space(value);
    return true;
  }
  auto* sequence = dynamic_cast<Sequence*>(pre_tokenizer);
  bool found = false;
  if (sequence == nullptr) return false;
  for (const auto& part : sequence->parts()) found |= SetAddPrefixSpace(part.get(), value);
  return found;
}

}  // namespace pozor
