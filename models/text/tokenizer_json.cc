// From the JSON of a tokenizer.json to the parts of a Tokenizer.
#include <string>
#include <utility>

#include "models/text/parse.h"
#include "models/text/tokenizer_impl.h"

namespace pozor {
namespace {

const JsonValue& MemberOrNull(const JsonValue& object, std::string_view key) {
  static const JsonValue kNull{};
  const JsonValue* value = object.Find(key);
  return value != nullptr ? *value : kNull;
}

// Files before 2020 have no "type": the first kind whose members are there.
std::string_view OldModelType(const JsonValue& model) {
  const auto has = [&](std::string_view key) { return model.Find(key) != nullptr; };
  if (has("vocab") && has("merges")) return "BPE";
  if (has("unk_token") && has("continuing_subword_prefix") && has("vocab")) return "WordPiece";
  if (has("unk_token") && has("vocab")) return "WordLevel";
  return has("vocab") && model.Find("vocab")->is_array() ? "Unigram" : "";
}

}  // namespace

Result<std::unique_ptr<TokenModel>> ParseModel(const JsonValue& json, bool byte_level,
                                               const std::string& where) {
  if (!json.is_object()) return parse::Bad(where, "type", json.Describe() + " is not an object");
  const JsonValue* named = json.Find("type");
  const std::string_view type =
      named != nullptr && named->is_string() ? named->as_string() : OldModelType(json);
  if (type == "WordPiece") return ParseWordPiece(json, where);
  if (type == "WordLevel") return ParseWordLevel(json, where);
  if (type == "BPE") return ParseBpe(json, byte_level, where);
  if (type == "Unigram") return ParseUnigram(json, where);
  if (named == nullptr) return parse::Missing(where, "type");
  return parse::Bad(where, "type", "unknown model type " + named->Describe());
}

Result<std::unique_ptr<Tokenizer::Impl>> ParseTokenizerJson(const JsonValue& root,
                                                            const std::string& name,
                                                            std::vector<std::string>* warnings) {
  if (!root.is_object()) {
    return Corrupt(name + ": " + root.Describe() +
                   " is not an object, as a tokenizer.json is; give another file");
  }
  const JsonValue& version = MemberOrNull(root, "version");
  if (!version.is_null() && version.as_string() != "1.0") {
    return Unsupported(name + ": version " + version.Describe() +
                       " of the format is unknown, 1.0 is known; save the tokenizer again");
  }
  const JsonValue* model = root.Find("model");
  if (model == nullptr || model->is_null()) return parse::Missing(name, "model");
  auto impl = std::make_unique<Tokenizer::Impl>();
  POZOR_TRY(impl->normalizer,
            ParseNormalizer(MemberOrNull(root, "normalizer"), name + ": normalizer"));
  POZOR_TRY(impl->pre_tokenizer,
            ParsePreTokenizer(MemberOrNull(root, "pre_tokenizer"), name + ": pre_tokenizer"));
  POZOR_TRY(impl->post,
            ParsePostProcessor(MemberOrNull(root, "post_processor"), name + ": post_processor"));
  POZOR_TRY(impl->decoder, ParseDecoder(MemberOrNull(root, "decoder"), name + ": decoder"));
  POZOR_TRY(impl->model,
            ParseModel(*model, EndsInByteLevel(impl->pre_tokenizer.get()), name + ": model"));
  if (impl->model->on_bytes()) DropByteMapping(impl->pre_tokenizer.get());
  POZOR_TRY(impl->added, AddedTokens::FromJson(MemberOrNull(root, "added_tokens"), *impl->model,
                                               name, warnings));
  POZOR_RETURN_IF_ERROR(impl->Check().WithContext(name));
  impl->Finish();
  POZOR_RETURN_IF_ERROR(impl->added.Check().WithContext(name));
  return impl;
}

}  // namespace pozor
