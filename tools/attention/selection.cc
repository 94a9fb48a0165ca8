#include "tools/attention/selection.h"

#include <charconv>
#include <set>

namespace pozor::tools {
namespace {

Status Malformed(const std::string& option, const std::string& text) {
  return InvalidArgument(option + ": '" + text + "' is no list of numbers; write 0-3,11");
}

bool ParseNumber(std::string_view text, size_t* number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), *number);
  return !text.empty() && parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

std::vector<std::string> SplitCommas(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ',') parts.emplace_back();
    if (c != ',') parts.back() += c;
  }
  return parts;
}

Status CheckBelow(const std::string& option, size_t number, size_t limit, const char* what) {
  if (number < limit) return Status();
  return InvalidArgument(option + ": " + std::to_string(number) +
                         " is beyond the model, which has " + what + " 0 to " +
                         std::to_string(limit - 1) + "; choose among these");
}

Result<std::set<size_t>> ParseBelow(const std::string& text, const std::string& option,
                                    size_t limit, const char* what) {
  std::set<size_t> numbers;
  POZOR_TRY(const auto ranges, ParseRanges(text, option));
  for (const auto& [first, last] : ranges) {
    POZOR_RETURN_IF_ERROR(CheckBelow(option, last, limit, what));
    for (size_t i = first; i <= last; ++i) numbers.insert(i);
  }
  return numbers;
}

}  // namespace

Result<std::vector<std::pair<size_t, size_t>>> ParseRanges(const std::string& text,
                                                           const std::string& option) {
  std::vector<std::pair<size_t, size_t>> ranges;
  for (const std::string& part : SplitCommas(text)) {
    const size_t dash = part.find('-');
    size_t first = 0, last = 0;
    const bool valid =
        ParseNumber(std::string_view(part).substr(0, dash), &first) &&
        (dash == std::string::npos || ParseNumber(std::string_view(part).substr(dash + 1), &last));
    if (dash == std::string::npos) last = first;
    if (!valid || last < first) return Malformed(option, text);
    ranges.emplace_back(first, last);
  }
  return ranges;
}

Result<std::vector<std::vector<size_t>>> ChooseHeads(const HeadChoice& choice, size_t layers,
                                                     size_t heads) {
  const std::string all_layers = "0-" + std::to_string(layers - 1);
  const std::string all_heads = "0-" + std::to_string(heads - 1);
  POZOR_TRY(
      const std::set<size_t> wanted,
      ParseBelow(choice.layers.empty() ? all_layers : choice.layers, "--layers", layers, "layers"));
  std::vector<std::set<size_t>> chosen(layers);
  const std::string list = choice.heads.empty() ? all_heads : choice.heads;
  const bool pairs = list.find(':') != std::string::npos;
  for (const std::string& part : SplitCommas(list)) {
    const size_t colon = part.find(':');
    if (pairs && colon == std::string::npos) {
      return InvalidArgument("--heads: '" + list +
                             "' mixes heads with layer:head pairs; write 2:5,2:7 or 5,7");
    }
    POZOR_TRY(const std::set<size_t> numbers,
              ParseBelow(pairs ? part.substr(colon + 1) : part, "--heads", heads, "heads"));
    std::set<size_t> of = wanted;
    if (pairs) {
      POZOR_TRY(of, ParseBelow(part.substr(0, colon), "--heads", layers, "layers"));
    }
    for (const size_t layer : of) {
      if (wanted.contains(layer)) chosen[layer].insert(numbers.begin(), numbers.end());
    }
  }
  std::vector<std::vector<size_t>> result;
  bool any = false;
  for (const std::set<size_t>& set : chosen) {
    result.emplace_back(set.begin(), set.end());
    any = any || !set.empty();
  }
  if (any) return result;
  return InvalidArgument("--heads: none of '" + list +
                         "' is in the layers of --layers; choose some");
}

}  // namespace pozor::tools
