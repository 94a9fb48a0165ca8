// Tokenizer::Encode: tokens, offsets and what overflows, step by step as tokenizer.json describes.
#include <algorithm>
#include <array>
#include <utility>

#include "models/text/tokenizer_impl.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

// The tokens of one text, before anything is cut or added.
struct Tokens {
  std::vector<int32_t> ids;
  std::vector<std::string> texts;
  std::vector<Span> offsets;  // in code points
  std::vector<int32_t> words;
};

// Positions of a text's characters in bytes, and back.
class CharMap {
 public:
  explicit CharMap(std::string_view text) : of_byte_(text.size() + 1) {
    for (size_t i = 0; i < text.size();) {
      const size_t size = unicode::SequenceLength(text[i]);
      const auto index = static_cast<uint32_t>(byte_of_.size());
      std::fill_n(of_byte_.begin() + static_cast<ptrdiff_t>(i), size, index);
      byte_of_.push_back(static_cast<uint32_t>(i));
      i += size;
    }
    of_byte_[text.size()] = static_cast<uint32_t>(byte_of_.size());
    byte_of_.push_back(static_cast<uint32_t>(text.size()));
  }

  Span Chars(Span bytes) const { return {of_byte_[bytes.begin], of_byte_[bytes.end]}; }
  Span Bytes(Span chars) const { return {byte_of_[chars.begin], byte_of_[chars.end]}; }

 private:
  std::vector<uint32_t> of_byte_, byte_of_;
};

// Takes pieces through the model.
class Collector {
 public:
  Collector(const Tokenizer::Impl& impl, const PieceList& list, const CharMap& map)
      : impl_(impl), list_(list), map_(map) {}

  Result<Tokens> Collect() {
    ModelScratch scratch;
    for (size_t i = 0; i < list_.pieces.size(); ++i) {
      const Piece& piece = list_.pieces[i];
      const auto word = static_cast<int32_t>(i);
      if (piece.id >= 0) {
        Add({piece.id, piece.begin, piece.end}, Text(piece.begin, piece.end), word);
        continue;
      }
      scratch.tokens.clear();
      if (!impl_.model->Tokenize(Text(piece.begin, piece.end), scratch)) {
        return impl_.UnknownError();
      }
      for (const ModelToken& token : scratch.tokens) {
        const ModelToken at = {token.id, piece.begin + token.begin, piece.begin + token.end};
        Add(at, token.surface ? Text(at.begin, at.end) : TextOf(token.id), word);
      }
    }
    return std::move(out_);
  }

 private:
  std::string_view Text(size_t begin, size_t end) const {
    return std::string_view(list_.text.bytes).substr(begin, end - begin);
  }

  std::string_view TextOf(int32_t id) const { return impl_.model->vocabulary().Text(id); }

  void Add(const ModelToken& token, std::string_view text, int32_t word) {
    const std::vector<Span>& spans = list_.text.spans;
    Span bytes;
    if (token.begin < token.end) bytes = {spans[token.begin].begin, spans[token.end - 1].end};
    out_.ids.push_back(token.id);
    out_.texts.emplace_back(text);
    out_.offsets.push_back(map_.Chars(bytes));
    out_.words.push_back(word);
  }

  const Tokenizer::Impl& impl_;
  const PieceList& list_;
  const CharMap& map_;
  Tokens out_;
};

// One window of one text, with its offsets trimmed.
struct Cut {
  Window window;
  bool is_first;
  std::vector<Span> offsets;
};

std::vector<Cut> CutTokens(const Tokens& tokens, const std::vector<Window>& windows,
                           const PostProcessor& post) {
  std::vector<Cut> cuts;
  for (const Window& window : windows) {
    const auto begin = static_cast<ptrdiff_t>(window.begin);
    const auto end = static_cast<ptrdiff_t>(window.end);
    Cut cut{window, cuts.empty(), {tokens.offsets.begin() + begin, tokens.offsets.begin() + end}};
    if (!post.trims.empty()) {
      const std::vector<std::string> texts(tokens.texts.begin() + begin,
                                           tokens.texts.begin() + end);
      TrimOffsets(post, texts, cut.offsets);
    }
    cuts.push_back(std::move(cut));
  }
  return cuts;
}

// Puts windows of both texts between the special tokens.
class Assembler {
 public:
  Assembler(const PostProcessor& post, bool is_pair, bool add_specials)
      : parts_(post.parts(is_pair)),
        add_specials_(add_specials),
        template_types_overflow_(add_specials && post.template_types_overflow) {}

  void Set(size_t which, const Tokens* tokens, const CharMap* map) {
    tokens_[which] = tokens;
    maps_[which] = map;
  }

  Encoding Join(const std::array<const Cut*, 2>& cuts) const {
    Encoding out;
    for (const TemplatePart& part : parts_) {
      if (part.kind == TemplatePart::Kind::kSpecial) {
        if (add_specials_) AddSpecial(part, &out);
      } else {
        const size_t which = part.kind == TemplatePart::Kind::kFirst ? 0 : 1;
        const bool of_template = cuts[which]->is_first || template_types_overflow_;
        AddText(which, *cuts[which], of_template ? part.type_id : static_cast<int32_t>(which),
                &out);
      }
    }
    return out;
  }

 private:
  static void AddSpecial(const TemplatePart& part, Encoding* out) {
    for (size_t i = 0; i < part.ids.size(); ++i) {
      out->ids.push_back(part.ids[i]);
      out->type_ids.push_back(part.type_id);
      out->tokens.push_back(part.tokens[i]);
      out->offsets.push_back({});
      out->byte_offsets.push_back({});
      out->special.push_back(1);
      out->sequence.push_back(-1);
      out->words.push_back(-1);
    }
  }

  void AddText(size_t which, const Cut& cut, int32_t type_id, Encoding* out) const {
    const Tokens& tokens = *tokens_[which];
    for (size_t i = cut.window.begin; i < cut.window.end; ++i) {
      const Span chars = cut.offsets[i - cut.window.begin];
      out->ids.push_back(tokens.ids[i]);
      out->type_ids.push_back(type_id);
      out->tokens.push_back(tokens.texts[i]);
      out->offsets.push_back(chars);
      out->byte_offsets.push_back(maps_[which]->Bytes(chars));
      out->special.push_back(0);
      out->sequence.push_back(static_cast<int32_t>(which));
      out->words.push_back(tokens.words[i]);
    }
  }

  const std::vector<TemplatePart>& parts_;
  bool add_specials_, template_types_overflow_;
  std::array<const Tokens*, 2> tokens_{};
  std::array<const CharMap*, 2> maps_{};
};

// Which windows go together beside the first of each: every further window of the text that comes
// first in the template with all of the other, then its first window with the rest.
std::vector<std::array<size_t, 2>> Overflows(size_t first, size_t second, bool swapped) {
  std::vector<std::array<size_t, 2>> out;
  const size_t outer = swapped ? second : first, inner = swapped ? first : second;
  for (size_t i = 1; i <= outer; ++i) {
    const size_t a = i % outer;  // the first window last
    for (size_t b = a == 0 ? 1 : 0; b < inner; ++b) {
      out.push_back(swapped ? std::array<size_t, 2>{b, a} : std::array<size_t, 2>{a, b});
    }
  }
  return out;
}

}  // namespace

Result<Encoding> Tokenizer::Encode(std::string_view text, const std::string_view* pair,
                                   const TokenizeOptions& options) const {
  const bool is_pair = pair != nullptr;
  const std::array<std::string_view, 2> texts = {text, is_pair ? *pair : std::string_view()};
  std::vector<CharMap> maps;
  std::array<Tokens, 2> tokens;
  for (size_t i = 0; i < (is_pair ? 2u : 1u); ++i) {
    PieceList list;
    AlignedText piece;
    POZOR_RETURN_IF_ERROR(impl_->Run(texts[i], options.plain_specials, true, list, piece));
    maps.emplace_back(texts[i]);
    POZOR_TRY(tokens[i], Collector(*impl_, list, maps.back()).Collect());
  }
  if (!is_pair) maps.emplace_back(std::string_view());
  const size_t specials = options.add_special_tokens ? special_count(is_pair) : 0;
  POZOR_TRY(const Windows windows,
            Truncate(tokens[0].ids.size(), tokens[1].ids.size(), is_pair, specials, options));
  const std::vector<TemplatePart>& parts = impl_->post.parts(is_pair);
  Assembler assembler(impl_->post, is_pair, options.add_special_tokens);
  const std::vector<Cut> first = CutTokens(tokens[0], windows.first, impl_->post);
  const std::vector<Cut> second = CutTokens(tokens[1], windows.second, impl_->post);
  for (size_t i = 0; i < 2; ++i) assembler.Set(i, &tokens[i], &maps[i]);
  Encoding out = assembler.Join({first.data(), second.data()});
  const auto leads = std::find_if(parts.begin(), parts.end(), [](const TemplatePart& part) {
    return part.kind != TemplatePart::Kind::kSpecial;
  });
  const bool swapped = leads != parts.end() && leads->kind == TemplatePart::Kind::kSecond;
  for (const auto& [a, b] : Overflows(first.size(), second.size(), swapped)) {
    out.overflow.push_back(assembler.Join({&first[a], &second[b]}));
  }
  return out;
}

}  // namespace pozor
