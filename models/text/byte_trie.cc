#include "models/text/byte_trie.h"

#include <algorithm>

namespace pozor {
namespace {

// The first eight bytes as a number that sorts like them.
uint64_t SortKey(std::string_view text) {
  uint64_t key = 0;
  for (size_t i = 0; i < 8; ++i) {
    key = key << 8 | (i < text.size() ? static_cast<uint8_t>(text[i]) : 0);
  }
  return key;
}

}  // namespace

void ByteTrie::Build(const std::vector<std::pair<std::string_view, int32_t>>& entries) {
  struct Keyed {
    uint64_t key;
    std::string_view text;
    int32_t value;
    size_t order;
  };
  std::vector<Keyed> sorted;
  sorted.reserve(entries.size());
  for (const auto& [text, value] : entries) {
    if (!text.empty()) sorted.push_back({SortKey(text), text, value, sorted.size()});
  }
  std::sort(sorted.begin(), sorted.end(), [](const Keyed& a, const Keyed& b) {
    if (a.key != b.key) return a.key < b.key;
    return a.text != b.text ? a.text < b.text : a.order < b.order;
  });
  // Nodes are made level by level, each from a range of the sorted keys that share its path.
  struct Range {
    size_t begin, end, depth;
  };
  std::vector<Range> ranges = {{0, sorted.size(), 0}};
  nodes_.assign(1, Node{});
  labels_.assign(1, '\0');
  for (size_t n = 0; n < nodes_.size(); ++n) {
    auto [begin, end, depth] = ranges[n];
    while (begin < end && sorted[begin].text.size() == depth) {
      if (depth > 0 && nodes_[n].value < 0) nodes_[n].value = sorted[begin].value;
      ++begin;
    }
    nodes_[n].first = static_cast<uint32_t>(nodes_.size());
    while (begin < end) {
      const char byte = sorted[begin].text[depth];
      size_t stop = begin + 1;
      while (stop < end && sorted[stop].text[depth] == byte) ++stop;
      if (n == 0) roots_[static_cast<uint8_t>(byte)] = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({});
      labels_.push_back(byte);
      ranges.push_back({begin, stop, depth + 1});
      ++nodes_[n].count;
      begin = stop;
    }
  }
}

}  // namespace pozor
