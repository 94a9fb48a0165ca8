#include "tools/attention/attention_stats.h"

#include <algorithm>
#include <cstdio>

#include "tools/bench/json_writer.h"
#include "tools/cli/report.h"
#include "tools/cli/signals.h"

namespace pozor::tools {
namespace {

std::vector<HeadMetric> AllMetrics() {
  std::vector<HeadMetric> metrics;
  metrics.reserve(kHeadMetrics);
  for (size_t i = 0; i < kHeadMetrics; ++i) metrics.push_back(static_cast<HeadMetric>(i));
  return metrics;
}

void PrintTable(const HeadStats& stats, bool csv) {
  std::printf(csv ? "layer,head" : "layer head");
  for (const HeadMetric metric : AllMetrics()) {
    const std::string name(HeadMetricName(metric));
    std::printf(csv ? ",%s" : " %9s", name.c_str());
  }
  std::printf(csv ? "\r\n" : "\n");
  size_t slot = 0;
  for (const auto& [layer, head] : stats.heads().Pairs()) {
    std::printf(csv ? "%zu,%zu" : "%5zu %4zu", layer, head);
    for (const HeadMetric metric : AllMetrics()) {
      std::printf(csv ? ",%.9g" : " %9.4f", stats.Mean(slot, metric));
    }
    std::printf(csv ? "\r\n" : "\n");
    ++slot;
  }
}

void PrintJson(const HeadStats& stats, const std::string& model) {
  JsonWriter json;
  json.BeginObject().Field("model", model).Field("texts", stats.texts());
  json.Field("rows", stats.rows()).Key("heads").BeginArray();
  size_t slot = 0;
  for (const auto& [layer, head] : stats.heads().Pairs()) {
    json.BeginObject().Field("layer", layer).Field("head", head);
    for (const HeadMetric metric : AllMetrics()) {
      json.Field(HeadMetricName(metric), stats.Mean(slot, metric));
    }
    json.EndObject();
    ++slot;
  }
  json.EndArray().EndObject();
  std::printf("%s\n", json.text().c_str());
}

// Layers down, heads across; the shade is the share of the largest.
void PrintMap(const HeadStats& stats, HeadMetric metric) {
  const HeadSet& set = stats.heads();
  double largest = 1e-30;
  for (size_t slot = 0; slot < set.Count(); ++slot) {
    largest = std::max(largest, stats.Mean(slot, metric));
  }
  std::printf("%s, layers down, heads across\n", std::string(HeadMetricName(metric)).c_str());
  constexpr const char* kShades[] = {" ", "\u2591", "\u2592", "\u2593", "\u2588"};
  size_t slot = 0;
  for (size_t i = 0; i < set.layers.size(); ++i) {
    std::printf("%5zu ", set.layers[i]);
    for (size_t h = 0; h < set.heads[i].size(); ++h, ++slot) {
      const double value = stats.Mean(slot, metric);
      const auto level = static_cast<size_t>(std::clamp(value / largest * 5, 0.0, 4.0));
      std::printf(" %s%7.3f", kShades[level], value);
    }
    std::printf("\n");
  }
}

}  // namespace

Status RunAttentionStats(StatsRequest request) {
  request.attention.encode.cancel = CancelOnSignals();
  request.attention.input_options.cancel = request.attention.encode.cancel;
  POZOR_TRY(TextQueue texts, TextQueue::Open(request.attention));
  POZOR_TRY(const AttentionModel model, AttentionModel::Load(request.attention));
  std::optional<HeadStats> stats;
  while (true) {
    POZOR_TRY(const std::optional<InputText> text, texts.Next());
    if (!text) break;
    const auto where = [&](const Status& status) {
      return status.WithContext("text " + std::to_string(stats ? stats->texts() + 1 : 1));
    };
    const auto source = model.Open(*text, false, false);
    if (!source.ok()) return where(source.status());
    const AttentionRecord& record = (*source)->record();
    if (!stats) stats.emplace(record.heads);
    const Status status = (*source)->Stream({}, [&](const AttentionRows& rows) {
      stats->Add(rows, record.text);
      return Status();
    });
    if (!status.ok()) return where(AsFailure(status));
    stats->EndText();
  }
  if (!stats) return InvalidArgument("attention stats: the input has no text; give some");
  if (request.map) {
    PrintMap(*stats, *request.map);
  } else if (request.format == TableFormat::kJson) {
    PrintJson(*stats, request.attention.model);
  } else {
    PrintTable(*stats, request.format == TableFormat::kCsv);
  }
  return Status();
}

}  // namespace pozor::tools
