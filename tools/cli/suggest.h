// "Did you mean": the known word nearest to a mistyped one.
#ifndef POZOR_TOOLS_CLI_SUGGEST_H_
#define POZOR_TOOLS_CLI_SUGGEST_H_

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace pozor::tools {

// Insertions, deletions, substitutions and swaps of neighbours that turn `a` into `b` (optimal
// string alignment distance).
size_t EditDistance(std::string_view a, std::string_view b);

// The candidate at the smallest distance, if that is at most a third of the word (at least 1); else
// one that begins with the word; else empty.
std::string Closest(std::string_view word, std::span<const std::string> candidates);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_CLI_SUGGEST_H_
