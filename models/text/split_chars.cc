#include "models/text/split_chars.h"

#include <string_view>
#include <utility>

#include "models/text/unicode.h"

namespace pozor {
namespace {

using unicode::Decode;
using unicode::Is;

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

}  // namespace

std::unique_ptr<PreTokenizer> MakeWhitespace() { return std::make_unique<Whitespace>(); }
std::unique_ptr<PreTokenizer> MakeWhitespaceSplit() { return std::make_unique<WhitespaceSplit>(); }
std::unique_ptr<PreTokenizer> MakePunctuation(Behavior behavior) {
  return std::make_unique<Punctuation>(behavior);
}
std::unique_ptr<PreTokenizer> MakeDigits(bool individual) {
  return std::make_unique<Digits>(individual);
}
std::unique_ptr<PreTokenizer> MakeCharDelimiterSplit(char32_t delimiter) {
  return std::make_unique<CharDelimiterSplit>(delimiter);
}
std::unique_ptr<PreTokenizer> MakeFixedLength(size_t length) {
  return std::make_unique<FixedLength>(length);
}
std::unique_ptr<PreTokenizer> MakeUnicodeScripts() { return std::make_unique<UnicodeScripts>(); }

std::unique_ptr<PreTokenizer> MakeBertPreTokenizer() {
  return std::make_unique<BertPreTokenizer>();
}

bool IsBertPreTokenizer(const PreTokenizer* pre_tokenizer) {
  return dynamic_cast<const BertPreTokenizer*>(pre_tokenizer) != nullptr;
}

}  // namespace pozor
