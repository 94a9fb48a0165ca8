#include "models/text/decode.h"

#include <charconv>
#include <utility>

#include "models/text/parse.h"
#include "models/text/pattern.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

constexpr const char* kReplacement = "\uFFFD";

void ReplaceAll(std::string* text, std::string_view what, std::string_view by) {
  if (what.empty()) return;
  for (size_t at = 0; (at = text->find(what, at)) != std::string::npos; at += by.size()) {
    text->replace(at, what.size(), by);
  }
}

// Spaces that English does not write.
void CleanUp(std::string* text) {
  constexpr std::pair<const char*, const char*> kRules[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [what, by] : kRules) ReplaceAll(text, what, by);
}

// Valid UTF-8, with U+FFFD for each longest start of a character that is cut off.
std::string Lossy(std::string_view bytes) {
  std::string out;
  while (true) {
    const size_t valid = unicode::FindInvalidUtf8(bytes);
    out.append(bytes.substr(0, valid));
    if (valid == bytes.size()) return out;
    out += kReplacement;
    bytes.remove_prefix(valid);
    // As many bytes as some character begins with.
    size_t cut = 1;
    while (cut < bytes.size() && unicode::BeginsCharacter(bytes.substr(0, cut + 1))) ++cut;
    bytes.remove_prefix(cut);
  }
}

class WordPieceDecoder final : public Decoder {
 public:
  WordPieceDecoder(std::string prefix, bool cleanup)
      : prefix_(std::move(prefix)), cleanup_(cleanup) {}
  void Apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0 && tokens[i].starts_with(prefix_)) {
        tokens[i].erase(0, prefix_.size());
      } else if (i > 0) {
        tokens[i].insert(0, 1, ' ');
      }
      if (cleanup_) CleanUp(&tokens[i]);
    }
  }

 private:
  std::string prefix_;
  bool cleanup_;
};

class ByteLevelDecoder final : public Decoder {
 public:
  void Apply(std::vector<std::string>& tokens) const override {
    std::string bytes;
    for (const std::string& token : tokens) Append(token, &bytes);
    tokens.assign(1, Lossy(bytes));
  }

 private:
  // A token with any character that stands for no byte is text as it is.
  static void Append(const std::string& token, std::string* bytes) {
    const size_t before = bytes->size();
    for (size_t i = 0, size = 0; i < token.size(); i += size) {
      const int byte = CharByte(unicode::Decode(token.data() + i, &size));
      if (byte < 0) {
        bytes->resize(before);
        bytes->append(token);
        return;
      }
      bytes->push_back(static_cast<char>(byte));
    }
  }
};

class MetaspaceDecoder final : public Decoder {
 public:
  MetaspaceDecoder(std::string replacement, bool prepended)
      : replacement_(std::move(replacement)), prepended_(prepended) {}
  void Apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      ReplaceAll(&tokens[i], replacement_, i == 0 && prepended_ ? "" : " ");
    }
  }

 private:
  std::string replacement_;
  bool prepended_;
};

// Runs of <0x0A> and the like become the characters that they spell.
class ByteFallbackDecoder final : public Decoder {
 public:
  void Apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    std::string bytes;
    const auto flush = [&] {
      if (unicode::FindInvalidUtf8(bytes) == bytes.size()) {
        if (!bytes.empty()) out.push_back(bytes);
      } else {
        out.insert(out.end(), bytes.size(), kReplacement);
      }
      bytes.clear();
    };
    for (std::string& token : tokens) {
      const int byte = ByteOf(token);
      if (byte >= 0) {
        bytes.push_back(static_cast<char>(byte));
        continue;
      }
      flush();
      out.push_back(std::move(token));
    }
    flush();
    tokens = std::move(out);
  }

 private:
  static int ByteOf(const std::string& token) {
    if (token.size() != 6 || !token.starts_with("<0x") || token[5] != '>') return -1;
    int byte = -1;
    const auto [end, error] = std::from_chars(token.data() + 3, token.data() + 5, byte, 16);
    return error == std::errc() && end == token.data() + 5 ? byte : -1;
  }
};

class FuseDecoder final : public Decoder {
 public:
  void Apply(std::vector<std::string>& tokens) const override {
    std::string all;
    for (const std::string& token : tokens) all += token;
    tokens.clear();
    tokens.push_back(std::move(all));
  }
};

class StripDecoder final : public Decoder {
 public:
  StripDecoder(std::string content, size_t start, size_t stop)
      : content_(std::move(content)), start_(start), stop_(stop) {}
  void Apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      for (size_t i = 0; i < start_ && token.starts_with(content_); ++i) {
        token.erase(0, content_.size());
      }
      for (size_t i = 0; i < stop_ && token.ends_with(content_); ++i) {
        token.resize(token.size() - content_.size());
      }
    }
  }

 private:
  std::string content_;
  size_t start_, stop_;
};

class ReplaceDecoder final : public Decoder {
 public:
  ReplaceDecoder(Pattern pattern, std::string content)
      : pattern_(std::move(pattern)), content_(std::move(content)) {}
  void Apply(std::vector<std::string>& tokens) const override {
    for (std::string& token : tokens) {
      std::string out;
      size_t done = 0, from = 0;
      Pattern::Match match;
      while (pattern_.Find(token, from, &match)) {
        out.append(token, done, match.begin - done);
        out += content_;
        done = match.end;
        from = match.next;
      }
      out.append(token, done);
      token = std::move(out);
    }
  }

 private:
  Pattern pattern_;
  std::string content_;
};

class BpeDecoder final : public Decoder {
 public:
  explicit BpeDecoder(std::string suffix) : suffix_(std::move(suffix)) {}
  void Apply(std::vector<std::string>& tokens) const override {
    for (size_t i = 0; i < tokens.size(); ++i) {
      ReplaceAll(&tokens[i], suffix_, i + 1 == tokens.size() ? "" : " ");
    }
  }

 private:
  std::string suffix_;
};

// Connectionist temporal classification: repeated tokens count once.
class CtcDecoder final : public Decoder {
 public:
  CtcDecoder(std::string pad, std::string delimiter, bool cleanup)
      : pad_(std::move(pad)), delimiter_(std::move(delimiter)), cleanup_(cleanup) {}
  void Apply(std::vector<std::string>& tokens) const override {
    std::vector<std::string> out;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if (i > 0 && tokens[i] == tokens[i - 1]) continue;
      std::string token = tokens[i];
      ReplaceAll(&token, pad_, "");
      if (cleanup_) {
        CleanUp(&token);
        ReplaceAll(&token, delimiter_, " ");
      }
      if (!token.empty()) out.push_back(std::move(token));
    }
    tokens = std::move(out);
  }

 private:
  std::string pad_, delimiter_;
  bool cleanup_;
};

class SequenceDecoder final : public Decoder {
 public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<Decoder>> parts)
      : parts_(std::move(parts)) {}
  void Apply(std::vector<std::string>& tokens) const override {
    for (const auto& part : parts_) part->Apply(tokens);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> parts_;
};

using MaybeDecoder = Result<std::unique_ptr<Decoder>>;

MaybeDecoder Parse(const JsonValue& json, const std::string& where, int depth);

MaybeDecoder ParseSequence(const JsonValue& json, const std::string& where, int depth) {
  if (depth >= parse::kMaxDepth) return parse::Bad(where, "decoders", "they are nested too deep");
  const JsonValue* list = json.Find("decoders");
  if (list == nullptr || !list->is_array()) return parse::Missing(where, "decoders");
  std::vector<std::unique_ptr<Decoder>> parts;
  for (const JsonValue& item : list->items()) {
    POZOR_TRY(auto part, Parse(item, where, depth + 1));
    if (part != nullptr) parts.push_back(std::move(part));
  }
  return std::unique_ptr<Decoder>(std::make_unique<SequenceDecoder>(std::move(parts)));
}

MaybeDecoder ParseOne(std::string_view type, const JsonValue& json, const std::string& where) {
  const auto made = [](auto decoder) { return std::unique_ptr<Decoder>(std::move(decoder)); };
  if (type == "ByteLevel") return made(std::make_unique<ByteLevelDecoder>());
  if (type == "ByteFallback") return made(std::make_unique<ByteFallbackDecoder>());
  if (type == "Fuse") return made(std::make_unique<FuseDecoder>());
  if (type == "WordPiece") {
    POZOR_TRY(std::string prefix, parse::String(json, "prefix", "##", where));
    POZOR_TRY(const bool cleanup, parse::Bool(json, "cleanup", true, where));
    return made(std::make_unique<WordPieceDecoder>(std::move(prefix), cleanup));
  }
  if (type == "Metaspace") {
    POZOR_TRY(std::string replacement, parse::String(json, "replacement", "\u2581", where));
    POZOR_TRY(const std::string scheme, parse::String(json, "prepend_scheme", "always", where));
    POZOR_TRY(const bool prefix, parse::Bool(json, "add_prefix_space", true, where));
    const bool prepended = scheme != "never" && prefix;
    return made(std::make_unique<MetaspaceDecoder>(std::move(replacement), prepended));
  }
  if (type == "Strip") {
    POZOR_TRY(std::string content, parse::String(json, "content", " ", where));
    POZOR_TRY(const int64_t start, parse::Count(json, "start", 0, where));
    POZOR_TRY(const int64_t stop, parse::Count(json, "stop", 0, where));
    if (content.empty()) return parse::Bad(where, "content", "it is empty");
    return made(std::make_unique<StripDecoder>(std::move(content), static_cast<size_t>(start),
                                               static_cast<size_t>(stop)));
  }
  if (type == "Replace") {
    POZOR_TRY(const parse::Pattern source, parse::PatternOf(json, where));
    POZOR_TRY(std::string content, parse::String(json, "content", std::nullopt, where));
    POZOR_TRY(Pattern pattern, Pattern::Compile(source.text, source.regex, where));
    return made(std::make_unique<ReplaceDecoder>(std::move(pattern), std::move(content)));
  }
  if (type == "BPEDecoder") {
    POZOR_TRY(std::string suffix, parse::String(json, "suffix", "</w>", where));
    return made(std::make_unique<BpeDecoder>(std::move(suffix)));
  }
  if (type == "CTC") {
    POZOR_TRY(std::string pad, parse::String(json, "pad_token", "<pad>", where));
    POZOR_TRY(std::string delimiter, parse::String(json, "word_delimiter_token", "|", where));
    POZOR_TRY(const bool cleanup, parse::Bool(json, "cleanup", true, where));
    return made(std::make_unique<CtcDecoder>(std::move(pad), std::move(delimiter), cleanup));
  }
  return parse::Bad(where, "type", "unknown decoder \"" + std::string(type) + "\"");
}

MaybeDecoder Parse(const JsonValue& json, const std::string& where, int depth) {
  if (json.is_null()) return std::unique_ptr<Decoder>();
  POZOR_TRY(const std::string_view type, parse::Type(json, where));
  if (type == "Sequence") return ParseSequence(json, where, depth);
  return ParseOne(type, json, where);
}

}  // namespace

MaybeDecoder ParseDecoder(const JsonValue& json, const std::string& where) {
  return Parse(json, where, 0);
}

}  // namespace pozor
