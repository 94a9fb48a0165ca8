// A compact trie over byte strings: the children of a node lie side by side, so that a step is a
// search through a few bytes.
#ifndef POZOR_MODELS_TEXT_BYTE_TRIE_H_
#define POZOR_MODELS_TEXT_BYTE_TRIE_H_

#include <cstdint>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

namespace pozor {

class ByteTrie {
 public:
  // Keys with their values (not negative); of equal keys the first counts. Empty keys are left out.
  void Build(const std::vector<std::pair<std::string_view, int32_t>>& entries);

  // Calls hit(length, value) for every key that `text` begins with, the shortest first.
  template <class Hit>
  void Prefixes(std::string_view text, Hit&& hit) const {
    if (text.empty() || nodes_.empty()) return;
    uint32_t node = roots_[static_cast<uint8_t>(text[0])];
    for (size_t i = 0; node != 0;) {
      if (nodes_[node].value >= 0) hit(i + 1, nodes_[node].value);
      if (++i == text.size()) return;
      node = Child(node, text[i]);
    }
  }

 private:
  struct Node {
    uint32_t first = 0;  // index of the first child
    uint32_t count = 0;  // of children
    int32_t value = -1;
  };

  uint32_t Child(uint32_t node, char byte) const {
    const Node& parent = nodes_[node];
    const char* labels = labels_.data() + parent.first;
    if (parent.count <= 8) {
      for (uint32_t i = 0; i < parent.count; ++i) {
        if (labels[i] == byte) return parent.first + i;
      }
      return 0;
    }
    const void* found = std::memchr(labels, byte, parent.count);
    return found == nullptr
               ? 0
               : static_cast<uint32_t>(static_cast<const char*>(found) - labels_.data());
  }

  std::vector<Node> nodes_;   // 0 is the root
  std::vector<char> labels_;  // of each node, the byte that leads to it
  uint32_t roots_[256] = {};
};

}  // namespace pozor

#endif  // POZOR_MODELS_TEXT_BYTE_TRIE_H_
