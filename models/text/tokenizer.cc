#include "models/text/tokenizer.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "models/text/tokenizer_impl.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

// Offsets are kept in 32 bits, and normalisation may make a text many times longer.
constexpr size_t kMaxTextBytes = size_t{128} << 20;

Status CheckSize(std::string_view text) {
  if (text.size() <= kMaxTextBytes) return Status();
  return InvalidArgument("text: it has " + std::to_string(text.size()) + " bytes, more than " +
                         std::to_string(kMaxTextBytes) + "; split it");
}

}  // namespace

TokenizeScratch::TokenizeScratch() : impl_(std::make_unique<Impl>()) {}
TokenizeScratch::~TokenizeScratch() = default;
TokenizeScratch::TokenizeScratch(TokenizeScratch&&) noexcept = default;
TokenizeScratch& TokenizeScratch::operator=(TokenizeScratch&&) noexcept = default;

Tokenizer::Tokenizer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;

Result<std::unique_ptr<Tokenizer>> Tokenizer::Load(const std::string& folder,
                                                   std::vector<std::string>* warnings) {
  POZOR_TRY(std::unique_ptr<Impl> impl, LoadTokenizerFolder(folder, warnings));
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(impl)));
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::FromJson(std::string_view json,
                                                       const std::string& name) {
  POZOR_TRY(const JsonDocument document, ParseJson(json, name));
  POZOR_TRY(std::unique_ptr<Impl> impl, ParseTokenizerJson(*document, name, nullptr));
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(impl)));
}

Result<std::unique_ptr<Tokenizer>> Tokenizer::FromGguf(const GgufMetadata& metadata,
                                                       const std::string& file) {
  POZOR_TRY(std::unique_ptr<Impl> impl, ReadGgufTokenizer(metadata, file));
  return std::unique_ptr<Tokenizer>(new Tokenizer(std::move(impl)));
}

void Tokenizer::Impl::Finish() {
  static std::atomic<uint64_t> next_serial{1};
  serial = next_serial.fetch_add(1);
  added.Prepare(normalizer.get());
  bert.reset();
  const WordPieceOptions* word_piece = AsWordPiece(*model);
  if (word_piece == nullptr || word_piece->max_chars < 16 || added.any_normalized()) return;
  if (!IsBertPreTokenizer(pre_tokenizer.get()) || !IsBertNormalizer(normalizer.get())) return;
  bert.emplace(*normalizer, Lowercases(normalizer.get()), *model);
}

Status Tokenizer::Impl::Check() const {
  const auto limit =
      std::max(static_cast<int32_t>(model->vocabulary().id_limit()), added.id_limit());
  return post.Check(limit);
}

Status Tokenizer::Impl::UnknownError() const {
  return Unsupported(
      "tokenizer: a text holds something that is not in the vocabulary, and there "
      "is no token \"" +
      model->unknown() + "\" for it; add it to the tokenizer");
}

Status Tokenizer::Impl::Run(std::string_view text, bool plain_specials, bool track, PieceList& list,
                            AlignedText& piece) const {
  POZOR_RETURN_IF_ERROR(CheckSize(text));
  const size_t invalid = unicode::FindInvalidUtf8(text);
  if (invalid < text.size()) return InvalidUtf8(text, invalid);
  list.Clear();
  list.text.base = 0;
  list.text.tracked = track;
  std::vector<Piece>& raw = list.spare_pieces;
  raw.clear();
  added.Split(false, 0, text.size(), plain_specials, text, &raw);
  for (const Piece& part : raw) {
    const std::string_view bytes = text.substr(part.begin, part.end - part.begin);
    piece.Start(bytes, part.begin, track);
    if (part.id < 0 && normalizer != nullptr) normalizer->Apply(piece, list.spare);
    const size_t begin = list.text.bytes.size();
    if (begin == 0 && part.begin == 0) list.text.lead = piece.lead;
    list.failed |= piece.failed;
    list.text.bytes.append(piece.bytes);
    list.text.spans.insert(list.text.spans.end(), piece.spans.begin(), piece.spans.end());
    const size_t end = list.text.bytes.size();
    if (part.id >= 0) {
      list.pieces.push_back({static_cast<uint32_t>(begin), static_cast<uint32_t>(end), part.id});
    } else {
      added.Split(true, begin, end, plain_specials, list.text.bytes, &list.pieces);
    }
  }
  if (pre_tokenizer != nullptr) pre_tokenizer->Apply(list);
  if (!list.failed) return Status();
  return ResourceExhausted(
      "tokenizer: a regular expression takes too many steps on a text; shorten the text");
}

Status Tokenizer::Impl::Ids(std::string_view text, bool plain_specials,
                            TokenizeScratch::Impl& scratch, IdBuffer* ids) const {
  ids->Clear();
  BertWords::Buffers& buffers = scratch.buffers;
  buffers.cache.Own(serial);
  if (bert) {
    POZOR_RETURN_IF_ERROR(CheckSize(text));
    if (!added.MayOccur(text)) return bert->Append(text, 0, text.size(), buffers, ids);
    scratch.raw_pieces.clear();
    added.Split(false, 0, text.size(), plain_specials, text, &scratch.raw_pieces);
    for (const Piece& piece : scratch.raw_pieces) {
      if (piece.id >= 0) {
        ids->Push(piece.id);
      } else {
        POZOR_RETURN_IF_ERROR(bert->Append(text, piece.begin, piece.end, buffers, ids));
      }
    }
    return Status();
  }
  POZOR_RETURN_IF_ERROR(Run(text, plain_specials, false, scratch.list, scratch.piece));
  const std::string_view bytes = scratch.list.text.bytes;
  for (const Piece& piece : scratch.list.pieces) {
    if (piece.id >= 0) {
      ids->Push(piece.id);
      continue;
    }
    for (size_t begin = piece.begin, end; begin < piece.end; begin = end) {
      end = begin + model->IndependentPart(bytes.substr(begin, piece.end - begin));
      if (!AppendWord(*model, bytes, begin, end, buffers.cache, buffers.model, ids)) {
        return UnknownError();
      }
    }
  }
  return Status();
}

Result<TokenizeStats> Tokenizer::Append(std::string_view text, const std::string_view* pair,
                                        const TokenizeOptions& options, TokenizeScratch& scratch,
                                        std::vector<int32_t>* ids,
                                        std::vector<int32_t>* type_ids) const {
  TokenizeScratch::Impl& s = scratch.impl();
  const bool is_pair = pair != nullptr;
  POZOR_RETURN_IF_ERROR(impl_->Ids(text, options.plain_specials, s, &s.first));
  s.second.Clear();
  if (is_pair) POZOR_RETURN_IF_ERROR(impl_->Ids(*pair, options.plain_specials, s, &s.second));
  const size_t specials = options.add_special_tokens ? special_count(is_pair) : 0;
  TokenizeStats stats;
  stats.full_tokens = s.first.size() + s.second.size() + specials;
  Window first{0, s.first.size()}, second{0, s.second.size()};
  if (options.max_length > 0 && stats.full_tokens > options.max_length) {
    POZOR_TRY(const FirstWindows cut,
              TruncateOnce(s.first.size(), s.second.size(), is_pair, specials, options));
    first = cut.first;
    second = cut.second;
  }
  const auto put = [&](const int32_t* begin, const int32_t* end, int32_t type_id) {
    ids->insert(ids->end(), begin, end);
    type_ids->insert(type_ids->end(), static_cast<size_t>(end - begin), type_id);
    stats.tokens += static_cast<size_t>(end - begin);
  };
  for (const TemplatePart& part : impl_->post.parts(is_pair)) {
    if (part.kind == TemplatePart::Kind::kSpecial) {
      if (!options.add_special_tokens) continue;
      put(part.ids.data(), part.ids.data() + part.ids.size(), part.type_id);
    } else {
      const bool is_first = part.kind == TemplatePart::Kind::kFirst;
      const IdBuffer& buffer = is_first ? s.first : s.second;
      const Window& window = is_first ? first : second;
      put(buffer.data() + window.begin, buffer.data() + window.end, part.type_id);
    }
  }
  return stats;
}

std::string Tokenizer::Decode(std::span<const int32_t> ids, bool skip_specials) const {
  std::vector<std::string> tokens;
  for (const int32_t id : ids) {
    const AddedToken* added = impl_->added.ById(id);
    if (added != nullptr && added->special && skip_specials) continue;
    if (added != nullptr) {
      tokens.push_back(added->normal.empty() ? added->content : added->normal);
    } else if (impl_->model->vocabulary().Holds(id)) {
      tokens.emplace_back(impl_->model->vocabulary().Text(id));
    }
  }
  const char* between = impl_->decoder == nullptr ? " " : "";
  if (impl_->decoder != nullptr) impl_->decoder->Apply(tokens);
  std::string out;
  for (size_t i = 0; i < tokens.size(); ++i) out += (i == 0 ? "" : between) + tokens[i];
  return out;
}

void Tokenizer::ForceLowercase() {
  if (Lowercases(impl_->normalizer.get())) return;
  std::vector<std::unique_ptr<Normalizer>> parts;
  parts.push_back(MakeLowercase());
  if (impl_->normalizer != nullptr) parts.push_back(std::move(impl_->normalizer));
  impl_->normalizer = MakeSequence(std::move(parts));
  impl_->Finish();
}

size_t Tokenizer::vocab_size() const {
  return std::max(impl_->model->vocabulary().id_limit(),
                  static_cast<size_t>(impl_->added.id_limit()));
}

size_t Tokenizer::special_count(bool pair) const { return impl_->post.special_count(pair); }
size_t Tokenizer::model_max_length() const { return impl_->model_max_length; }

int32_t Tokenizer::TokenToId(std::string_view token) const {
  const int32_t id = impl_->added.Find(token);
  return id >= 0 ? id : impl_->model->vocabulary().Find(token);
}

std::string_view Tokenizer::IdToToken(int32_t id) const {
  const AddedToken* token = impl_->added.ById(id);
  return token != nullptr ? std::string_view(token->content) : impl_->model->vocabulary().Text(id);
}

bool Tokenizer::IsSpecialId(int32_t id) const {
  const AddedToken* token = impl_->added.ById(id);
  return token != nullptr && token->special;
}

const std::string& Tokenizer::kind() const { return impl_->model->kind(); }

}  // namespace pozor
