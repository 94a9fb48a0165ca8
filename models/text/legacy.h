// Folders without a tokenizer.json: what older files say, put together as transformers does.
#ifndef POZOR_MODELS_TEXT_LEGACY_H_
#define POZOR_MODELS_TEXT_LEGACY_H_

#include <memory>
#include <string>

#include "models/formats/folder.h"
#include "models/text/tokenizer_impl.h"

namespace pozor {

// tokenizer_config.json and special_tokens_map.json of a folder; either may be missing.
class TokenizerConfig {
 public:
  static Result<TokenizerConfig> Read(const ModelFolder& folder);

  // From now on the special tokens that nothing names are those of the tokenizer's class: the one
  // that the configuration or config.json names, else the one for config.json's model type, else
  // BERT's where there is a vocab.txt.
  Status AssumeClass(const ModelFolder& folder);

  // The text of a special token ("cls_token"), a string or {"content": ...}.
  std::string Token(std::string_view key, std::string_view otherwise) const;
  // The same as the files have it, null if they do not.
  const JsonValue* FindToken(std::string_view key) const;
  // A list in one of the files; null if neither has it.
  const JsonValue* FindList(std::string_view key) const;
  std::optional<bool> Flag(std::string_view key) const;
  const JsonValue* Find(std::string_view key) const;
  // 0 if it says nothing or that there is none.
  size_t ModelMaxLength() const;
  std::string ClassName() const;

 private:
  std::string assumed_;  // a class
  std::optional<JsonDocument> config_, special_map_;
};

// vocab.txt: WordPiece. vocab.json and merges.txt: byte-level BPE. A SentencePiece model: Unigram
// or BPE. NotFound if the folder has none of these.
Result<std::unique_ptr<Tokenizer::Impl>> LoadLegacyTokenizer(const ModelFolder& folder,
                                                             const TokenizerConfig& config);

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_LEGACY_H_
