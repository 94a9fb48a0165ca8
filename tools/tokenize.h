// pozor tokenize: what a model's tokenizer makes of texts.
#ifndef POZOR_TOOLS_TOKENIZE_H_
#define POZOR_TOOLS_TOKENIZE_H_

#include <optional>
#include <string>
#include <vector>

#include "pozor/status.h"
#include "tools/io/records.h"

namespace pozor::tools {

struct TokenizeRequest {
  std::string model;  // only its tokenizer is read: a folder without weights will do
  std::vector<std::string> inputs = {"-"};
  std::optional<InputFormat> input_format;
  std::string text_field;
  bool header = true;
  std::optional<std::string> text;  // instead of any input
  std::optional<std::string> pair;  // second text of every pair
  size_t max_length = 0;            // 0: the model's limit
  bool plain_specials = false;
  bool json = false;
};

// A text a line on standard output: JSON, or "ids<TAB>tokens".
Status RunTokenize(const TokenizeRequest& request);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_TOKENIZE_H_
