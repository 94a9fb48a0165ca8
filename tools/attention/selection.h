// --layers, --heads and --rows.
#ifndef POZOR_TOOLS_ATTENTION_SELECTION_H_
#define POZOR_TOOLS_ATTENTION_SELECTION_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "pozor/status.h"

namespace pozor::tools {

// "0-3,11" as ranges; both ends count. InvalidArgument names `option`.
Result<std::vector<std::pair<size_t, size_t>>> ParseRanges(const std::string& text,
                                                           const std::string& option);

struct HeadChoice {
  std::string layers;  // "0-3,11"; empty: all
  std::string heads;   // "0,5" in every chosen layer, or "2:5,3:0-4" layer:heads; empty: all
};

// For every layer of the model its chosen heads, ascending; an unchosen layer has none.
// InvalidArgument if the model lacks what is asked for.
Result<std::vector<std::vector<size_t>>> ChooseHeads(const HeadChoice& choice, size_t layers,
                                                     size_t heads);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_SELECTION_H_
