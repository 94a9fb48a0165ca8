// What every dump and page says about a text and the runs over it, beside the weights.
#ifndef POZOR_TOOLS_ATTENTION_RECORD_H_
#define POZOR_TOOLS_ATTENTION_RECORD_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/json.h"
#include "pozor/pozor.hpp"
#include "tools/bench/json_writer.h"

namespace pozor::tools {

// A run of tokens that belongs to one word of the text.
struct Word {
  int32_t sequence = 0;            // of the two texts of a pair
  uint32_t begin = 0, end = 0;     // code points
  size_t first = 0, past_end = 0;  // tokens
};

struct TextRecord {
  std::vector<std::string> texts;  // one, or two of a pair
  size_t max_length = 0;
  TokenizeResult tokens;
  std::vector<int32_t> word;  // [tokens] index into words; -1 for specials
  std::vector<Word> words;

  size_t size() const { return tokens.ids.size(); }
};

// The heads that are looked at, and what their layers let a query see.
struct HeadSet {
  size_t layer_count = 0, head_count = 0;  // of the model
  std::vector<size_t> layers;              // ascending
  std::vector<std::vector<size_t>> heads;  // of each of them, ascending
  std::vector<std::optional<size_t>> windows;
  bool causal = false;

  size_t Count() const;                                  // heads in all
  size_t LayerIndex(size_t layer) const;                 // past the end if it is not here
  size_t Slot(size_t layer, size_t head) const;          // number among all heads here
  std::vector<std::pair<size_t, size_t>> Pairs() const;  // (layer, head) in order
  bool SameHeadsEverywhere() const;                      // dumps are then rectangular
};

struct RunRecord {
  std::string label, model, architecture, precision, tier, weights_hash;
  double max_row_sum_error = 0;
  std::optional<double> max_vector_difference;
};

struct AttentionRecord {
  TextRecord text;
  HeadSet heads;
  std::string positions = "unknown";  // kind of position encoding
  std::string position_panel;         // JSON object of the page's panel; empty: only the kind
  std::vector<RunRecord> runs;
};

// The words are made of the tokenizer's; offsets are those of their pieces.
TextRecord MakeTextRecord(std::vector<std::string> texts, size_t max_length, TokenizeResult tokens);

// A slice of a text by code points.
std::string CodePoints(const std::string& text, uint32_t begin, uint32_t end);
std::string WordText(const TextRecord& text, const Word& word);

// The members of the record, inside an object that is open.
void WriteRecord(const AttentionRecord& record, JsonWriter* json);
Result<AttentionRecord> ReadRecord(const JsonValue& json, const std::string& where);

// The same JSON in ASCII without <, > and &: safe inside an HTML script element, and no character
// of the text can reorder or end the source around it.
std::string SafeJson(std::string_view json);

}  // namespace pozor::tools

#endif  // POZOR_TOOLS_ATTENTION_RECORD_H_
