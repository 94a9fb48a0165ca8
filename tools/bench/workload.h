// Texts of known lengths, made from a seed: the same everywhere for one tokenizer.
#ifndef POZOR_TOOLS_BENCH_WORKLOAD_H_
#define POZOR_TOOLS_BENCH_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "pozor/status.h"

namespace pozor::tools {

// Tokens of a text, specials included, no limit of length.
using TokenCounter = std::function<Result<size_t>(std::string_view)>;

// A text of exactly `tokens` tokens; one fewer if the tokenizer has no word of one token to end
// with. At least the specials and one word.
Result<std::string> MakeText(size_t tokens, uint64_t seed, const TokenCounter& count);

// Lengths of a mix like that of sentences and paragraphs people encode: log-normal with median 24
// and sigma 0.9, from 5 to `longest` tokens.
std::vector<size_t> MixLengths(size_t texts, size_t longest, uint64_t seed);

// FNV-1a of the texts and the line ends after them, 16 hexadecimal digits.
std::string HashTexts(const std::vector<std::string>& texts);

// Lines of a file, every stride-th one; empty lines stay, as texts of their own.
Result<std::vector<std::string>> ReadLines(const std::string& path, size_t stride);
Status WriteLines(const std::string& path, const std::vector<std::string>& texts);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_BENCH_WORKLOAD_H_
