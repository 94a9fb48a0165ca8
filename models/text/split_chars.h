// Pre-tokenizers that look at one character at a time.
#ifndef POZOR_MODELS_TEXT_SPLIT_CHARS_H_
#define POZOR_MODELS_TEXT_SPLIT_CHARS_H_

#include <cstddef>
#include <memory>

#include "models/text/pretokenize.h"
#include "models/text/segmenter.h"

namespace pozor {

std::unique_ptr<PreTokenizer> MakeWhitespace();       // \w+|[^\w\s]+
std::unique_ptr<PreTokenizer> MakeWhitespaceSplit();  // drops white space
std::unique_ptr<PreTokenizer> MakePunctuation(Behavior behavior);
std::unique_ptr<PreTokenizer> MakeDigits(bool individual);
std::unique_ptr<PreTokenizer> MakeCharDelimiterSplit(char32_t delimiter);
std::unique_ptr<PreTokenizer> MakeFixedLength(size_t length);  // in characters
std::unique_ptr<PreTokenizer> MakeUnicodeScripts();

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_SPLIT_CHARS_H_
