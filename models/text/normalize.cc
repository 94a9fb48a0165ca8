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

namespace {

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

class BertNormalizer final : public Normalizer {
 public:
  explicit BertNormalizer(const BertNormalizerOptions& options) : options_(options) {}
  const BertNormalizerOptions& options() const { return options_; }

  void Apply(AlignedText& text, AlignedText& spare) const override {
    if (options_.clean_text || options_.handle_chinese_chars) Clean(text, spare);
    if (options_.strip_accents) {
      decompose_->Apply(text, spare);
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
  std::unique_ptr<Normalizer> decompose_ = MakeNormalizationForm(false, false);
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
  if (type == "NFC") return MakeNormalizationForm(false, true);
  if (type == "NFD") return MakeNormalizationForm(false, false);
  if (type == "NFKC") return MakeNormalizationForm(true, true);
  if (type == "NFKD") return MakeNormalizationForm(true, false);
  if (type == "ByteLevel") return made(std::make_unique<ByteLevelNormalizer>());
  if (type == "Replace") return ParseReplace(json, where);
  if (type == "Strip") {
    POZOR_TRY(const bool left, parse::Bool(json, "strip_left", std::nullopt, where));
    POZOR_TRY(const bool right, parse::Bool(json, "strip_right", std::nullopt, where));
    return made(std::make_unique<Strip>(left, right));
  }
  if (type == "Prepend") {
    POZOR_TRY(std::string text, parse::String(json, "prepend", std::nullopt, where));
    if (text.empty()) return parse::Bad(where, "prepend", "it is empty");
    return made(std::make_unique<Prepend>(std::move(text)));
  }
  if (type == "Precompiled") {
    POZOR_TRY(const std::string map,
              parse::String(json, "precompiled_charsmap", std::nullopt, where));
    POZOR_TRY(CharsMap parsed, CharsMap::FromBase64(map, where));
    return MakePrecompiled(std::move(parsed));
  }
  return parse::Bad(where, "type", "unknown normalizer \"" + std::string(type) + "\"");
}

}  // namespace

std::unique_ptr<Normalizer> MakeBertNormalizer(const BertNormalizerOptions& options) {
  return std::make_unique<BertNormalizer>(options);
}

std::unique_ptr<Normalizer> MakeLowercase() { return std::make_unique<Lowercase>(); }

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
    parts.push_back(MakeNormalizationForm(true, false));
    parts.push_back(std::make_unique<StripAccents>());
    parts.push_back(MakeLowercase());
  }
  if (!options.charsmap.empty()) {
    POZOR_TRY(CharsMap map, CharsMap::FromBytes(options.charsmap, where));
    parts.push_back(MakePrecompiled(std::move(map)));
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
