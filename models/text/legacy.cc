#include "models/text/legacy.h"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <optional>
#include <tuple>
#include <utility>

#include "models/formats/file.h"
#include "models/text/sentencepiece.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

constexpr size_t kMaxVocabularyBytes = size_t{64} << 20;

Result<std::string> ReadText(const ModelFolder& folder, const std::string& name) {
  POZOR_TRY(const std::string path, folder.Resolve(name));
  POZOR_TRY(std::string text, ReadWholeFile(path, kMaxVocabularyBytes));
  const size_t invalid = unicode::FindInvalidUtf8(text);
  if (invalid < text.size()) {
    return Corrupt(name + ": byte " + std::to_string(invalid) +
                   " is not valid UTF-8; download the file again");
  }
  return text;
}

// Lines without their ends; the last needs none.
std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

void TrimEnd(std::string* line) {
  size_t size = 0;
  while (!line->empty() &&
         unicode::Is(unicode::DecodeBefore(*line, line->size(), &size), unicode::kSpaceBit)) {
    line->resize(line->size() - size);
  }
}

// A token as the files describe it: its text, or an object with settings.
AddedToken Described(const JsonValue& value) {
  const auto flag = [&value](std::string_view key) {
    const JsonValue* found = value.Find(key);
    return found != nullptr && found->as_bool();
  };
  AddedToken token;
  const JsonValue* content = value.is_object() ? value.Find("content") : &value;
  if (content != nullptr) token.content = content->as_string();
  token.single_word = flag("single_word");
  token.lstrip = flag("lstrip");
  token.rstrip = flag("rstrip");
  token.normalized = flag("normalized");
  token.special = flag("special");
  return token;
}

constexpr const char* kTokenKeys[] = {"bos_token", "eos_token", "unk_token", "sep_token",
                                      "pad_token", "cls_token", "mask_token"};

// Tokens by id: of added_tokens_decoder.
Status AddDecoder(const JsonValue& decoder, Tokenizer::Impl* impl) {
  std::vector<std::pair<int64_t, AddedToken>> tokens;
  for (const JsonMember& member : decoder.members()) {
    tokens.emplace_back(std::strtoll(std::string(member.key).c_str(), nullptr, 10),
                        Described(member.value));
  }
  std::sort(tokens.begin(), tokens.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  for (auto& [id, token] : tokens) {
    if (token.content.empty()) continue;
    POZOR_RETURN_IF_ERROR(impl->added.Add(std::move(token), *impl->model));
  }
  return Status();
}

// {"token": id} of added_tokens.json, which came before added_tokens_decoder.
Status AddListed(const ModelFolder& folder, const TokenizerConfig& config, Tokenizer::Impl* impl) {
  POZOR_TRY(const JsonDocument json, folder.ReadJsonObject("added_tokens.json"));
  std::vector<std::pair<int64_t, std::string>> tokens;
  for (const JsonMember& member : json->members()) {
    tokens.emplace_back(member.value.as_int(), member.key);
  }
  std::sort(tokens.begin(), tokens.end());
  for (const auto& [id, content] : tokens) {
    AddedToken token;
    token.content = content;
    token.special = std::any_of(std::begin(kTokenKeys), std::end(kTokenKeys),
                                [&](const char* key) { return config.Token(key, "") == content; });
    token.normalized = !token.special;
    POZOR_RETURN_IF_ERROR(impl->added.Add(std::move(token), *impl->model));
    if (impl->added.Find(content) == id) continue;
    return Unsupported("added_tokens.json: the id " + std::to_string(id) +
                       " is not the next one, " + std::to_string(impl->added.Find(content)) +
                       "; add tokenizer.json");
  }
  return Status();
}

// The special tokens of a family, found in raw text. New ones get ids behind the vocabulary.
Status AddSpecials(const ModelFolder& folder, const TokenizerConfig& config,
                   Tokenizer::Impl* impl) {
  const JsonValue* decoder = config.Find("added_tokens_decoder");
  if (decoder != nullptr && decoder->is_object()) {
    POZOR_RETURN_IF_ERROR(AddDecoder(*decoder, impl));
  } else if (folder.Has("added_tokens.json")) {
    POZOR_RETURN_IF_ERROR(AddListed(folder, config, impl));
  }
  const auto add = [&](AddedToken token) -> Status {
    token.special = true;
    if (token.content.empty() || impl->added.Find(token.content) >= 0) return Status();
    return impl->added.Add(std::move(token), *impl->model);
  };
  for (const char* key : kTokenKeys) {
    const JsonValue* value = config.FindToken(key);
    AddedToken token;
    if (value != nullptr) token = Described(*value);
    const bool plain = value == nullptr || value->is_string();
    if (value == nullptr) token.content = config.Token(key, "");
    if (plain) token.normalized = false;
    const bool deberta_mask = token.content == "[MASK]" && config.ClassName() == "DebertaTokenizer";
    if (plain) token.lstrip = token.content == "<mask>" || deberta_mask;
    POZOR_RETURN_IF_ERROR(add(std::move(token)));
  }
  for (const char* key : {"additional_special_tokens", "extra_special_tokens"}) {
    const JsonValue* more = config.FindList(key);
    if (more == nullptr) continue;
    for (const JsonValue& item : more->items()) POZOR_RETURN_IF_ERROR(add(Described(item)));
  }
  return Status();
}

Result<SpecialToken> Special(const Tokenizer::Impl& impl, const std::string& text) {
  int32_t id = impl.added.Find(text);
  if (id < 0) id = impl.model->vocabulary().Find(text);
  if (id < 0) {
    return NotFound("special token \"" + text +
                    "\": it is not in the vocabulary; correct "
                    "tokenizer_config.json or add tokenizer.json");
  }
  return SpecialToken{text, id};
}

// The cls and sep tokens around a text, in BERT's way or, where cls is <s>, RoBERTa's.
Status AddTemplate(const TokenizerConfig& config, const char* cls_name, const char* sep_name,
                   Tokenizer::Impl* impl) {
  POZOR_TRY(const SpecialToken cls, Special(*impl, config.Token("cls_token", cls_name)));
  POZOR_TRY(const SpecialToken sep, Special(*impl, config.Token("sep_token", sep_name)));
  impl->post = cls.token == "<s>" ? RobertaTemplate(cls, sep) : BertTemplate(cls, sep);
  return Status();
}

Result<std::unique_ptr<Tokenizer::Impl>> LoadWordPiece(const ModelFolder& folder,
                                                       const TokenizerConfig& config) {
  POZOR_TRY(const std::string text, ReadText(folder, "vocab.txt"));
  std::vector<std::string> tokens = Lines(text);
  for (std::string& token : tokens) TrimEnd(&token);
  auto impl = std::make_unique<Tokenizer::Impl>();
  WordPieceOptions options;
  options.unknown = config.Token("unk_token", options.unknown);
  POZOR_TRY(impl->model, MakeWordPiece(Vocabulary::FromList(tokens), options, "vocab.txt"));
  BertNormalizerOptions normalizer;
  normalizer.lowercase = config.Flag("do_lower_case").value_or(true);
  normalizer.handle_chinese_chars = config.Flag("tokenize_chinese_chars").value_or(true);
  normalizer.strip_accents = config.Flag("strip_accents").value_or(normalizer.lowercase);
  impl->normalizer = MakeBertNormalizer(normalizer);
  impl->pre_tokenizer = MakeBertPreTokenizer();
  POZOR_RETURN_IF_ERROR(AddSpecials(folder, config, impl.get()));
  POZOR_RETURN_IF_ERROR(AddTemplate(config, "[CLS]", "[SEP]", impl.get()));
  return impl;
}

// Byte-level BPE: GPT-2's words, unless the class or the special tokens are those of Qwen.
Result<std::unique_ptr<Tokenizer::Impl>> LoadByteBpe(const ModelFolder& folder,
                                                     const TokenizerConfig& config) {
  POZOR_TRY(const JsonDocument vocab, folder.ReadJsonObject("vocab.json"));
  POZOR_TRY(const std::string text, ReadText(folder, "merges.txt"));
  POZOR_TRY(Vocabulary vocabulary, Vocabulary::FromJson(*vocab, "vocab.json"));
  const std::vector<std::string> lines = Lines(text);
  POZOR_TRY(const MergeList merges, SplitMerges(lines, "merges.txt"));
  const bool qwen =
      config.ClassName().starts_with("Qwen") || config.Token("eos_token", "").starts_with("<|im_");
  const std::string cls = config.Token("cls_token", config.Token("bos_token", ""));
  BpeOptions options;
  options.byte_level = true;
  auto impl = std::make_unique<Tokenizer::Impl>();
  POZOR_TRY(impl->model, MakeBpe(std::move(vocabulary), merges, options, "merges.txt"));
  impl->pre_tokenizer = MakeByteLevel(qwen, config.Flag("add_prefix_space").value_or(false));
  if (impl->model->on_bytes()) DropByteMapping(impl->pre_tokenizer.get());
  const bool deberta = config.ClassName() == "DebertaTokenizer";
  if (qwen || (cls == "[CLS]" && !deberta)) impl->normalizer = MakeNormalizationForm(false, true);
  POZOR_RETURN_IF_ERROR(AddSpecials(folder, config, impl.get()));
  // RoBERTa's and BERT's kinds put tokens around a text, GPT-2's do not.
  if (cls == "<s>" || cls == "[CLS]") {
    POZOR_RETURN_IF_ERROR(
        AddTemplate(config, cls.c_str(), cls == "<s>" ? "</s>" : "[SEP]", impl.get()));
    for (TemplatePart& part : impl->post.pair) part.type_id = deberta ? part.type_id : 0;
  } else if (config.Flag("add_bos_token").value_or(false)) {
    return Unsupported("tokenizer_config.json: add_bos_token needs a tokenizer.json; add that");
  }
  return impl;
}

// What the families of SentencePiece models add to the pieces of the file.
struct Family {
  std::vector<std::string> head;  // pieces that replace the first `dropped` of the file
  size_t dropped = 0;
  std::vector<std::string> tail;
  const char* unknown = "<unk>";
  const char* cls = nullptr;  // null: no token before the text
  const char* sep = nullptr;
  bool lowercase = false;  // and accents and quotes, as ALBERT does
};

// A model as the trainer leaves it, whose first pieces a family replaces by its own.
bool HasTrainersHead(const SentencePieceModel& model) {
  const auto& p = model.pieces;
  return p.size() > 3 && p[0].text == "<unk>" && p[1].text == "<s>" && p[2].text == "</s>";
}

Family FamilyOf(const TokenizerConfig& config, const std::string& file,
                const SentencePieceModel& model) {
  const std::string name = config.ClassName();
  Family family;
  if (name == "CamembertTokenizer") {
    family = {{"<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED"}, 1, {"<mask>"}};
  } else if (!model.is_bpe &&
             (name == "XLMRobertaTokenizer" || file == "sentencepiece.bpe.model")) {
    family = {{"<s>", "<pad>", "</s>", "<unk>"}, 3, {"<mask>"}};
  }
  if (!family.head.empty()) {
    family.cls = "<s>";
    family.sep = "</s>";
    return family;
  }
  if (model.is_bpe) {
    family.cls = "<s>";  // Llama
    return family;
  }
  const bool bert = config.Token("cls_token", "") == "[CLS]";
  if (name.starts_with("Deberta") || file == "spm.model") {
    family.head = {"[PAD]", "[CLS]", "[SEP]", "[UNK]"};
    family.unknown = "[UNK]";
  } else if (name == "AlbertTokenizer" || bert) {
    family.head = {"<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"};
    family.lowercase = config.Flag("do_lower_case").value_or(true);
  } else {
    family.head = {"<pad>", "</s>", "<unk>"};  // T5
    family.sep = "</s>";
    for (int i = 99; i >= 0 && name == "T5Tokenizer"; --i) {
      family.tail.push_back("<extra_id_" + std::to_string(i) + ">");
    }
  }
  if (family.sep == nullptr) {
    family.cls = "[CLS]";
    family.sep = "[SEP]";
  }
  if (HasTrainersHead(model)) {
    family.dropped = 3;
  } else {
    family.head.clear();  // the published models hold their own special pieces
  }
  return family;
}

// The merges that a BPE model of SentencePiece implies: every way to cut a piece into two pieces,
// the best pieces first.
MergeList FindMerges(const SentencePieceModel& model, const Vocabulary& vocabulary) {
  struct Merge {
    float score;
    int32_t piece, left, right;
  };
  std::vector<Merge> found;
  for (size_t i = 0; i < model.pieces.size(); ++i) {
    const auto& piece = model.pieces[i];
    for (size_t cut = 1; cut < piece.text.size(); ++cut) {
      const int32_t left = vocabulary.Find(std::string_view(piece.text).substr(0, cut));
      const int32_t right = vocabulary.Find(std::string_view(piece.text).substr(cut));
      if (left < 0 || right < 0) continue;
      found.push_back({piece.score, static_cast<int32_t>(i), left, right});
    }
  }
  std::sort(found.begin(), found.end(), [](const Merge& a, const Merge& b) {
    if (a.score != b.score) return a.score > b.score;
    return std::tie(a.piece, a.left, a.right) < std::tie(b.piece, b.left, b.right);
  });
  MergeList merges;
  for (const Merge& merge : found) {
    merges.emplace_back(vocabulary.Text(merge.left), vocabulary.Text(merge.right));
  }
  return merges;
}

Result<std::unique_ptr<TokenModel>> MakePieceModel(const SentencePieceModel& source,
                                                   const Family& family, const std::string& file) {
  std::vector<std::string> pieces = family.head;
  UnigramOptions unigram;
  unigram.scores.assign(pieces.size(), 0.0);
  for (size_t i = std::min(family.dropped, source.pieces.size()); i < source.pieces.size(); ++i) {
    pieces.push_back(source.pieces[i].text);
    unigram.scores.push_back(source.pieces[i].score);
  }
  pieces.insert(pieces.end(), family.tail.begin(), family.tail.end());
  unigram.scores.resize(pieces.size(), 0.0);
  const auto unknown = std::find(pieces.begin(), pieces.end(), family.unknown);
  if (source.is_bpe) {
    Vocabulary vocabulary = Vocabulary::FromList(pieces);
    const Vocabulary names = vocabulary;
    const MergeList merges = FindMerges(source, names);
    BpeOptions options;
    options.unknown = family.unknown;
    options.fuse_unknown = true;
    options.byte_fallback = source.byte_fallback;
    return MakeBpe(std::move(vocabulary), merges, options, file);
  }
  unigram.byte_fallback = source.byte_fallback;
  unigram.unknown_id = unknown == pieces.end() ? source.unknown_id()
                                               : static_cast<int32_t>(unknown - pieces.begin());
  return MakeUnigram(pieces, std::move(unigram), file);
}

// Pieces that the file marks as found before all others.
Status AddPieces(const SentencePieceModel& source, Tokenizer::Impl* impl) {
  using Type = SentencePieceModel::Type;
  for (const auto& piece : source.pieces) {
    const bool special = piece.type == Type::kControl || piece.type == Type::kUnknown;
    if ((!special && piece.type != Type::kUserDefined) || piece.text.empty()) continue;
    if (impl->model->vocabulary().Find(piece.text) < 0) continue;  // a family's own came instead
    AddedToken token;
    token.content = piece.text;
    token.normalized = false;
    token.special = special;
    POZOR_RETURN_IF_ERROR(impl->added.Add(std::move(token), *impl->model));
  }
  return Status();
}

// Special tokens of a family: BERT's or RoBERTa's way, or one on one side only.
Status AddFamilyTemplate(const TokenizerConfig& config, const Family& family,
                         Tokenizer::Impl* impl) {
  if (family.cls != nullptr && family.sep != nullptr) {
    return AddTemplate(config, family.cls, family.sep, impl);
  }
  const bool before = family.cls != nullptr;
  const char* key = before ? "bos_token" : "eos_token";
  POZOR_TRY(const SpecialToken token,
            Special(*impl, config.Token(key, before ? family.cls : family.sep)));
  const TemplatePart special{TemplatePart::Kind::kSpecial, 0, {token.id}, {token.token}};
  const TemplatePart first, second{TemplatePart::Kind::kSecond, 0, {}, {}};
  if (before) {
    impl->post.single = {special, first};
    impl->post.pair = {special, first, special, second};
  } else {
    impl->post.single = {first, special};
    impl->post.pair = {first, special, second, special};
  }
  return Status();
}

Result<std::unique_ptr<Tokenizer::Impl>> LoadSentencePiece(const ModelFolder& folder,
                                                           const std::string& file,
                                                           const TokenizerConfig& config) {
  POZOR_TRY(const std::string path, folder.Resolve(file));
  POZOR_TRY(const std::string bytes, ReadWholeFile(path, kMaxVocabularyBytes));
  POZOR_TRY(const SentencePieceModel source, ParseSentencePiece(bytes, file));
  const Family family = FamilyOf(config, file, source);
  auto impl = std::make_unique<Tokenizer::Impl>();
  POZOR_TRY(impl->model, MakePieceModel(source, family, file));
  POZOR_TRY(impl->normalizer,
            MakeSentencePieceNormalizer(
                {source.charsmap, source.remove_extra_whitespaces, family.lowercase, source.is_bpe,
                 source.is_bpe && source.add_dummy_prefix},
                file));
  if (!source.is_bpe) impl->pre_tokenizer = MakeMetaspace(source.add_dummy_prefix, true);
  POZOR_RETURN_IF_ERROR(AddPieces(source, impl.get()));
  POZOR_RETURN_IF_ERROR(AddSpecials(folder, config, impl.get()));
  POZOR_RETURN_IF_ERROR(AddFamilyTemplate(config, family, impl.get()));
  return impl;
}

}  // namespace

Result<std::unique_ptr<Tokenizer::Impl>> LoadLegacyTokenizer(const ModelFolder& folder,
                                                             const TokenizerConfig& config) {
  std::unique_ptr<Tokenizer::Impl> impl;
  if (folder.Has("vocab.txt")) {
    POZOR_TRY(impl, LoadWordPiece(folder, config));
  } else if (folder.Has("vocab.json") && folder.Has("merges.txt")) {
    POZOR_TRY(impl, LoadByteBpe(folder, config));
  } else {
    for (const char* file :
         {"sentencepiece.bpe.model", "spiece.model", "spm.model", "tokenizer.model"}) {
      if (impl != nullptr || !folder.Has(file)) continue;
      POZOR_TRY(impl, LoadSentencePiece(folder, file, config));
    }
  }
  if (impl == nullptr) {
    return NotFound(folder.path() +
                    ": there is no tokenizer.json and no older vocabulary; "
                    "download the whole model");
  }
  POZOR_RETURN_IF_ERROR(impl->Check());
  impl->Finish();
  return impl;
}

}  // namespace pozor
