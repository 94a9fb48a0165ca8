#include "models/text/postprocess.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "models/text/parse.h"
#include "models/text/pattern.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

using Kind = TemplatePart::Kind;

constexpr size_t kMaxParts = 256;

TemplatePart Special(const SpecialToken& token, int32_t type_id = 0) {
  return {Kind::kSpecial, type_id, {token.id}, {token.token}};
}

TemplatePart First() { return {Kind::kFirst, 0, {}, {}}; }
TemplatePart Second(int32_t type_id) { return {Kind::kSecond, type_id, {}, {}}; }

// A member that is ["token", id].
Result<SpecialToken> ParsePair(const JsonValue& json, std::string_view key,
                               const std::string& where) {
  const JsonValue* value = json.Find(key);
  if (value == nullptr) return parse::Missing(where, key);
  const auto items = value->items();
  const bool right = items.size() == 2 && items[0].is_string() && items[1].is_int() &&
                     items[1].as_int() >= 0 && items[1].as_int() <= INT32_MAX;
  if (!right) return parse::Bad(where, key, "it is not a token and its id");
  return SpecialToken{std::string(items[0].as_string()), static_cast<int32_t>(items[1].as_int())};
}

Result<TemplatePart> ParsePart(const JsonValue& item, const JsonValue* specials,
                               const std::string& where) {
  const JsonValue* sequence = item.Find("Sequence");
  const JsonValue* special = item.Find("SpecialToken");
  const JsonValue* part = sequence != nullptr ? sequence : special;
  if (part == nullptr || !part->is_object()) {
    return Corrupt(where + ": a part is neither Sequence nor SpecialToken; correct the file");
  }
  TemplatePart out;
  POZOR_TRY(const std::string id, parse::String(*part, "id", std::nullopt, where));
  POZOR_TRY(const int64_t type, parse::Count(*part, "type_id", 0, where));
  if (type > 255) return parse::Bad(where, "type_id", std::to_string(type) + " is too large");
  out.type_id = static_cast<int32_t>(type);
  if (sequence != nullptr) {
    if (id != "A" && id != "B") return parse::Bad(where, "id", "unknown sequence \"" + id + "\"");
    out.kind = id == "A" ? Kind::kFirst : Kind::kSecond;
    return out;
  }
  out.kind = Kind::kSpecial;
  const JsonValue* entry = specials != nullptr ? specials->Find(id) : nullptr;
  const JsonValue* ids = entry != nullptr ? entry->Find("ids") : nullptr;
  const JsonValue* tokens = entry != nullptr ? entry->Find("tokens") : nullptr;
  if (ids == nullptr || tokens == nullptr || ids->items().size() != tokens->items().size()) {
    return parse::Bad(where, "special_tokens", "special token \"" + id + "\" has no ids there");
  }
  for (size_t i = 0; i < ids->items().size(); ++i) {
    const JsonValue& number = ids->items()[i];
    if (!number.is_int() || number.as_int() < 0 || number.as_int() > INT32_MAX) {
      return parse::Bad(where, "special_tokens",
                        "the id of \"" + id + "\" is " + number.Describe());
    }
    out.ids.push_back(static_cast<int32_t>(number.as_int()));
    out.tokens.emplace_back(tokens->items()[i].as_string());
  }
  return out;
}

Result<std::vector<TemplatePart>> ParseParts(const JsonValue& json, std::string_view key,
                                             const std::string& where) {
  const JsonValue* list = json.Find(key);
  if (list == nullptr || !list->is_array()) return parse::Missing(where, key);
  if (list->size() > kMaxParts) return parse::Bad(where, key, "it has too many parts");
  std::vector<TemplatePart> parts;
  for (const JsonValue& item : list->items()) {
    POZOR_TRY(TemplatePart part,
              ParsePart(item, json.Find("special_tokens"), where + "." + std::string(key)));
    parts.push_back(std::move(part));
  }
  return parts;
}

Result<PostProcessor> Parse(const JsonValue& json, const std::string& where, int depth);

// ByteLevel steps trim, one other step may add special tokens.
Result<PostProcessor> ParseSequence(const JsonValue& json, const std::string& where, int depth) {
  if (depth >= parse::kMaxDepth) {
    return parse::Bad(where, "processors",
                      "Sequences are nested deeper than " + std::to_string(parse::kMaxDepth));
  }
  const JsonValue* list = json.Find("processors");
  if (list == nullptr || !list->is_array()) return parse::Missing(where, "processors");
  PostProcessor all;
  bool added = false;
  for (const JsonValue& item : list->items()) {
    POZOR_TRY(PostProcessor step, Parse(item, where, depth + 1));
    all.trims.insert(all.trims.end(), step.trims.begin(), step.trims.end());
    const bool adds = item.Find("type")->as_string() != "ByteLevel";
    if (adds && added) {
      return parse::Bad(where, "processors", "more than one of them adds special tokens");
    }
    if (!adds) continue;
    added = true;
    all.single = std::move(step.single);
    all.pair = std::move(step.pair);
    all.template_types_overflow = step.template_types_overflow;
  }
  return all;
}

Result<PostProcessor> Parse(const JsonValue& json, const std::string& where, int depth) {
  PostProcessor out;
  if (json.is_null()) return out;
  POZOR_TRY(const std::string_view type, parse::Type(json, where));
  if (type == "Sequence") return ParseSequence(json, where, depth);
  if (type == "TemplateProcessing") {
    POZOR_TRY(out.single, ParseParts(json, "single", where));
    POZOR_TRY(out.pair, ParseParts(json, "pair", where));
    const bool second_alone = std::any_of(out.single.begin(), out.single.end(),
                                          [](const auto& p) { return p.kind == Kind::kSecond; });
    if (second_alone) return parse::Bad(where, "single", "it asks for a second text, B");
    return out;
  }
  if (type == "BertProcessing" || type == "RobertaProcessing") {
    POZOR_TRY(const SpecialToken sep, ParsePair(json, "sep", where));
    POZOR_TRY(const SpecialToken cls, ParsePair(json, "cls", where));
    if (type == "BertProcessing") return BertTemplate(cls, sep);
    out = RobertaTemplate(cls, sep);
  } else if (type != "ByteLevel") {
    return parse::Bad(where, "type", "unknown post-processor \"" + std::string(type) + "\"");
  }
  POZOR_TRY(const bool trim, parse::Bool(json, "trim_offsets", true, where));
  POZOR_TRY(const bool prefix, parse::Bool(json, "add_prefix_space", true, where));
  if (trim) out.trims.push_back({prefix});
  return out;
}

}  // namespace

size_t PostProcessor::special_count(bool is_pair) const {
  size_t count = 0;
  for (const TemplatePart& part : parts(is_pair)) count += part.ids.size();
  return count;
}

Status PostProcessor::Check(int32_t id_limit) const {
  for (const auto* list : {&single, &pair}) {
    for (const TemplatePart& part : *list) {
      for (size_t i = 0; i < part.ids.size(); ++i) {
        if (part.ids[i] < id_limit) continue;
        return Unsupported("post_processor: the id " + std::to_string(part.ids[i]) + " of \"" +
                           part.tokens[i] + "\" is outside the vocabulary of " +
                           std::to_string(id_limit) + " tokens; correct the file");
      }
    }
  }
  return Status();
}

Result<PostProcessor> ParsePostProcessor(const JsonValue& json, const std::string& where) {
  return Parse(json, where, 0);
}

PostProcessor BertTemplate(const SpecialToken& cls, const SpecialToken& sep) {
  PostProcessor out;
  out.single = {Special(cls), First(), Special(sep)};
  out.pair = {Special(cls), First(), Special(sep), Second(1), Special(sep, 1)};
  return out;
}

PostProcessor RobertaTemplate(const SpecialToken& cls, const SpecialToken& sep) {
  PostProcessor out;
  out.single = {Special(cls), First(), Special(sep)};
  out.pair = {Special(cls), First(), Special(sep), Special(sep), Second(0), Special(sep)};
  out.template_types_overflow = true;
  return out;
}

namespace {

Status CheckStride(size_t most, const TokenizeOptions& options) {
  if (options.stride < most) return Status();
  return InvalidArgument("stride: " + std::to_string(options.stride) + " is not below the " +
                         std::to_string(most) + " tokens that a part keeps; give a smaller stride");
}

// The window of `most` tokens after the one that `done` tokens are in front of.
Window WindowAt(size_t done, size_t count, size_t most, bool from_left) {
  const size_t far = std::min(count, done + most);
  return from_left ? Window{count - far, count - done} : Window{done, far};
}

// The windows of `most` tokens, `stride` of them shared with the one before.
Result<std::vector<Window>> Cut(size_t count, size_t most, const TokenizeOptions& options) {
  if (most >= count) return std::vector<Window>{{0, count}};
  if (most == 0) return std::vector<Window>{{0, 0}, {0, count}};
  POZOR_RETURN_IF_ERROR(CheckStride(most, options));
  std::vector<Window> windows;
  for (size_t done = 0;; done += most - options.stride) {
    windows.push_back(WindowAt(done, count, most, options.truncate_left));
    if (done + most >= count) return windows;
  }
}

// How many tokens of each text stay.
struct Kept {
  size_t first, second;
};

// The longer one gives way first; if both are too long each keeps half.
Kept KeepLongestFirst(size_t first, size_t second, bool is_pair, size_t most) {
  if (!is_pair) return {most, 0};
  size_t shorter = std::min(first, second);
  size_t longer = shorter > most ? shorter : std::max(shorter, most - shorter);
  if (shorter + longer > most) {
    shorter = most / 2;
    longer = shorter + most % 2;
  }
  return first > second ? Kept{longer, shorter} : Kept{shorter, longer};
}

Result<Kept> Keep(size_t first, size_t second, bool is_pair, size_t specials,
                  const TokenizeOptions& options) {
  const size_t total = first + second;
  if (options.max_length == 0) return Kept{first, second};
  if (options.max_length < specials) {
    return InvalidArgument("max_length: " + std::to_string(options.max_length) + " is below the " +
                           std::to_string(specials) + " special tokens; give more");
  }
  const size_t most = options.max_length - specials;
  if (total <= most) return Kept{first, second};
  if (most == 0) return Kept{0, 0};
  if (options.strategy == TruncationStrategy::kLongestFirst) {
    return KeepLongestFirst(first, second, is_pair, most);
  }
  const bool only_second = options.strategy == TruncationStrategy::kOnlySecond;
  if (only_second && !is_pair) {
    return InvalidArgument("truncation: there is no second text; choose another strategy");
  }
  Kept kept{first, second};
  size_t& cut = only_second ? kept.second : kept.first;
  if (cut <= total - most) {
    return InvalidArgument("truncation: " + std::to_string(total - most) +
                           " tokens are too many, the " + (only_second ? "second" : "first") +
                           " text has " + std::to_string(cut) +
                           "; choose another strategy or a larger max_length");
  }
  cut -= total - most;
  return kept;
}

}  // namespace

Result<Windows> Truncate(size_t first, size_t second, bool is_pair, size_t specials,
                         const TokenizeOptions& options) {
  POZOR_TRY(const Kept kept, Keep(first, second, is_pair, specials, options));
  Windows out;
  POZOR_TRY(out.first, Cut(first, kept.first, options));
  POZOR_TRY(out.second, Cut(second, kept.second, options));
  return out;
}

Result<FirstWindows> TruncateOnce(size_t first, size_t second, bool is_pair, size_t specials,
                                  const TokenizeOptions& options) {
  POZOR_TRY(const Kept kept, Keep(first, second, is_pair, specials, options));
  for (const auto& [count, most] : {std::pair{first, kept.first}, {second, kept.second}}) {
    if (most > 0 && most < count) POZOR_RETURN_IF_ERROR(CheckStride(most, options));
  }
  FirstWindows out;
  out.first = WindowAt(0, first, std::min(first, kept.first), options.truncate_left);
  out.second = WindowAt(0, second, std::min(second, kept.second), options.truncate_left);
  return out;
}

void TrimOffsets(const PostProcessor& processor, const std::vector<std::string>& tokens,
                 std::vector<Span>& offsets) {
  const auto is_space = [](char32_t c) {
    return c == ByteChar(' ') || unicode::Is(c, unicode::kSpaceBit);
  };
  for (const PostProcessor::Trim& trim : processor.trims) {
    for (size_t i = 0; i < tokens.size(); ++i) {
      const std::string& token = tokens[i];
      uint32_t leading = 0, trailing = 0;
      for (size_t at = 0, size = 0; at < token.size(); at += size, ++leading) {
        if (!is_space(unicode::Decode(token.data() + at, &size))) break;
      }
      for (size_t at = token.size(), size = 0; at > 0; at -= size, ++trailing) {
        if (!is_space(unicode::DecodeBefore(token, at, &size))) break;
      }
      Span& span = offsets[i];
      if (leading > 0) {
        // One space at the start may be the one that was put there: the span is without it.
        const bool is_first = i == 0 || span.begin == 0;
        if (is_first && trim.add_prefix_space && leading == 1) leading = 0;
        span.begin = std::min(span.begin + leading, span.end);
      }
      if (trailing > 0 && span.end >= trailing) {
        span.end = std::max(span.end - trailing, span.begin);
      }
    }
  }
}

}  // namespace pozor
