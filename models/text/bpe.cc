// Byte pair encoding (Sennrich et al., 2016): characters of a word are merged pair by pair, the
// pair that was learned first goes first.
#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <utility>

#include "models/text/parse.h"
#include "models/text/pattern.h"
#include "models/text/space_cuts.h"
#include "models/text/token_model.h"
#include "models/text/unicode.h"

namespace pozor {
namespace {

using Symbol = ModelScratch::Symbol;
using Merge = ModelScratch::Merge;

// From a pair of tokens to the rank of their merge and its product.
class MergeTable {
 public:
  struct Entry {
    uint64_t pair = kEmpty;
    uint32_t rank = 0;
    int32_t product = -1;
  };

  void Reserve(size_t count) {
    slots_.assign(std::bit_ceil(std::max<size_t>(16, count * 2)), Entry{});
  }

  // A pair that comes again gets the later rank.
  void Insert(int32_t left, int32_t right, uint32_t rank, int32_t product) {
    Entry& slot = slots_[Slot(Key(left, right))];
    slot = {Key(left, right), rank, product};
  }

  // Null if the pair never merges.
  const Entry* Find(int32_t left, int32_t right) const {
    const Entry& slot = slots_[Slot(Key(left, right))];
    return slot.pair == kEmpty ? nullptr : &slot;
  }

 private:
  static constexpr uint64_t kEmpty = UINT64_MAX;
  static uint64_t Key(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  size_t Slot(uint64_t key) const {
    size_t i = (key * 0x9E3779B97F4A7C15u) >> 24 & (slots_.size() - 1);
    while (slots_[i].pair != kEmpty && slots_[i].pair != key) i = (i + 1) & (slots_.size() - 1);
    return i;
  }

  std::vector<Entry> slots_;
};

class Bpe final : public TokenModel {
 public:
  Bpe(Vocabulary vocabulary, BpeOptions options)
      : vocabulary_(std::move(vocabulary)), options_(std::move(options)) {
    for (size_t byte = 0; byte < 256; ++byte) {
      std::string c;
      unicode::AppendUtf8(ByteChar(static_cast<uint8_t>(byte)), &c);
      byte_char_ids_[byte] = vocabulary_.Find(c);
      fallback_ids_[byte] = vocabulary_.Find(ByteToken(byte));
    }
    if (options_.unknown) unknown_id_ = vocabulary_.Find(*options_.unknown);
    bool every_byte = true;
    for (size_t byte = 0; byte < 256; ++byte) {
      const bool in_utf8 = byte != 0xC0 && byte != 0xC1 && byte < 0xF5;
      every_byte &= !in_utf8 || byte_char_ids_[byte] >= 0;
    }
    on_bytes_ =
        options_.byte_level && every_byte && options_.prefix.empty() && options_.suffix.empty();
  }

  Status ReadMerges(const MergeList& merges, const std::string& where);

  bool Tokenize(std::string_view word, ModelScratch& scratch) const override {
    if (options_.ignore_merges) {
      const int32_t whole = WholeWord(word);
      if (whole >= 0) {
        scratch.tokens.push_back({whole, 0, static_cast<uint32_t>(word.size())});
        return true;
      }
    }
    scratch.symbols.clear();
    if (on_bytes_) {
      for (const char byte : word) Add(byte_char_ids_[static_cast<uint8_t>(byte)], 1, scratch);
    } else if (!Spell(word, scratch)) {
      return false;
    }
    if (scratch.symbols.size() <= kFew) {
      MergeFew(scratch.symbols);
    } else {
      MergeMany(scratch);
    }
    uint32_t at = 0;
    for (const Symbol& symbol : scratch.symbols) {
      if (symbol.size == 0) continue;
      scratch.tokens.push_back({symbol.id, at, at + symbol.size});
      at += symbol.size;
    }
    return true;
  }

  size_t IndependentPart(std::string_view word) const override {
    return cuts_at_space_ ? cuts_.FirstPart(word) : word.size();
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  const std::string& kind() const override {
    static const std::string kKind = "BPE";
    return kKind;
  }
  std::string unknown() const override { return options_.unknown.value_or(""); }
  bool on_bytes() const override { return on_bytes_; }

 private:
  // Up to here a look at every pair is quicker than a queue.
  static constexpr size_t kFew = 40;

  static void Add(int32_t id, uint32_t size, ModelScratch& scratch) {
    const auto at = static_cast<int32_t>(scratch.symbols.size());
    scratch.symbols.push_back({id, at - 1, at + 1, size});
  }

  int32_t WholeWord(std::string_view word) const {
    if (!on_bytes_) return vocabulary_.Find(word);
    thread_local std::string spelled;
    spelled.clear();
    for (const char byte : word)
      unicode::AppendUtf8(ByteChar(static_cast<uint8_t>(byte)), &spelled);
    return vocabulary_.Find(spelled);
  }

  // The characters of a word as symbols. False if one is unknown and so is the unknown token.
  bool Spell(std::string_view word, ModelScratch& scratch) const {
    bool pending = false;
    uint32_t unknown_size = 0;  // of the unknown token that waits for more of its kind
    const auto flush = [&] {
      if (pending) Add(unknown_id_, unknown_size, scratch);
      pending = false;
      unknown_size = 0;
    };
    for (size_t i = 0; i < word.size();) {
      const size_t size = unicode::SequenceLength(word[i]);
      const std::string_view c = word.substr(i, size);
      const int32_t id = CharId(c, i == 0, i + size == word.size());
      i += size;
      if (id >= 0) {
        flush();
        Add(id, static_cast<uint32_t>(size), scratch);
      } else if (Fallback(c)) {
        // As in the original, an unknown token that waits comes after these.
        for (const char byte : c) Add(fallback_ids_[static_cast<uint8_t>(byte)], 1, scratch);
      } else if (options_.unknown) {
        if (unknown_id_ < 0) return false;
        if (!options_.fuse_unknown) flush();
        pending = true;
        unknown_size += static_cast<uint32_t>(size);
      }
    }
    flush();
    return true;
  }

  int32_t CharId(std::string_view c, bool first, bool last) const {
    const bool prefixed = !first && !options_.prefix.empty();
    const bool suffixed = last && !options_.suffix.empty();
    if (!prefixed && !suffixed) return vocabulary_.Find(c);
    std::string text;
    if (prefixed) text += options_.prefix;
    text += c;
    if (suffixed) text += options_.suffix;
    return vocabulary_.Find(text);
  }

  bool Fallback(std::string_view c) const {
    return options_.byte_fallback && std::all_of(c.begin(), c.end(), [this](char byte) {
             return fallback_ids_[static_cast<uint8_t>(byte)] >= 0;
           });
  }

  // Merges in place; the symbols that are left stand at the front.
  void MergeFew(std::vector<Symbol>& symbols) const {
    const MergeTable::Entry* entries[kFew];
    size_t count = symbols.size();
    for (size_t i = 0; i + 1 < count; ++i) {
      entries[i] = merges_.Find(symbols[i].id, symbols[i + 1].id);
    }
    while (true) {
      size_t best = count;
      uint32_t rank = UINT32_MAX;
      for (size_t i = 0; i + 1 < count; ++i) {
        if (entries[i] != nullptr && entries[i]->rank < rank) {
          rank = entries[i]->rank;
          best = i;
        }
      }
      if (best == count) break;
      symbols[best].id = entries[best]->product;
      symbols[best].size += symbols[best + 1].size;
      std::move(symbols.begin() + static_cast<ptrdiff_t>(best) + 2,
                symbols.begin() + static_cast<ptrdiff_t>(count),
                symbols.begin() + static_cast<ptrdiff_t>(best) + 1);
      std::move(entries + best + 1, entries + count - 1, entries + best);
      --count;
      if (best > 0) entries[best - 1] = merges_.Find(symbols[best - 1].id, symbols[best].id);
      if (best + 1 < count) entries[best] = merges_.Find(symbols[best].id, symbols[best + 1].id);
    }
    symbols.resize(count);
  }

  // The same by a queue, for words of any length.
  void MergeMany(ModelScratch& scratch) const {
    std::vector<Symbol>& symbols = scratch.symbols;
    std::vector<Merge>& queue = scratch.queue;
    queue.clear();
    const auto later = [](const Merge& a, const Merge& b) {
      return a.rank != b.rank ? a.rank > b.rank : a.position > b.position;
    };
    const auto count = static_cast<int32_t>(symbols.size());
    const auto find = [&](int32_t at) -> const MergeTable::Entry* {
      const int32_t next = symbols[static_cast<size_t>(at)].next;
      if (next >= count) return nullptr;
      return merges_.Find(symbols[static_cast<size_t>(at)].id,
                          symbols[static_cast<size_t>(next)].id);
    };
    for (int32_t i = 0; i + 1 < count; ++i) {
      if (const auto* entry = find(i)) queue.push_back({entry->rank, i, entry->product});
    }
    std::make_heap(queue.begin(), queue.end(), later);
    const auto offer = [&](int32_t at) {
      if (at < 0) return;
      if (const auto* entry = find(at)) {
        queue.push_back({entry->rank, at, entry->product});
        std::push_heap(queue.begin(), queue.end(), later);
      }
    };
    while (!queue.empty()) {
      const Merge top = queue.front();
      std::pop_heap(queue.begin(), queue.end(), later);
      queue.pop_back();
      Symbol& left = symbols[static_cast<size_t>(top.position)];
      if (left.size == 0) continue;
      const auto* entry = find(top.position);
      if (entry == nullptr || entry->product != top.product) continue;  // overtaken by another
      Symbol& right = symbols[static_cast<size_t>(left.next)];
      left.id = top.product;
      left.size += right.size;
      left.next = right.next;
      right.size = 0;
      if (left.next < count) symbols[static_cast<size_t>(left.next)].previous = top.position;
      offer(left.previous);
      offer(top.position);
    }
  }

  Vocabulary vocabulary_;
  BpeOptions options_;
  MergeTable merges_;
  std::array<int32_t, 256> byte_char_ids_{}, fallback_ids_{};
  int32_t unknown_id_ = -1;
  bool on_bytes_ = false;
  bool cuts_at_space_ = false;  // the merges of a part do not depend on the others
  SpaceCuts cuts_;
};

Status Bpe::ReadMerges(const MergeList& merges, const std::string& where) {
  merges_.Reserve(merges.size());
  std::string product;
  uint32_t rank = 0;
  for (const auto& [left, right] : merges) {
    const int32_t left_id = vocabulary_.Find(left), right_id = vocabulary_.Find(right);
    if (right.size() < options_.prefix.size()) {
      return parse::Bad(
          where, "merges",
          "merge " + std::string(left) + " " + std::string(right) + " lacks the prefix");
    }
    product = left;
    product += right.substr(options_.prefix.size());
    const int32_t product_id = vocabulary_.Find(product);
    if (left_id < 0 || right_id < 0 || product_id < 0) {
      const std::string_view absent = left_id < 0 ? left : right_id < 0 ? right : product;
      return parse::Bad(where, "merges",
                        "merge " + std::string(left) + " " + std::string(right) + ": \"" +
                            std::string(absent) + "\" is not in the vocabulary");
    }
    merges_.Insert(left_id, right_id, rank++, product_id);
    if (right.starts_with(SpaceCuts::kSpace) && !left.empty()) cuts_.Join(left.back());
  }
  // Fallback tokens stand for other bytes than those they are spelt with.
  const bool spelt = std::any_of(merges.begin(), merges.end(), [](const auto& merge) {
    return merge.first.starts_with("<0x") || merge.second.starts_with("<0x");
  });
  cuts_at_space_ = !on_bytes_ && !options_.ignore_merges && options_.prefix.empty() &&
                   options_.suffix.empty() && vocabulary_.Find(SpaceCuts::kSpace) >= 0 &&
                   !(options_.byte_fallback && spelt);
  return Status();
}

// "a b", the form before 2024: the parts hold no space.
Status SplitMerge(std::string_view text, const std::string& where, MergeList* merges) {
  if (text.starts_with("#version")) return Status();
  const size_t space = text.find(' ');
  if (space == std::string_view::npos || text.find(' ', space + 1) != std::string_view::npos) {
    return parse::Bad(where, "merges",
                      "merge \"" + std::string(text.substr(0, 80)) + "\" does not have two parts");
  }
  merges->emplace_back(text.substr(0, space), text.substr(space + 1));
  return Status();
}

}  // namespace

Result<std::unique_ptr<TokenModel>> MakeBpe(Vocabulary vocabulary, const MergeList& merges,
                                            const BpeOptions& options, const std::string& where) {
  auto model = std::make_unique<Bpe>(std::move(vocabulary), options);
  POZOR_RETURN_IF_ERROR(model->ReadMerges(merges, where));
  return std::unique_ptr<TokenModel>(std::move(model));
}

Result<MergeList> SplitMerges(const std::vector<std::string>& lines, const std::string& where) {
  MergeList merges;
  merges.reserve(lines.size());
  for (const std::string& line : lines) {
    if (!line.empty()) POZOR_RETURN_IF_ERROR(SplitMerge(line, where, &merges));
  }
  return merges;
}

Result<std::unique_ptr<TokenModel>> ParseBpe(const JsonValue& json, bool byte_level,
                                             const std::string& where) {
  BpeOptions options;
  options.byte_level = byte_level;
  const JsonValue* dropout = json.Find("dropout");
  if (dropout != nullptr && !dropout->is_null() && dropout->as_double() != 0) {
    return parse::Bad(where, "dropout",
                      dropout->Describe() + " makes the tokens a matter of chance");
  }
  const JsonValue* unknown = json.Find("unk_token");
  if (unknown != nullptr && !unknown->is_null()) {
    POZOR_TRY(options.unknown, parse::String(json, "unk_token", std::nullopt, where));
  }
  POZOR_TRY(options.prefix, parse::String(json, "continuing_subword_prefix", "", where));
  POZOR_TRY(options.suffix, parse::String(json, "end_of_word_suffix", "", where));
  POZOR_TRY(options.fuse_unknown, parse::Bool(json, "fuse_unk", false, where));
  POZOR_TRY(options.byte_fallback, parse::Bool(json, "byte_fallback", false, where));
  POZOR_TRY(options.ignore_merges, parse::Bool(json, "ignore_merges", false, where));
  if (options.byte_fallback && !(options.prefix.empty() && options.suffix.empty())) {
    return parse::Bad(where, "byte_fallback", "it contradicts a prefix or suffix of pieces");
  }
  const JsonValue* vocab = json.Find("vocab");
  const JsonValue* list = json.Find("merges");
  if (vocab == nullptr) return parse::Missing(where, "vocab");
  if (list == nullptr || !list->is_array()) return parse::Missing(where, "merges");
  POZOR_TRY(Vocabulary vocabulary, Vocabulary::FromJson(*vocab, where));
  MergeList merges;
  merges.reserve(list->size());
  for (const JsonValue& item : list->items()) {
    const auto parts = item.items();
    if (item.is_string()) {
      POZOR_RETURN_IF_ERROR(SplitMerge(item.as_string(), where, &merges));
    } else if (parts.size() == 2 && parts[0].is_string() && parts[1].is_string()) {
      merges.emplace_back(parts[0].as_string(), parts[1].as_string());
    } else {
      return parse::Bad(where, "merges",
                        "merge " + std::to_string(merges.size()) + " does not have two parts");
    }
  }
  return MakeBpe(std::move(vocabulary), merges, options, where);
}

}  // namespace pozor
