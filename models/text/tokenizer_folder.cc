// A tokenizer from a model folder, with what tokenizer_config.json has to say.
#include <algorithm>
#include <initializer_list>
#include <string>
#include <utility>

#include "models/formats/folder.h"
#include "models/text/legacy.h"
#include "models/text/tokenizer_impl.h"

namespace pozor {

namespace {

std::string WithoutFast(std::string_view name) {
  if (name.ends_with("Fast")) name.remove_suffix(4);
  return std::string(name);
}

}  // namespace

Result<TokenizerConfig> TokenizerConfig::Read(const ModelFolder& folder) {
  TokenizerConfig config;
  if (folder.Has("tokenizer_config.json")) {
    POZOR_TRY(config.config_, folder.ReadJsonObject("tokenizer_config.json"));
  }
  if (folder.Has("special_tokens_map.json")) {
    POZOR_TRY(config.special_map_, folder.ReadJsonObject("special_tokens_map.json"));
  }
  return config;
}

const JsonValue* TokenizerConfig::Find(std::string_view key) const {
  return config_ ? (*config_)->Find(key) : nullptr;
}

const JsonValue* TokenizerConfig::FindToken(std::string_view key) const {
  for (const auto* document : {&config_, &special_map_}) {
    const JsonValue* value = *document ? (**document)->Find(key) : nullptr;
    if (value != nullptr && (value->is_string() || value->is_object())) return value;
  }
  return nullptr;
}

const JsonValue* TokenizerConfig::FindList(std::string_view key) const {
  for (const auto* document : {&config_, &special_map_}) {
    const JsonValue* value = *document ? (**document)->Find(key) : nullptr;
    if (value != nullptr && value->is_array()) return value;
  }
  return nullptr;
}

namespace {

// The special tokens that classes of transformers have where no file names them.
struct ClassTokens {
  std::string_view classes, model_types;  // each name between spaces
  std::string_view cls, sep, pad, unk, mask, bos, eos;
};

constexpr ClassTokens kClassTokens[] = {
    {" BertTokenizer DistilBertTokenizer ElectraTokenizer MobileBertTokenizer"
     " SqueezeBertTokenizer ",
     " bert distilbert electra mobilebert squeezebert ", "[CLS]", "[SEP]", "[PAD]", "[UNK]",
     "[MASK]", "", ""},
    {" RobertaTokenizer LongformerTokenizer BartTokenizer ", " roberta longformer bart ", "<s>",
     "</s>", "<pad>", "<unk>", "<mask>", "<s>", "</s>"},
    {" MPNetTokenizer ", " mpnet ", "<s>", "</s>", "<pad>", "[UNK]", "<mask>", "<s>", "</s>"},
    {" DebertaTokenizer ", " deberta ", "[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]", "[CLS]",
     "[SEP]"},
    {" GPT2Tokenizer ", " gpt2 ", "", "", "", "<|endoftext|>", "", "<|endoftext|>",
     "<|endoftext|>"},
    {" Qwen2Tokenizer ", " qwen2 qwen3 ", "", "", "<|endoftext|>", "<|endoftext|>", "", "",
     "<|endoftext|>"},
};

bool Lists(std::string_view names, std::string_view name) {
  return !name.empty() && names.find(" " + std::string(name) + " ") != std::string_view::npos;
}

std::string_view DefaultToken(std::string_view class_name, std::string_view key) {
  for (const ClassTokens& entry : kClassTokens) {
    if (!Lists(entry.classes, class_name)) continue;
    const std::pair<std::string_view, std::string_view> tokens[] = {
        {"cls_token", entry.cls}, {"sep_token", entry.sep},   {"pad_token", entry.pad},
        {"unk_token", entry.unk}, {"mask_token", entry.mask}, {"bos_token", entry.bos},
        {"eos_token", entry.eos}};
    for (const auto& [name, token] : tokens) {
      if (name == key) return token;
    }
  }
  return "";
}

}  // namespace

Status TokenizerConfig::AssumeClass(const ModelFolder& folder) {
  assumed_ = ClassName();
  std::string model_type;
  if (folder.Has("config.json")) {
    POZOR_TRY(const JsonDocument config, folder.ReadJsonObject("config.json"));
    const JsonValue* named = config->Find("tokenizer_class");
    if (assumed_.empty() && named != nullptr) assumed_ = WithoutFast(named->as_string());
    const JsonValue* type = config->Find("model_type");
    if (type != nullptr) model_type = type->as_string();
  }
  if (!assumed_.empty()) return Status();
  for (const ClassTokens& entry : kClassTokens) {
    if (!Lists(entry.model_types, model_type)) continue;
    assumed_ = entry.classes.substr(1, entry.classes.find(' ', 1) - 1);
  }
  if (assumed_.empty() && folder.Has("vocab.txt")) assumed_ = "BertTokenizer";
  return Status();
}

std::string TokenizerConfig::Token(std::string_view key, std::string_view otherwise) const {
  const JsonValue* value = FindToken(key);
  if (value != nullptr && value->is_object()) value = value->Find("content");
  if (value != nullptr && value->is_string()) return std::string(value->as_string());
  const std::string_view token = DefaultToken(assumed_, key);
  return std::string(token.empty() ? otherwise : token);
}

std::optional<bool> TokenizerConfig::Flag(std::string_view key) const {
  const JsonValue* value = Find(key);
  if (value == nullptr || !value->is_bool()) return std::nullopt;
  return value->as_bool();
}

size_t TokenizerConfig::ModelMaxLength() const {
  // Without a limit transformers writes 1e30, as a number of either kind.
  constexpr double kNoLimit = 1e15;
  const JsonValue* value = Find("model_max_length");
  if (value == nullptr || !value->is_number()) return 0;
  const double length = value->as_double();
  return length >= 1 && length < kNoLimit ? static_cast<size_t>(length) : 0;
}

std::string TokenizerConfig::ClassName() const {
  const JsonValue* value = Find("tokenizer_class");
  const std::string name = WithoutFast(value != nullptr ? value->as_string() : std::string_view());
  return name.empty() ? assumed_ : name;
}

namespace {

// Whether the template of single texts has special tokens before (or after) the text.
bool HasSpecials(const PostProcessor& post, bool before) {
  const std::vector<TemplatePart>& parts = post.single;
  if (parts.empty()) return false;
  const TemplatePart& end = before ? parts.front() : parts.back();
  return end.kind == TemplatePart::Kind::kSpecial;
}

bool IsOneOf(const std::string& name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The classes of transformers that set up their normaliser or pre-tokenizer by the configuration,
// whatever tokenizer.json holds there. Keys that are missing have the defaults of these classes.
void ApplyFamilySettings(const TokenizerConfig& config, Tokenizer::Impl* impl) {
  const std::string name = config.ClassName();
  const bool bert = IsOneOf(name, {"BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer",
                                   "MobileBertTokenizer", "SqueezeBertTokenizer"});
  if (bert && AsBertNormalizer(impl->normalizer.get()) != nullptr) {
    BertNormalizerOptions options = *AsBertNormalizer(impl->normalizer.get());
    options.lowercase = config.Flag("do_lower_case").value_or(true);
    options.strip_accents = config.Flag("strip_accents").value_or(options.lowercase);
    options.handle_chinese_chars = config.Flag("tokenize_chinese_chars").value_or(true);
    impl->normalizer = MakeBertNormalizer(options);
    impl->Finish();
  }
  const bool roberta = IsOneOf(name, {"RobertaTokenizer", "LongformerTokenizer", "BartTokenizer"});
  if (!roberta && name != "GPT2Tokenizer") return;
  const bool prefix = config.Flag("add_prefix_space").value_or(false);
  if (!SetAddPrefixSpace(impl->pre_tokenizer.get(), prefix)) return;
  for (PostProcessor::Trim& trim : impl->post.trims) {
    if (roberta) trim.add_prefix_space = prefix;
  }
  impl->Finish();
}

// Otherwise tokenizer.json decides; keys of tokenizer_config.json that ask for something else are
// named.
void WarnOfContradictions(const TokenizerConfig& config, const Tokenizer::Impl& impl,
                          std::vector<std::string>* warnings) {
  if (warnings == nullptr) return;
  const auto warn = [&](std::string_view key, bool wanted, bool is) {
    if (wanted == is) return;
    warnings->push_back("tokenizer_config.json: " + std::string(key) + " is " +
                        (wanted ? "true" : "false") + ", but tokenizer.json does " +
                        (is ? "" : "not ") + "do that; tokenizer.json is followed");
  };
  if (const auto bos = config.Flag("add_bos_token")) {
    warn("add_bos_token", *bos, HasSpecials(impl.post, true));
  }
  if (const auto eos = config.Flag("add_eos_token")) {
    warn("add_eos_token", *eos, HasSpecials(impl.post, false));
  }
  const BertNormalizerOptions* bert = AsBertNormalizer(impl.normalizer.get());
  if (bert == nullptr) return;
  if (const auto lower = config.Flag("do_lower_case"))
    warn("do_lower_case", *lower, bert->lowercase);
  if (const auto strip = config.Flag("strip_accents")) {
    warn("strip_accents", *strip, bert->strip_accents);
  }
  if (const auto chinese = config.Flag("tokenize_chinese_chars")) {
    warn("tokenize_chinese_chars", *chinese, bert->handle_chinese_chars);
  }
}

}  // namespace

Result<std::unique_ptr<Tokenizer::Impl>> LoadTokenizerFolder(const std::string& path,
                                                             std::vector<std::string>* warnings) {
  POZOR_TRY(const ModelFolder folder, ModelFolder::Open(path));
  POZOR_TRY(TokenizerConfig config, TokenizerConfig::Read(folder));
  std::unique_ptr<Tokenizer::Impl> impl;
  if (folder.Has("tokenizer.json")) {
    POZOR_TRY(const JsonDocument json, folder.ReadJson("tokenizer.json"));
    POZOR_TRY(impl, ParseTokenizerJson(*json, "tokenizer.json", warnings));
    ApplyFamilySettings(config, impl.get());
    WarnOfContradictions(config, *impl, warnings);
  } else {
    POZOR_RETURN_IF_ERROR(config.AssumeClass(folder));
    POZOR_TRY(impl, LoadLegacyTokenizer(folder, config));
  }
  impl->model_max_length = config.ModelMaxLength();
  return impl;
}

}  // namespace pozor
