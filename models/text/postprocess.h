// What is done with a text's tokens at the end: cut to length, put between special tokens.
#ifndef POZOR_MODELS_TEXT_POSTPROCESS_H_
#define POZOR_MODELS_TEXT_POSTPROCESS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "models/json.h"
#include "models/text/tokenizer.h"

namespace pozor {

// A part of the result: the first text, the second, or special tokens.
struct TemplatePart {
  enum class Kind : uint8_t { kFirst, kSecond, kSpecial };
  Kind kind = Kind::kFirst;
  int32_t type_id = 0;
  std::vector<int32_t> ids;         // of kSpecial
  std::vector<std::string> tokens;  // as many
};

// TemplateProcessing, BertProcessing, RobertaProcessing, ByteLevel or a Sequence of these.
struct PostProcessor {
  std::vector<TemplatePart> single = {{}};
  std::vector<TemplatePart> pair = {{}, {TemplatePart::Kind::kSecond, 1, {}, {}}};

  // Offsets leave out spaces at the ends of a token; with the second, not the one space that a
  // pre-tokenizer may have put before a text.
  struct Trim {
    bool add_prefix_space;
  };
  std::vector<Trim> trims;

  // Whose type the tokens of a text have in the windows after its first: its number (0, 1), or with
  // this and special tokens, as in the first, the template's.
  bool template_types_overflow = false;

  const std::vector<TemplatePart>& parts(bool is_pair) const { return is_pair ? pair : single; }
  size_t special_count(bool is_pair) const;
  // An error if a special token has an id that is not below `id_limit`.
  Status Check(int32_t id_limit) const;
};

// From the value of "post_processor", which may be null.
Result<PostProcessor> ParsePostProcessor(const JsonValue& json, const std::string& where);

// "[CLS] $A [SEP]" and the like in code: cls and sep with their ids, as BERT or as RoBERTa.
struct SpecialToken {
  std::string token;
  int32_t id = 0;
};
PostProcessor BertTemplate(const SpecialToken& cls, const SpecialToken& sep);
PostProcessor RobertaTemplate(const SpecialToken& cls, const SpecialToken& sep);

// The parts of a sequence of tokens that are kept: the first is the result, the others what
// overflows. [0, count) if nothing is cut.
struct Window {
  size_t begin = 0, end = 0;
};
struct Windows {
  std::vector<Window> first, second;
};

// Cuts a text of `first` tokens, and a second one of `second` if `is_pair`, to
// options.max_length less the special tokens.
Result<Windows> Truncate(size_t first, size_t second, bool is_pair, size_t specials,
                         const TokenizeOptions& options);

// The first window of each alone.
struct FirstWindows {
  Window first, second;
};
Result<FirstWindows> TruncateOnce(size_t first, size_t second, bool is_pair, size_t specials,
                                  const TokenizeOptions& options);

// As PostProcessor::trims says, for tokens [0, count) of one window.
void TrimOffsets(const PostProcessor& processor, const std::vector<std::string>& tokens,
                 std::vector<Span>& offsets);

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_POSTPROCESS_H_
