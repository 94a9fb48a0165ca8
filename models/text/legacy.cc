#include "models/text/legacy.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <utility>

#include "models/formats/file.h"
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

// The special tokens of a family, found in raw text.
Status AddSpecials(const TokenizerConfig& config, Tokenizer::Impl* impl) {
  constexpr const char* kKeys[] = {"pad_token",  "unk_token", "cls_token", "sep_token",
                                   "mask_token", "bos_token", "eos_token"};
  const JsonValue* decoder = config.Find("added_tokens_decoder");
  if (decoder != nullptr && decoder->is_object()) {
    std::vector<std::pair<int64_t, AddedToken>> tokens;
    for (const JsonMember& member : decoder->members()) {
      const JsonValue& value = member.value;
      const auto flag = [&value](std::string_view key) {
        const JsonValue* found = value.Find(key);
        return found != nullptr && found->as_bool();
      };
      const JsonValue* content = value.Find("content");
      if (content == nullptr || content->as_string().empty()) continue;
      AddedToken token{std::string(content->as_string()),
                       -1,
                       flag("single_word"),
                       flag("lstrip"),
                       flag("rstrip"),
                       flag("normalized"),
                       flag("special")};
      tokens.emplace_back(std::strtoll(std::string(member.key).c_str(), nullptr, 10),
                          std::move(token));
    }
    std::stable_sort(tokens.begin(), tokens.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (auto& [id, token] : tokens) {
      POZOR_RETURN_IF_ERROR(impl->added.Add(std::move(token), impl->model->vocabulary()));
    }
  }
  for (const char* key : kKeys) {
    AddedToken token;
    token.content = config.Token(key, "");
    if (token.content.empty() || impl->added.Find(token.content) >= 0) continue;
    token.normalized = false;
    token.special = true;
    token.lstrip = token.content == "<mask>";
    POZOR_RETURN_IF_ERROR(impl->added.Add(std::move(token), impl->model->vocabulary()));
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
  POZOR_RETURN_IF_ERROR(AddSpecials(config, impl.get()));
  POZOR_RETURN_IF_ERROR(AddTemplate(config, "[CLS]", "[SEP]", impl.get()));
  return impl;
}

}  // namespace

Result<std::unique_ptr<Tokenizer::Impl>> LoadLegacyTokenizer(const ModelFolder& folder,
                                                             const TokenizerConfig& config) {
  std::unique_ptr<Tokenizer::Impl> impl;
  if (folder.Has("vocab.txt")) {
    POZOR_TRY(impl, LoadWordPiece(folder, config));
  } else {
    return NotFound(folder.path() +
                    ": there is no tokenizer.json and no older vocabulary; "
                    "download the whole model");
  }
  POZOR_RETURN_IF_ERROR(impl->Check());
  impl->Finish();
  return impl;
}

}  // namespace pozor
