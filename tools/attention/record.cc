#include "tools/attention/record.h"

#include <algorithm>
#include <cstdio>

namespace pozor::tools {
namespace {

// Byte where code point `index` begins; the end of the text if there are fewer.
size_t ByteOf(std::string_view text, uint32_t index) {
  size_t byte = 0;
  for (uint32_t seen = 0; byte < text.size(); ++byte) {
    const bool begins = (static_cast<unsigned char>(text[byte]) & 0xC0) != 0x80;
    if (begins && seen++ == index) break;
  }
  return byte;
}

template <class T>
void WriteIntegers(const char* key, const std::vector<T>& numbers, JsonWriter* json) {
  std::string list;
  for (const T number : numbers) list += (list.empty() ? "" : ",") + std::to_string(number);
  json->Key(key).Raw("[" + list + "]");
}

void WriteSpans(const char* key, const std::vector<std::pair<uint32_t, uint32_t>>& spans,
                JsonWriter* json) {
  std::string list;
  for (const auto& [begin, end] : spans) {
    list += (list.empty() ? "[" : ",[") + std::to_string(begin) + "," + std::to_string(end) + "]";
  }
  json->Key(key).Raw("[" + list + "]");
}

void WriteWords(const std::vector<Word>& words, JsonWriter* json) {
  json->Key("words").BeginArray();
  for (const Word& word : words) {
    json->BeginObject().Field("sequence", word.sequence).Field("begin", word.begin);
    json->Field("end", word.end).Key("tokens").BeginArray();
    json->Value(word.first).Value(word.past_end).EndArray().EndObject();
  }
  json->EndArray();
}

void WriteHeads(const HeadSet& set, JsonWriter* json) {
  json->Field("layer_count", set.layer_count).Field("head_count", set.head_count);
  WriteIntegers("layers", set.layers, json);
  json->Key("heads").BeginArray();
  for (const std::vector<size_t>& heads : set.heads) {
    json->BeginArray();
    for (const size_t head : heads) json->Value(head);
    json->EndArray();
  }
  json->EndArray().Key("attention").BeginArray();
  for (const std::optional<size_t>& window : set.windows) {
    json->BeginObject().Field("causal", set.causal).Key("window");
    window ? json->Value(*window) : json->Null();
    json->EndObject();
  }
  json->EndArray();
}

void WriteRun(const RunRecord& run, JsonWriter* json) {
  json->BeginObject().Field("label", run.label).Field("model", run.model);
  json->Field("architecture", run.architecture).Field("precision", run.precision);
  json->Field("tier", run.tier).Field("weights_hash", run.weights_hash);
  json->Key("self_check").BeginObject().Field("max_row_sum_error", run.max_row_sum_error);
  json->Key("max_vector_difference");
  run.max_vector_difference ? json->Value(*run.max_vector_difference) : json->Null();
  json->EndObject().EndObject();
}

// Reads members; remembers the first that is missing or of the wrong kind.
class RecordReader {
 public:
  RecordReader(const JsonValue& object, std::string where)
      : object_(object), where_(std::move(where)) {}

  const JsonValue& Get(const char* key) {
    static const JsonValue none{};
    const JsonValue* value = object_.Find(key);
    if (value != nullptr) return *value;
    Fail(key);
    return none;
  }
  size_t Count(const char* key) { return ToCount(Get(key), key); }
  std::string Text(const char* key) {
    const JsonValue& value = Get(key);
    if (!value.is_string()) Fail(key);
    return std::string(value.as_string());
  }
  template <class T>
  std::vector<T> Integers(const char* key) {
    return Numbers<T>(Get(key), key);
  }
  template <class T>
  std::vector<T> Numbers(const JsonValue& list, const char* key) {
    std::vector<T> numbers;
    if (!list.is_array()) Fail(key);
    for (const JsonValue& item : list.items()) {
      if (!item.is_int() || item.as_int() < -1 || item.as_int() > kMost) Fail(key);
      numbers.push_back(static_cast<T>(item.as_int()));
    }
    return numbers;
  }
  std::vector<std::string> Texts(const char* key) {
    std::vector<std::string> texts;
    for (const JsonValue& item : Get(key).items()) texts.emplace_back(item.as_string());
    return texts;
  }
  std::vector<std::pair<uint32_t, uint32_t>> Spans(const char* key) {
    std::vector<std::pair<uint32_t, uint32_t>> spans;
    for (const JsonValue& item : Get(key).items()) {
      const std::vector<uint32_t> ends = Numbers<uint32_t>(item, key);
      if (ends.size() == 2) spans.emplace_back(ends[0], ends[1]);
    }
    return spans;
  }
  size_t ToCount(const JsonValue& value, const char* key) {
    if (!value.is_int() || value.as_int() < 0 || value.as_int() > kMost) Fail(key);
    return static_cast<size_t>(std::max<int64_t>(0, value.as_int()));
  }
  void Fail(const std::string& key) {
    if (status_.ok()) {
      status_ =
          Corrupt(where_ + ": its description lacks a valid \"" + key + "\"; write the dump again");
    }
  }
  const Status& status() const { return status_; }

 private:
  static constexpr int64_t kMost = 0x7FFFFFFF;
  const JsonValue& object_;
  std::string where_;
  Status status_;
};

void ReadText(RecordReader& reader, TextRecord* text) {
  text->texts = reader.Texts("texts");
  text->max_length = reader.Count("max_length");
  text->tokens.truncated = reader.Get("truncated").as_bool();
  text->tokens.tokens = reader.Texts("tokens");
  text->tokens.ids = reader.Integers<int32_t>("ids");
  text->tokens.offsets = reader.Spans("offsets");
  text->tokens.byte_offsets = reader.Spans("byte_offsets");
  text->tokens.type_ids = reader.Integers<int32_t>("segments");
  text->tokens.sequence = reader.Integers<int32_t>("sequence");
  text->tokens.special = reader.Integers<uint8_t>("special");
  text->word = reader.Integers<int32_t>("word");
  for (const JsonValue& item : reader.Get("words").items()) {
    RecordReader word(item, "");
    const std::vector<size_t> tokens = word.Integers<size_t>("tokens");
    const size_t sequence = word.Count("sequence");
    const size_t begin = word.Count("begin"), end = word.Count("end");
    const bool fits = word.status().ok() && tokens.size() == 2 && tokens[0] < tokens[1] &&
                      tokens[1] <= text->size() && sequence < text->texts.size();
    if (!fits) reader.Fail("words");
    if (!fits) return;
    text->words.push_back({static_cast<int32_t>(sequence), static_cast<uint32_t>(begin),
                           static_cast<uint32_t>(end), tokens[0], tokens[1]});
  }
  const size_t size = text->size();
  const TokenizeResult& tokens = text->tokens;
  if (tokens.tokens.size() != size || tokens.offsets.size() != size ||
      tokens.byte_offsets.size() != size || tokens.type_ids.size() != size ||
      tokens.sequence.size() != size || tokens.special.size() != size ||
      text->word.size() != size || text->texts.empty() || text->texts.size() > 2) {
    reader.Fail("tokens");
  }
  for (const int32_t word : text->word) {
    if (word >= static_cast<int32_t>(text->words.size())) reader.Fail("word");
  }
  for (const int32_t sequence : tokens.sequence) {
    if (sequence >= static_cast<int32_t>(text->texts.size())) reader.Fail("sequence");
  }
}

void ReadHeads(RecordReader& reader, HeadSet* set) {
  set->layer_count = reader.Count("layer_count");
  set->head_count = reader.Count("head_count");
  set->layers = reader.Integers<size_t>("layers");
  for (const JsonValue& heads : reader.Get("heads").items()) {
    set->heads.push_back(reader.Numbers<size_t>(heads, "heads"));
    const std::vector<size_t>& list = set->heads.back();
    const bool valid =
        !list.empty() && std::is_sorted(list.begin(), list.end()) && list.back() < set->head_count;
    if (!valid) reader.Fail("heads");
  }
  for (const JsonValue& item : reader.Get("attention").items()) {
    const JsonValue* window = item.Find("window");
    const JsonValue* causal = item.Find("causal");
    set->causal = causal != nullptr && causal->as_bool();
    set->windows.emplace_back();
    if (window != nullptr && window->is_int()) {
      set->windows.back() = reader.ToCount(*window, "window");
    }
  }
  const bool valid = !set->layers.empty() && set->heads.size() == set->layers.size() &&
                     set->windows.size() == set->layers.size() &&
                     std::is_sorted(set->layers.begin(), set->layers.end()) &&
                     set->layers.back() < set->layer_count;
  if (!valid) reader.Fail("layers");
}

}  // namespace

size_t HeadSet::Count() const {
  size_t count = 0;
  for (const std::vector<size_t>& list : heads) count += list.size();
  return count;
}

size_t HeadSet::LayerIndex(size_t layer) const {
  const auto at = std::lower_bound(layers.begin(), layers.end(), layer);
  return at != layers.end() && *at == layer ? static_cast<size_t>(at - layers.begin())
                                            : layers.size();
}

size_t HeadSet::Slot(size_t layer, size_t head) const {
  size_t slot = 0;
  const size_t index = LayerIndex(layer);
  for (size_t i = 0; i < index; ++i) slot += heads[i].size();
  if (index == layers.size()) return slot;
  const std::vector<size_t>& list = heads[index];
  return slot +
         static_cast<size_t>(std::lower_bound(list.begin(), list.end(), head) - list.begin());
}

std::vector<std::pair<size_t, size_t>> HeadSet::Pairs() const {
  std::vector<std::pair<size_t, size_t>> pairs;
  for (size_t i = 0; i < layers.size(); ++i) {
    for (const size_t head : heads[i]) pairs.emplace_back(layers[i], head);
  }
  return pairs;
}

bool HeadSet::SameHeadsEverywhere() const {
  return std::all_of(heads.begin(), heads.end(),
                     [&](const auto& list) { return list == heads[0]; });
}

TextRecord MakeTextRecord(std::vector<std::string> texts, size_t max_length,
                          TokenizeResult tokens) {
  TextRecord record;
  record.texts = std::move(texts);
  record.max_length = max_length;
  record.tokens = std::move(tokens);
  const TokenizeResult& t = record.tokens;
  for (size_t i = 0; i < t.ids.size(); ++i) {
    if (t.words[i] < 0 || t.special[i] != 0) {
      record.word.push_back(-1);
      continue;
    }
    const bool continues = i > 0 && record.word.back() >= 0 && t.words[i] == t.words[i - 1] &&
                           t.sequence[i] == t.sequence[i - 1];
    if (!continues) {
      record.words.push_back({t.sequence[i], t.offsets[i].first, t.offsets[i].second, i, i + 1});
    }
    Word& word = record.words.back();
    word.end = std::max(word.end, t.offsets[i].second);
    word.past_end = i + 1;
    record.word.push_back(static_cast<int32_t>(record.words.size() - 1));
  }
  return record;
}

std::string CodePoints(const std::string& text, uint32_t begin, uint32_t end) {
  const size_t from = ByteOf(text, begin);
  return text.substr(from, std::max(from, ByteOf(text, end)) - from);
}

std::string WordText(const TextRecord& text, const Word& word) {
  return CodePoints(text.texts[static_cast<size_t>(word.sequence)], word.begin, word.end);
}

void WriteRecord(const AttentionRecord& record, JsonWriter* json) {
  const TextRecord& text = record.text;
  json->Field("format", "pozor-attention").Field("format_version", 1).Field("pozor", Version());
  json->Key("texts").Array(text.texts);
  json->Field("truncated", text.tokens.truncated).Field("max_length", text.max_length);
  json->Key("tokens").Array(text.tokens.tokens);
  WriteIntegers("ids", text.tokens.ids, json);
  WriteSpans("offsets", text.tokens.offsets, json);
  WriteSpans("byte_offsets", text.tokens.byte_offsets, json);
  WriteIntegers("segments", text.tokens.type_ids, json);
  WriteIntegers("sequence", text.tokens.sequence, json);
  WriteIntegers("special", text.tokens.special, json);
  WriteIntegers("word", text.word, json);
  WriteWords(text.words, json);
  WriteHeads(record.heads, json);
  json->Key("positions");
  if (record.position_panel.empty()) {
    json->BeginObject().Field("kind", record.positions).EndObject();
  } else {
    json->Raw(record.position_panel);
  }
  json->Key("runs").BeginArray();
  for (const RunRecord& run : record.runs) WriteRun(run, json);
  json->EndArray();
}

Result<AttentionRecord> ReadRecord(const JsonValue& json, const std::string& where) {
  RecordReader reader(json, where);
  AttentionRecord record;
  if (reader.Text("format") != "pozor-attention") reader.Fail("format");
  if (reader.status().ok()) ReadText(reader, &record.text);
  if (reader.status().ok()) ReadHeads(reader, &record.heads);
  if (const JsonValue* kind = reader.Get("positions").Find("kind")) {
    record.positions = std::string(kind->as_string());
  }
  for (const JsonValue& item : reader.Get("runs").items()) {
    RecordReader run(item, where);
    RunRecord out{run.Text("label"),
                  run.Text("model"),
                  run.Text("architecture"),
                  run.Text("precision"),
                  run.Text("tier"),
                  run.Text("weights_hash"),
                  0,
                  {}};
    const JsonValue& check = run.Get("self_check");
    if (const JsonValue* sum = check.Find("max_row_sum_error")) {
      out.max_row_sum_error = sum->as_double();
    }
    const JsonValue* difference = check.Find("max_vector_difference");
    if (difference != nullptr && difference->is_number()) {
      out.max_vector_difference = difference->as_double();
    }
    POZOR_RETURN_IF_ERROR(run.status());
    record.runs.push_back(std::move(out));
  }
  if (record.runs.size() != 1) reader.Fail("runs");
  POZOR_RETURN_IF_ERROR(reader.status());
  return record;
}

std::string SafeJson(std::string_view json) {
  std::string safe;
  safe.reserve(json.size() + json.size() / 8);
  const auto escape = [&](uint32_t unit) {
    char text[16];
    std::snprintf(text, sizeof text, "\\u%04x", unit);
    safe += text;
  };
  for (size_t i = 0; i < json.size();) {
    const auto first = static_cast<unsigned char>(json[i]);
    if (first < 0x80) {
      const bool plain = first != '<' && first != '>' && first != '&' && first != 0x7F;
      if (plain) safe += json[i];
      if (!plain) escape(first);
      ++i;
      continue;
    }
    const size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
    uint32_t point = first & (0x7Fu >> length);
    for (size_t k = 1; k < length && i + k < json.size(); ++k) {
      point = point << 6 | (static_cast<unsigned char>(json[i + k]) & 0x3F);
    }
    i += length;
    if (point >= 0x10000) {
      escape(0xD800 + ((point - 0x10000) >> 10));
      escape(0xDC00 + ((point - 0x10000) & 0x3FF));
    } else {
      escape(point);
    }
  }
  return safe;
}

}  // namespace pozor::tools
