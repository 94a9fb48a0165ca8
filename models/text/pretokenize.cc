#include "models/text/pretokenize.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "models/text/parse.h"
#include "models/text/pattern.h"
#include "models/text/segmenter.h"
#include "models/text/split_chars.h"
#include "models/text/unicode.h"

namespace pozor {

void PieceList::Clear() {
  text.Clear();
  pieces.clear();
  failed = false;
}

namespace {

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
  if (type == "Sequence") return ParseSequence(json, where, depth);
  if (type == "BertPreTokenizer") return MakeBertPreTokenizer();
  if (type == "Whitespace") return MakeWhitespace();
  if (type == "WhitespaceSplit") return MakeWhitespaceSplit();
  if (type == "UnicodeScripts") return MakeUnicodeScripts();
  if (type == "Split") return ParseSplit(json, where);
  if (type == "Metaspace") return ParseMetaspace(json, where);
  if (type == "ByteLevel") return ParseByteLevel(json, where);
  if (type == "Punctuation") {
    POZOR_TRY(const Behavior behavior, ParseBehavior(json, "Isolated", where));
    return MakePunctuation(behavior);
  }
  if (type == "Digits") {
    POZOR_TRY(const bool individual, parse::Bool(json, "individual_digits", false, where));
    return MakeDigits(individual);
  }
  if (type == "Delimiter" || type == "CharDelimiterSplit") {
    POZOR_TRY(const std::string delimiter, OneCharacter(json, "delimiter", where));
    size_t size = 0;
    return MakeCharDelimiterSplit(unicode::Decode(delimiter.data(), &size));
  }
  if (type == "FixedLength") {
    POZOR_TRY(const int64_t length, parse::Count(json, "length", 5, where));
    if (length == 0) return parse::Bad(where, "length", "it is 0");
    return MakeFixedLength(static_cast<size_t>(length));
  }
  return parse::Bad(where, "type", "unknown pre-tokenizer \"" + std::string(type) + "\"");
}

}  // namespace

MaybePreTokenizer ParsePreTokenizer(const JsonValue& json, const std::string& where) {
  return Parse(json, where, 0);
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
