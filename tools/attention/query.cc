#include "tools/attention/query.h"

#include <algorithm>
#include <cstdio>

#include "tools/attention/find_units.h"
#include "tools/bench/json_writer.h"
#include "tools/cli/signals.h"

namespace pozor::tools {
namespace {

struct Look {
  size_t from, to;
  float weight;
};

// What one head does with one occurrence of the word.
struct HeadLooks {
  size_t layer, head;
  std::vector<Look> looks;  // the largest, in order
};

// Collects the weights that the query asks about.
class Collector {
 public:
  Collector(const QueryRequest& request, const std::vector<size_t>& from,
            const std::vector<size_t>& to)
      : request_(request), from_(from), to_(to) {}

  Status Add(const UnitRows& rows) {
    if (heads_.empty() || rows.layer != heads_.back().layer || rows.head != heads_.back().head) {
      CutLast();
      heads_.push_back({rows.layer, rows.head, {}});
    }
    for (size_t i = 0; i < rows.rows; ++i) {
      const size_t query = rows.row_begin + i;
      if (!from_.empty() && std::find(from_.begin(), from_.end(), query) == from_.end()) continue;
      for (size_t key = 0; key < rows.columns; ++key) {
        if (!to_.empty() && std::find(to_.begin(), to_.end(), key) == to_.end()) continue;
        heads_.back().looks.push_back({query, key, rows.Row(i)[key]});
      }
    }
    return Status();
  }

  std::vector<HeadLooks> Finish() {
    CutLast();
    const auto best = [](const HeadLooks& head) {
      return head.looks.empty() ? 0.0f : head.looks[0].weight;
    };
    if (request_.by_weight) {
      std::stable_sort(heads_.begin(), heads_.end(),
                       [&](const HeadLooks& a, const HeadLooks& b) { return best(a) > best(b); });
    }
    return std::move(heads_);
  }

 private:
  void CutLast() {
    if (heads_.empty()) return;
    std::vector<Look>& looks = heads_.back().looks;
    std::stable_sort(looks.begin(), looks.end(),
                     [](const Look& a, const Look& b) { return a.weight > b.weight; });
    if (looks.size() > request_.top) looks.resize(request_.top);
  }

  const QueryRequest& request_;
  const std::vector<size_t>&from_, &to_;
  std::vector<HeadLooks> heads_;
};

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + '"';
}

void PrintCsv(const std::vector<HeadLooks>& heads, const TransformShape& shape) {
  std::printf("layer,head,rank,from,to,from_text,to_text,weight\r\n");
  for (const HeadLooks& head : heads) {
    for (size_t i = 0; i < head.looks.size(); ++i) {
      const Look& look = head.looks[i];
      std::printf("%zu,%zu,%zu,%zu,%zu,%s,%s,%.9g\r\n", head.layer, head.head, i + 1, look.from,
                  look.to, CsvField(shape.units[look.from].text).c_str(),
                  CsvField(shape.units[look.to].text).c_str(), static_cast<double>(look.weight));
    }
  }
}

void PrintJson(const std::vector<HeadLooks>& heads, const TransformShape& shape,
               const AttentionRecord& record) {
  JsonWriter json;
  json.BeginObject();
  json.Key("texts").Array(record.text.texts);
  json.Field("model", record.runs[0].model).Key("heads").BeginArray();
  for (const HeadLooks& head : heads) {
    json.BeginObject();
    if (shape.per_layer) json.Field("layer", head.layer);
    if (shape.per_head) json.Field("head", head.head);
    json.Key("looks").BeginArray();
    for (const Look& look : head.looks) {
      json.BeginObject().Field("from", look.from).Field("to", look.to);
      json.Field("from_text", shape.units[look.from].text);
      json.Field("to_text", shape.units[look.to].text);
      json.Field("weight", static_cast<double>(look.weight)).EndObject();
    }
    json.EndArray().EndObject();
  }
  json.EndArray().EndObject();
  std::printf("%s\n", json.text().c_str());
}

void PrintText(const std::vector<HeadLooks>& heads, const TransformShape& shape,
               const QueryRequest& request) {
  const bool pair = !request.from.empty() && !request.to.empty();
  const bool many = request.from.empty();
  std::printf("layer head  %s\n", pair ? "weight" : many ? "who looks at it" : "where it looks");
  for (const HeadLooks& head : heads) {
    std::printf("%5zu %4zu ", head.layer, head.head);
    for (const Look& look : head.looks) {
      if (pair) {
        std::printf(" %.4f", static_cast<double>(look.weight));
        continue;
      }
      const Unit& other = shape.units[many ? look.from : look.to];
      std::printf(" %s %.3f ", PadTo(Printable(other.text, 12), 12).c_str(),
                  static_cast<double>(look.weight));
    }
    std::printf("\n");
  }
}

}  // namespace

Status RunAttentionQuery(QueryRequest request) {
  request.attention.encode.cancel = CancelOnSignals();
  if (request.from.empty() && request.to.empty()) {
    return InvalidArgument("attention query: no word given; give --from WORD, --to WORD, or both");
  }
  std::optional<AttentionModel> model;
  POZOR_TRY(const auto source, OpenOne(request.attention, "query", false, &model));
  POZOR_TRY(const TransformShape shape, ShapeOf(source->record(), request.transform));
  std::vector<size_t> from, to;
  if (!request.from.empty()) {
    POZOR_TRY(from, FindUnits(shape.units, request.from, "--from"));
  }
  if (!request.to.empty()) {
    POZOR_TRY(to, FindUnits(shape.units, request.to, "--to"));
  }
  Collector collector(request, from, to);
  POZOR_RETURN_IF_ERROR(StreamTransformed(
      *source, request.transform, [&](const UnitRows& rows) { return collector.Add(rows); }));
  const std::vector<HeadLooks> heads = collector.Finish();
  if (request.format == TableFormat::kCsv) PrintCsv(heads, shape);
  if (request.format == TableFormat::kJson) PrintJson(heads, shape, source->record());
  if (request.format == TableFormat::kText) PrintText(heads, shape, request);
  return Status();
}

}  // namespace pozor::tools
