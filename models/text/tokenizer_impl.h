// What a Tokenizer consists of.
#ifndef POZOR_MODELS_TEXT_TOKENIZER_IMPL_H_
#define POZOR_MODELS_TEXT_TOKENIZER_IMPL_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/added_tokens.h"
#include "models/text/bert_words.h"
#include "models/text/decode.h"
#include "models/text/normalize.h"
#include "models/text/postprocess.h"
#include "models/text/pretokenize.h"
#include "models/text/token_model.h"
#include "models/text/tokenizer.h"

namespace pozor {

struct TokenizeScratch::Impl {
  PieceList list;
  std::vector<Piece> raw_pieces;
  AlignedText piece;
  BertWords::Buffers buffers;
  IdBuffer first, second;
};

struct Tokenizer::Impl {
  std::unique_ptr<Normalizer> normalizer;       // may be null
  std::unique_ptr<PreTokenizer> pre_tokenizer;  // may be null
  std::unique_ptr<TokenModel> model;
  AddedTokens added;
  PostProcessor post;
  std::unique_ptr<Decoder> decoder;  // may be null
  size_t model_max_length = 0;
  bool byte_level = false;        // the model works on plain bytes
  std::optional<BertWords> bert;  // the quick way, where the pipeline is BERT's
  uint64_t serial = 0;            // names the pipeline to the caches of threads

  // To be called when a part has changed.
  void Finish();
  Status Check() const;

  // Cuts a text into list.pieces; `track` keeps the origins.
  Status Run(std::string_view text, bool plain_specials, bool track, PieceList& list,
             AlignedText& piece) const;
  // The ids of a text alone.
  Status Ids(std::string_view text, bool plain_specials, TokenizeScratch::Impl& scratch,
             IdBuffer* ids) const;
  Status UnknownError() const;
};

// Parts from the root of a tokenizer.json.
Result<std::unique_ptr<Tokenizer::Impl>> ParseTokenizerJson(const JsonValue& root,
                                                            const std::string& name,
                                                            std::vector<std::string>* warnings);

// From a folder: tokenizer.json or what older folders have, and tokenizer_config.json.
Result<std::unique_ptr<Tokenizer::Impl>> LoadTokenizerFolder(const std::string& folder,
                                                             std::vector<std::string>* warnings);

// From the metadata of a GGUF file, which `file` names in messages.
Result<std::unique_ptr<Tokenizer::Impl>> ReadGgufTokenizer(const GgufMetadata& metadata,
                                                           const std::string& file);

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_TOKENIZER_IMPL_H_
