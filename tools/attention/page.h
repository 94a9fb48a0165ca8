// The viewer's page with the data of a text in it (README.md).
#ifndef POZOR_TOOLS_ATTENTION_PAGE_H_
#define POZOR_TOOLS_ATTENTION_PAGE_H_

#include <span>
#include <string>
#include <string_view>

#include "tools/attention/encoding.h"
#include "tools/attention/source.h"
#include "tools/io/output_file.h"

namespace pozor::tools {

// The bundled page up to the place of the data, and from there on. Made by the build.
extern const std::string_view kViewerHead, kViewerTail;

struct PageOptions {
  WeightType type = WeightType::kSqrtU8;
  bool one_thread = false;
};

// Whole matrices of one source, or of two over the same tokens and heads. Does not commit. Refuses
// more weights than a browser can take.
Status WritePage(std::span<AttentionSource* const> sources, const PageOptions& options,
                 OutputFile& file);

// The data element's JSON. `source`: "embedded" or "served".
std::string PageJson(std::span<AttentionSource* const> sources, WeightType type,
                     std::string_view source);

// The same page without weights, for a server.
std::string ServedPage(const std::string& json);

// Two runs over different tokens or heads cannot be compared: the error says in what they differ.
Status CheckComparable(const AttentionRecord& a, const AttentionRecord& b);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_PAGE_H_
