// Decoders of tokenizer.json: tokens back to text.
#ifndef POZOR_MODELS_TEXT_DECODE_H_
#define POZOR_MODELS_TEXT_DECODE_H_

#include <memory>
#include <string>
#include <vector>

#include "models/json.h"

namespace pozor {

class Decoder {
 public:
  virtual ~Decoder() = default;
  // Changes tokens into parts of the text, which are joined without anything between them.
  virtual void Apply(std::vector<std::string>& tokens) const = 0;
};

// From the value of "decoder"; null for null. `where` names the place in messages.
Result<std::unique_ptr<Decoder>> ParseDecoder(const JsonValue& json, const std::string& where);

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_DECODE_H_
