// Oniguruma's expressions in PCRE2's words. Differences that matter: what classes stand for, what
// follows an interval, which letter switches "." to any character, letters that two others are in
// another case, and set operations in classes, which PCRE2 lacks.
#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include "models/text/regex.h"
#include "models/text/regex_classes.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

constexpr const char* kLatinWordExtras = "\\x{B2}\\x{B3}\\x{B9}\\x{BC}-\\x{BE}";

// The content of a class's brackets, or of those of its complement.
struct ClassItem {
  std::string content;
  bool complement = false;
};

// Letters beyond ASCII that have one character, if any, in the other case.
bool FoldsAlone(char32_t c) {
  return (c >= 0xC0 && c <= 0xFE && c != 0xDF) || (c >= 0x391 && c <= 0x3C9 && c != 0x3B0) ||
         (c >= 0x400 && c <= 0x52F) || (c >= 0x2E80 && c <= 0x9FFF);
}

class Translator {
 public:
  explicit Translator(std::string_view source) : source_(source) {}

  Result<std::string> Translate() {
    while (at_ < source_.size()) POZOR_RETURN_IF_ERROR(Next());
    return std::move(out_);
  }

 private:
  // An open group, or the whole expression.
  struct Level {
    size_t begin = 0;    // in out_
    size_t content = 0;  // where its content begins there
    bool any_case = false;
    bool isolated = false;  // "(?i)", which is about what follows it
  };

  static Status Lacking(const std::string& what) {
    return Unsupported(what + " is not supported; rewrite the expression");
  }

  char Peek(size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  Level& level() { return levels_.back(); }

  Status Next() {
    const char c = Peek();
    if (c == '\\' || c == '[') {
      atom_ = out_.size();
      letter_ = 0;
      return c == '[' ? Class() : Escape();
    }
    if (c == '(') return Group();
    if (c == ')') return Close();
    if (c == '{') {
      letter_ = 0;
      POZOR_TRY(const bool interval, Interval());
      if (interval) return Status();
    }
    if (std::string_view("+*?|^$.").find(c) == std::string_view::npos) {
      atom_ = out_.size();
      return Literal();
    }
    if (c != '+' && c != '*' && c != '?') atom_ = out_.size();
    letter_ = 0;
    out_ += c;
    ++at_;
    return Status();
  }

  // A character that stands for itself. In any case "ss" is also the sharp s, and so on.
  Status Literal() {
    size_t size = 0;
    const char32_t c = unicode::Decode(source_.data() + at_, &size);
    if (level().any_case) {
      if (c >= 0x80 && !FoldsAlone(c)) return Lacking("a letter of two in the other case");
      const char now = c < 0x80 ? static_cast<char>(std::tolower(static_cast<int>(c))) : '\0';
      const bool joins = (letter_ == 's' && (now == 's' || now == 't')) ||
                         (letter_ == 'f' && (now == 'f' || now == 'i' || now == 'l'));
      if (joins) return Lacking(std::string{'"', letter_, now} + "\" in any case");
      letter_ = now;
    }
    out_ += source_.substr(at_, size);
    at_ += size;
    return Status();
  }

  // "(" and what may follow it: options, of which m lets a dot match line breaks.
  Status Group() {
    Level inner = level();
    const bool first = out_.size() == inner.content;
    inner.begin = out_.size();
    inner.isolated = false;
    letter_ = 0;
    out_ += '(';
    ++at_;
    size_t end = at_ + 1;
    while (end < source_.size() &&
           (std::isalpha(static_cast<uint8_t>(source_[end])) != 0 || source_[end] == '-')) {
      ++end;
    }
    const char stop = end < source_.size() ? source_[end] : '\0';
    if (Peek() == '?' && (stop == ':' || stop == ')')) {
      inner.isolated = stop == ')';
      // Elsewhere it reaches over the alternatives that follow, as if they were a group of its own.
      if (inner.isolated && !first) return Lacking("an option after other things");
      for (bool on = true; at_ < end; ++at_) {
        if (Peek() == 's') return Lacking("the option s");
        if (Peek() == '-') on = false;
        if (Peek() == 'i') inner.any_case = on;
        out_ += Peek() == 'm' ? 's' : Peek();
      }
      if (!inner.isolated) out_ += source_[at_++];
    }
    inner.content = out_.size();
    levels_.push_back(inner);
    return Status();
  }

  Status Close() {
    atom_ = levels_.size() > 1 ? level().begin : out_.size();
    letter_ = 0;
    out_ += ')';
    ++at_;
    if (levels_.size() == 1) return Status();
    const Level closed = level();
    levels_.pop_back();
    if (closed.isolated) {
      level().any_case = closed.any_case;
      level().content = out_.size();
    }
    return Status();
  }

  // "{n,m}" after an atom; a + behind it repeats the whole. False if it is no interval.
  Result<bool> Interval() {
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
    if (Peek() == '?' && !comma) return Lacking("{n}?");
    if (Peek() == '+') {
      out_.insert(atom_, "(?:");
      out_ += ')';
    }
    return true;
  }

  // A backslash and what it stands for, outside a class.
  Status Escape() {
    const char c = Peek(1);
    if (c == 'b' || c == 'B') {
      at_ += 2;
      const std::string word = "[" + EscapeClass('w') + kLatinWordExtras + "]";
      const bool edge = c == 'b';
      out_ += "(?:(?<=" + word + ")" + (edge ? "(?!" : "(?=") + word + ")|(?<!" + word + ")" +
              (edge ? "(?=" : "(?!") + word + "))";
      return Status();
    }
    POZOR_TRY(const std::optional<ClassItem> item, ClassEscape());
    if (!item) return PlainEscape(&out_);
    // Alone, \w takes fractions and superscripts of Latin 1 as well.
    const bool word = c == 'w' || c == 'W';
    out_ += (item->complement ? "[^" : "[") + item->content + (word ? kLatinWordExtras : "") + "]";
    return Status();
  }

  // A backslash that stands for a class; nothing, and not read, if it does not.
  Result<std::optional<ClassItem>> ClassEscape() {
    const char c = Peek(1);
    if (c == 'p' || c == 'P') return Property();
    const bool capital = c == 'D' || c == 'H' || c == 'S' || c == 'W';
    std::string content = EscapeClass(capital ? static_cast<char>(c + 32) : c);
    if (content.empty()) return std::optional<ClassItem>();
    at_ += 2;
    return std::optional<ClassItem>(ClassItem{std::move(content), capital});
  }

  // \p{name}, \P{name}, \p{^name}
  Result<std::optional<ClassItem>> Property() {
    const size_t end = source_.find('}', at_);
    if (Peek(2) != '{' || end == std::string_view::npos) return Lacking("\\p without {name}");
    const std::string_view whole = source_.substr(at_, end + 1 - at_);
    std::string_view name = whole.substr(3, whole.size() - 4);
    bool complement = whole[1] == 'P';
    if (name.starts_with('^')) {
      complement = !complement;
      name.remove_prefix(1);
    }
    std::optional<std::string> content = PropertyClass(name);
    if (!content || (level().any_case && !IgnoresCase(name))) return Lacking(std::string(whole));
    at_ = end + 1;
    return std::optional<ClassItem>(ClassItem{std::move(*content), complement});
  }

  // A backslash and a character, or a code point.
  Status PlainEscape(std::string* out) {
    const char c = Peek(1);
    const bool code = c == 'u' || c == 'x';
    if (code && level().any_case) return Lacking("a code point in any case");
    if (std::string_view("CEKMQcg").find(c) != std::string_view::npos) {
      return Lacking("\\" + std::string(1, c));
    }
    size_t size = 2;
    if (c == 'u') {
      for (size_t i = 2; i < 6; ++i) {
        if (std::isxdigit(static_cast<uint8_t>(Peek(i))) == 0) return Lacking("a short \\u");
      }
      *out += "\\x{" + std::string(source_.substr(at_ + 2, 4)) + "}";
      size = 6;
    } else {
      *out += source_.substr(at_, 2);
    }
    at_ = std::min(at_ + size, source_.size());
    return Status();
  }

  // Complements among the items become alternatives, or conditions where the class is itself one.
  void PutClass(bool complement, const std::string& content,
                const std::vector<std::string>& complements) {
    if (complements.empty()) {
      out_ += (complement ? "[^" : "[") + content + "]";
      return;
    }
    out_ += "(?:";
    for (size_t i = 0; i < complements.size(); ++i) {
      const char* separator = i > 0 ? "|" : "";
      out_ +=
          complement ? "(?=[" + complements[i] + "])" : separator + ("[^" + complements[i] + "]");
    }
    if (complement) {
      out_ += content.empty() ? "(?s:.)" : "[^" + content + "]";
    } else if (!content.empty()) {
      out_ += "|[" + content + "]";
    }
    out_ += ")";
  }

  Status Class() {
    ++at_;
    const bool complement = Peek() == '^';
    if (complement) ++at_;
    std::string content;
    std::vector<std::string> complements;
    bool after_class = false;  // a "-" there is no range
    for (bool first = true; at_ < source_.size(); first = false) {
      if (Peek() == ']' && !first) {
        ++at_;
        PutClass(complement, content, complements);
        return Status();
      }
      POZOR_TRY(std::optional<ClassItem> item, ItemInClass());
      if (item) {
        const bool in_range =
            content.size() > 1 && content.ends_with('-') && !content.ends_with("\\-");
        if (in_range) return Lacking("a class in a range");
        if (item->complement) {
          complements.push_back(std::move(item->content));
        } else {
          content += item->content;
        }
      } else if (after_class && Peek() == '-') {
        content += "\\-";
        ++at_;
      } else {
        POZOR_RETURN_IF_ERROR(CharInClass(&content));
      }
      after_class = item.has_value();
    }
    return Lacking("an open class");
  }

  // A class by name inside a class; nothing, and not read, if something else comes.
  Result<std::optional<ClassItem>> ItemInClass() {
    if (Peek() == '\\') return ClassEscape();
    if (Peek() != '[' || Peek(1) != ':') return std::optional<ClassItem>();
    const size_t end = source_.find(":]", at_ + 2);
    if (end == std::string_view::npos) return Lacking("[ in a class");
    std::string_view name = source_.substr(at_ + 2, end - at_ - 2);
    const bool complement = name.starts_with('^');
    if (complement) name.remove_prefix(1);
    std::optional<std::string> content = PosixClass(name);
    if (!content || (level().any_case && !IgnoresCase(name))) {
      return Lacking("[:" + std::string(name) + ":]");
    }
    at_ = end + 2;
    return std::optional<ClassItem>(ClassItem{std::move(*content), complement});
  }

  Status CharInClass(std::string* content) {
    const char c = Peek();
    if (c == '\\') return PlainEscape(content);
    if (c == '&' && Peek(1) == '&') return Lacking("&& in a class");
    if (c == '[') return Lacking("a class in a class");
    if (level().any_case && static_cast<uint8_t>(c) >= 0x80) {
      return Lacking("a letter beyond ASCII in a class in any case");
    }
    if (c == '^') *content += '\\';
    *content += c;
    ++at_;
    return Status();
  }

  std::string_view source_;
  size_t at_ = 0;
  std::string out_;
  size_t atom_ = 0;  // where the last atom begins in out_
  char letter_ = 0;  // the literal right before, in any case
  std::vector<Level> levels_ = {Level{}};
};

}  // namespace

Result<std::string> TranslateOniguruma(std::string_view source) {
  return Translator(source).Translate();
}

}  // namespace pozor
