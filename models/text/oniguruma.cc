// Oniguruma's expressions in PCRE2's words. Differences that matter: what \w, \s, \h and \p{L}
// stand for, what follows an interval, which letter switches "." to any character, and set
// operations in classes, which PCRE2 lacks.
#include <cctype>
#include <iterator>
#include <string>
#include <vector>

#include "models/text/regex.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

std::string HexRange(uint32_t low, uint32_t high) {
  const auto point = [](uint32_t c) {
    std::string digits;
    for (; c > 0 || digits.empty(); c /= 16) digits.insert(0, 1, "0123456789ABCDEF"[c % 16]);
    return "\\x{" + digits + "}";
  };
  return low == high ? point(low) : point(low) + "-" + point(high);
}

template <size_t kSize>
std::string Ranges(const uint32_t (&ends)[kSize]) {
  std::string out;
  for (size_t i = 0; i + 1 < kSize; i += 2) out += HexRange(ends[i], ends[i + 1]);
  return out;
}

constexpr uint32_t kSpaces[] = {0x9,    0xD,    0x20,   0x20,   0x85,   0x85,   0xA0,
                                0xA0,   0x1680, 0x1680, 0x2000, 0x200A, 0x2028, 0x2029,
                                0x202F, 0x202F, 0x205F, 0x205F, 0x3000, 0x3000};
constexpr uint32_t kNoSpaces[] = {0x0,    0x8,    0xE,    0x1F,   0x21,   0x84,    0x86,   0x9F,
                                  0xA1,   0x167F, 0x1681, 0x1FFF, 0x200B, 0x2027,  0x202A, 0x202E,
                                  0x2030, 0x205E, 0x2060, 0x2FFF, 0x3001, 0x10FFFF};

constexpr const char* kLatinWordExtras = "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";

// What may stand in a class for a letter or a property; empty if PCRE2 means the same.
std::string ClassOf(char escape, std::string_view property) {
  if (escape == 's') return Ranges(kSpaces);
  if (escape == 'S') return Ranges(kNoSpaces);
  if (escape == 'h') return "0-9a-fA-F";
  if (escape == 'w') return "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}" + Ranges(unicode::kWordExtras);
  if (escape != 'p') return "";
  if (property == "L" || property == "Letter") return "\\p{L}" + Ranges(unicode::kLetterExtras);
  if (property == "N" || property == "Number") return "\\p{N}" + Ranges(unicode::kNumberExtras);
  return "";
}

class Translator {
 public:
  explicit Translator(std::string_view source) : source_(source) {}

  Result<std::string> Translate() {
    while (at_ < source_.size()) POZOR_RETURN_IF_ERROR(Next());
    return std::move(out_);
  }

 private:
  static Status Lacking(const std::string& what) {
    return Unsupported(what + " is not supported; rewrite the expression");
  }

  char Peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }

  Status Next() {
    const char c = Peek();
    if (c == '\\') {
      atom_ = out_.size();
      return Escape(false);
    }
    if (c == '[') {
      atom_ = out_.size();
      return Class();
    }
    if (c == '(') return Group();
    if (c == '{' && Interval()) return Status();
    if (c == ')') {
      atom_ = groups_.empty() ? out_.size() : groups_.back();
      if (!groups_.empty()) groups_.pop_back();
    } else if (c != '+' && c != '*' && c != '?') {
      atom_ = out_.size();
    }
    out_ += c;
    ++at_;
    // The bytes of one character are one atom.
    while (at_ < source_.size() && (static_cast<uint8_t>(Peek()) & 0xC0u) == 0x80u) {
      out_ += source_[at_++];
    }
    return Status();
  }

  // "(" and what may follow it: options, of which m lets a dot match line breaks.
  Status Group() {
    groups_.push_back(out_.size());
    out_ += '(';
    ++at_;
    if (Peek() != '?') return Status();
    size_t end = at_ + 1;
    while (end < source_.size() &&
           (std::isalpha(static_cast<uint8_t>(source_[end])) != 0 || source_[end] == '-')) {
      ++end;
    }
    const bool options = end < source_.size() && (source_[end] == ':' || source_[end] == ')');
    if (!options) return Status();
    for (; at_ < end; ++at_) {
      if (Peek() == 's') return Lacking("the option s");
      out_ += Peek() == 'm' ? 's' : Peek();
    }
    return Status();
  }

  // "{n,m}" after an atom; a + behind it repeats the whole. False if it is no interval.
  bool Interval() {
    size_t end = at_ + 1;
    bool comma = false, digit = false;
    for (; end < source_.size() && source_[end] != '}'; ++end) {
      if (source_[end] == ',' && !comma) {
        comma = true;
      } else if (std::isdigit(static_cast<uint8_t>(source_[end])) != 0) {
        digit = true;
      } else {
        return false;
      }
    }
    if (end >= source_.size() || !digit) return false;
    std::string interval(source_.substr(at_, end + 1 - at_));
    if (interval[1] == ',') interval.insert(1, "0");
    out_ += interval;
    at_ = end + 1;
    if (Peek() == '+') {
      out_.insert(atom_, "(?:");
      out_ += ')';
    }
    return true;
  }

  // A backslash and what it stands for, in a class or outside.
  Status Escape(bool in_class) {
    const char c = Peek(1);
    std::string_view whole = source_.substr(at_, 2), property;
    if ((c == 'p' || c == 'P') && Peek(2) == '{') {
      const size_t end = source_.find('}', at_);
      if (end == std::string_view::npos) return Lacking("an open \\p{");
      whole = source_.substr(at_, end + 1 - at_);
      property = whole.substr(3, whole.size() - 4);
    }
    at_ += whole.size();
    if (c == 'u') return CodePoint();
    if (!in_class && (c == 'b' || c == 'B')) {
      const std::string word = "[" + ClassOf('w', "") + kLatinWordExtras + "]";
      const bool edge = c == 'b';
      out_ += "(?:(?<=" + word + ")" + (edge ? "(?!" : "(?=") + word + ")|(?<!" + word + ")" +
              (edge ? "(?=" : "(?!") + word + "))";
      return Status();
    }
    // A capital letter outside a class is the small one's complement.
    const bool capital = c == 'W' || c == 'H' || c == 'P' || (c == 'S' && !in_class);
    const char small = capital ? static_cast<char>(c + 32) : c;
    const std::string content = ClassOf(small, property);
    if (content.empty()) {
      out_ += whole;
    } else if (!in_class) {
      // Alone, \w takes fractions and superscripts of Latin 1 as well.
      const bool word = small == 'w';
      out_ += (capital ? "[^" : "[") + content + (word ? kLatinWordExtras : "") + "]";
    } else if (!capital) {
      out_ += content;
    } else if (c == 'P') {
      out_ += whole;
    } else {
      return Lacking("\\" + std::string(1, c) + " in a class");
    }
    return Status();
  }

  // \uHHHH, whose \u is read already.
  Status CodePoint() {
    for (size_t i = 0; i < 4; ++i) {
      if (std::isxdigit(static_cast<uint8_t>(Peek(i))) == 0) return Lacking("a short \\u");
    }
    out_ += "\\x{" + std::string(source_.substr(at_, 4)) + "}";
    at_ += 4;
    return Status();
  }

  Status Class() {
    out_ += '[';
    ++at_;
    if (Peek() == '^') {
      out_ += '^';
      ++at_;
    }
    for (bool first = true; at_ < source_.size(); first = false) {
      const char c = Peek();
      if (c == ']' && !first) {
        out_ += c;
        ++at_;
        return Status();
      }
      if (c == '\\') {
        POZOR_RETURN_IF_ERROR(Escape(true));
        continue;
      }
      if (c == '&' && Peek(1) == '&') return Lacking("&& in a class");
      if (c == '[' && Peek(1) == ':') {
        const size_t end = source_.find(":]", at_ + 2);
        if (end == std::string_view::npos) return Lacking("[ in a class");
        out_ += source_.substr(at_, end + 2 - at_);
        at_ = end + 2;
        continue;
      }
      if (c == '[') return Lacking("a class in a class");
      out_ += c;
      ++at_;
    }
    return Lacking("an open class");
  }

  std::string_view source_;
  size_t at_ = 0;
  std::string out_;
  size_t atom_ = 0;             // where the last atom begins in out_
  std::vector<size_t> groups_;  // where the open groups begin
};

}  // namespace

Result<std::string> TranslateOniguruma(std::string_view source) {
  return Translator(source).Translate();
}

}  // namespace pozor
