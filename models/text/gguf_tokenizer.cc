// The tokenizer in the metadata of a GGUF file.
//
// The file keeps tokens, their kinds, scores and merges, but not the normaliser: whether BERT
// lower-cases is told from the vocabulary (a lower-casing one has no token with a capital letter).
#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "models/formats/gguf_header.h"
#include "models/text/tokenizer_impl.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

constexpr std::string_view kMarker = "\xE2\x96\x81";  // U+2581, before a word
constexpr std::string_view kPrefix = "tokenizer.ggml.";

// Kinds of tokens in tokenizer.ggml.token_type.
enum TokenKind : int { kNormal = 1, kUnknown, kControl, kUserDefined };

// 0 for what is no small number.
int SmallInt(double value) { return value >= -1e6 && value <= 1e6 ? static_cast<int>(value) : 0; }

class GgufTokenizerReader {
 public:
  GgufTokenizerReader(const GgufMetadata& metadata, const std::string& file)
      : metadata_(metadata), file_(file), impl_(std::make_unique<Tokenizer::Impl>()) {}

  Result<std::unique_ptr<Tokenizer::Impl>> Read() {
    POZOR_RETURN_IF_ERROR(ReadTokens());
    const std::string_view model = metadata_.Text(Key("model"));
    if (model == "bert") {
      POZOR_RETURN_IF_ERROR(ReadWordPiece());
    } else if (model == "t5") {
      POZOR_RETURN_IF_ERROR(ReadUnigram());
    } else if (model == "gpt2") {
      POZOR_RETURN_IF_ERROR(ReadByteBpe());
    } else {
      return Unsupported(file_ + ": the GGUF tokenizer " + std::string(model.substr(0, 80)) +
                         " is not supported; put the model's tokenizer.json beside the file");
    }
    POZOR_RETURN_IF_ERROR(AddSpecials());
    POZOR_RETURN_IF_ERROR(AddTemplate());
    POZOR_RETURN_IF_ERROR(impl_->Check());
    impl_->Finish();
    return std::move(impl_);
  }

 private:
  static std::string Key(std::string_view name) { return std::string(kPrefix) + std::string(name); }
  Status Bad(const std::string& why) const {
    return Corrupt(file_ + ": " + why +
                   "; convert the model again, or put its tokenizer.json beside the file");
  }

  Status ReadTokens() {
    const GgufValue* tokens = metadata_.Find(Key("tokens"));
    if (tokens == nullptr || tokens->texts.empty()) {
      return NotFound(file_ + ": there is no tokenizer in it (" + Key("tokens") +
                      "); put the model's tokenizer.json beside the file");
    }
    for (const std::string_view token : tokens->texts) {
      if (unicode::FindInvalidUtf8(token) < token.size()) {
        return Bad("token " + std::to_string(tokens_.size()) + " is not valid UTF-8");
      }
      tokens_.emplace_back(token);
    }
    const GgufValue* kinds = metadata_.Find(Key("token_type"));
    kinds_.assign(tokens_.size(), kNormal);
    if (kinds == nullptr) return Status();
    if (kinds->numbers.size() != tokens_.size()) {
      return Bad(Key("token_type") + " has another length than " + Key("tokens"));
    }
    for (size_t i = 0; i < kinds_.size(); ++i) kinds_[i] = SmallInt(kinds->numbers[i]);
    return Status();
  }

  // The token that a key names by its id; empty if the key is absent or outside.
  SpecialToken Named(std::initializer_list<std::string_view> keys) const {
    for (const std::string_view key : keys) {
      const int64_t id = metadata_.Int(Key(key)).value_or(-1);
      if (id < 0 || static_cast<size_t>(id) >= tokens_.size()) continue;
      return {tokens_[static_cast<size_t>(id)], static_cast<int32_t>(id)};
    }
    return {"", -1};
  }

  // The file writes words as U+2581 and the word, and leaves out the "##" of what continues one.
  Status ReadWordPiece() {
    bool capitals = false;
    for (size_t i = 0; i < tokens_.size(); ++i) {
      std::string& token = tokens_[i];
      if (kinds_[i] == kControl || kinds_[i] == kUnknown) continue;
      const bool special = token.size() > kMarker.size() + 2 && token[kMarker.size()] == '[' &&
                           token.back() == ']';  // "[unused1]"
      if (token.starts_with(kMarker)) {
        token.erase(0, kMarker.size());
      } else {
        token.insert(0, "##");
      }
      const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
      capitals |= !special && std::any_of(token.begin(), token.end(), is_capital);
    }
    WordPieceOptions options;
    const SpecialToken unknown = Named({"unknown_token_id"});
    if (unknown.id >= 0) options.unknown = unknown.token;
    POZOR_TRY(impl_->model, MakeWordPiece(Vocabulary::FromList(tokens_), options, file_));
    BertNormalizerOptions normalizer;
    normalizer.lowercase = normalizer.strip_accents = !capitals;
    impl_->normalizer = MakeBertNormalizer(normalizer);
    impl_->pre_tokenizer = MakeBertPreTokenizer();
    return Status();
  }

  // SentencePiece's Unigram, as XLM-R has it.
  Status ReadUnigram() {
    const GgufValue* scores = metadata_.Find(Key("scores"));
    if (scores == nullptr || scores->numbers.size() != tokens_.size()) {
      return Bad(Key("scores") + " is missing or has another length than " + Key("tokens"));
    }
    UnigramOptions options;
    options.scores = scores->numbers;
    options.unknown_id = Named({"unknown_token_id"}).id;
    POZOR_TRY(impl_->model, MakeUnigram(tokens_, std::move(options), file_));
    SentencePieceNormalizerOptions normalizer;
    if (const GgufValue* map = metadata_.Find(Key("precompiled_charsmap"))) {
      for (const double byte : map->numbers) {
        normalizer.charsmap.push_back(static_cast<char>(SmallInt(byte)));
      }
    }
    normalizer.remove_extra_spaces = metadata_.Flag(Key("remove_extra_whitespaces")).value_or(true);
    POZOR_TRY(impl_->normalizer, MakeSentencePieceNormalizer(normalizer, file_));
    const bool prefix = metadata_.Flag(Key("add_space_prefix")).value_or(true);
    impl_->pre_tokenizer = MakeMetaspace(prefix, true);
    return Status();
  }

  Status ReadByteBpe() {
    const std::string_view pre = metadata_.Text(Key("pre"));
    const bool qwen = pre == "qwen2";
    const bool modern = pre == "modern-bert";
    if (!qwen && !modern && pre != "gpt-2" && pre != "roberta-bpe") {
      return Unsupported(file_ + ": the GGUF pre-tokenizer " + std::string(pre.substr(0, 80)) +
                         " is not supported; put the model's tokenizer.json beside the file");
    }
    const GgufValue* list = metadata_.Find(Key("merges"));
    if (list == nullptr) return Bad(Key("merges") + " is missing");
    const std::vector<std::string> lines(list->texts.begin(), list->texts.end());
    POZOR_TRY(const MergeList merges, SplitMerges(lines, file_));
    BpeOptions options;
    options.byte_level = true;
    POZOR_TRY(impl_->model, MakeBpe(Vocabulary::FromList(tokens_), merges, options, file_));
    const bool prefix = metadata_.Flag(Key("add_space_prefix")).value_or(false);
    impl_->pre_tokenizer = MakeByteLevel(qwen, prefix);
    if (impl_->model->on_bytes()) DropByteMapping(impl_->pre_tokenizer.get());
    if (qwen || modern) impl_->normalizer = MakeNormalizationForm(false, true);
    return Status();
  }

  // Control tokens are found in the text as they stand.
  Status AddSpecials() {
    for (size_t i = 0; i < tokens_.size(); ++i) {
      const bool special = kinds_[i] == kControl || kinds_[i] == kUnknown;
      if ((!special && kinds_[i] != kUserDefined) || tokens_[i].empty()) continue;
      AddedToken token;
      token.content = tokens_[i];
      token.normalized = false;
      token.special = special;
      token.lstrip = token.content == "<mask>";
      POZOR_RETURN_IF_ERROR(impl_->added.Add(std::move(token), *impl_->model));
    }
    return Status();
  }

  Status AddTemplate() {
    const bool bert = metadata_.Text(Key("model")) == "bert";
    const SpecialToken first = Named({"cls_token_id", "bos_token_id"});
    const SpecialToken last = Named({"seperator_token_id", "separator_token_id", "eos_token_id"});
    const bool has_first = metadata_.Flag(Key("add_bos_token")).value_or(bert) && first.id >= 0;
    const bool has_last = metadata_.Flag(Key("add_eos_token")).value_or(bert) && last.id >= 0;
    if (has_first && has_last) {
      impl_->post = first.token == "<s>" ? RobertaTemplate(first, last) : BertTemplate(first, last);
      return Status();
    }
    if (bert) return Bad("the ids of the first and last token are missing");
    const auto part = [](const SpecialToken& token) {
      return TemplatePart{TemplatePart::Kind::kSpecial, 0, {token.id}, {token.token}};
    };
    auto& post = impl_->post;
    for (std::vector<TemplatePart>* parts : {&post.single, &post.pair}) {
      if (has_first) parts->insert(parts->begin(), part(first));
      if (has_last) parts->push_back(part(last));
    }
    return Status();
  }

  const GgufMetadata& metadata_;
  const std::string& file_;
  std::unique_ptr<Tokenizer::Impl> impl_;
  std::vector<std::string> tokens_;
  std::vector<int> kinds_;
};

}  // namespace

Result<std::unique_ptr<Tokenizer::Impl>> ReadGgufTokenizer(const GgufMetadata& metadata,
                                                           const std::string& file) {
  return GgufTokenizerReader(metadata, file).Read();
}

}  // namespace pozor
