#include "tools/attention/diff.h"

#include <algorithm>
#include <cstdio>
#include <numeric>

#include "tools/attention/page.h"
#include "tools/attention/pair_stream.h"
#include "tools/bench/json_writer.h"
#include "tools/cli/progress.h"
#include "tools/cli/report.h"
#include "tools/cli/signals.h"

namespace pozor::tools {
namespace {

struct TextDivergence {
  uint64_t text;  // from 1
  double mean;
};

// The result over all texts.
struct Comparison {
  std::optional<HeadDiff> heads;
  std::vector<TextDivergence> worst_texts;  // the largest few, largest first
  RunRecord a, b;
  uint64_t texts = 0;

  std::vector<size_t> Ranked(DiffMetric by) const {
    std::vector<size_t> slots(heads->heads().Count());
    std::iota(slots.begin(), slots.end(), size_t{0});
    std::stable_sort(slots.begin(), slots.end(),
                     [&](size_t x, size_t y) { return heads->Value(x, by) > heads->Value(y, by); });
    return slots;
  }
};

constexpr size_t kWorstTexts = 3;
constexpr DiffMetric kColumns[] = {DiffMetric::kDivergence, DiffMetric::kMean, DiffMetric::kMax,
                                   DiffMetric::kOverlap};

Status CompareText(AttentionSource& a, AttentionSource& b, size_t top_k, Comparison* comparison) {
  POZOR_RETURN_IF_ERROR(CheckComparable(a.record(), b.record()));
  if (!comparison->heads) comparison->heads.emplace(a.record().heads, top_k);
  HeadDiff& heads = *comparison->heads;
  const double before = heads.divergence_sum();
  const uint64_t rows_before = heads.rows();
  POZOR_RETURN_IF_ERROR(StreamPair(a, b, [&](const AttentionRows& x, const AttentionRows& y) {
    heads.Add(x, y);
    return Status();
  }));
  ++comparison->texts;
  const auto rows = static_cast<double>(std::max<uint64_t>(1, heads.rows() - rows_before));
  std::vector<TextDivergence>& worst = comparison->worst_texts;
  worst.push_back({comparison->texts, (heads.divergence_sum() - before) / rows});
  std::stable_sort(worst.begin(), worst.end(),
                   [](const auto& x, const auto& y) { return x.mean > y.mean; });
  if (worst.size() > kWorstTexts) worst.resize(kWorstTexts);
  comparison->a = a.record().runs[0];
  comparison->b = b.record().runs[0];
  return Status();
}

AttentionRequest RequestOfB(const DiffRequest& request) {
  AttentionRequest b = request.attention;
  b.model = request.other;
  b.load.precision = request.other_precision;
  b.load.task = request.other_task;
  return b;
}

Status CompareModels(const DiffRequest& request, Comparison* comparison) {
  POZOR_TRY(TextQueue texts, TextQueue::Open(request.attention));
  POZOR_TRY(const AttentionModel a, AttentionModel::Load(request.attention));
  POZOR_TRY(const AttentionModel b, AttentionModel::Load(RequestOfB(request)));
  while (true) {
    POZOR_TRY(const std::optional<InputText> text, texts.Next());
    if (!text) break;
    POZOR_TRY(const auto source_a, a.Open(*text, false));
    POZOR_TRY(const auto source_b, b.Open(*text, false));
    POZOR_RETURN_IF_ERROR(AsFailure(CompareText(*source_a, *source_b, request.top_k, comparison))
                              .WithContext("text " + std::to_string(comparison->texts + 1)));
  }
  if (comparison->texts > 0) return Status();
  return InvalidArgument("attention diff: the input has no text; give one");
}

// A dump has its own text; the text that is given beside it is the model's.
AttentionRequest ForSide(AttentionRequest side, const DiffRequest& request) {
  const bool both = IsDumpName(request.attention.model) && IsDumpName(request.other);
  if (!IsDumpName(side.model) || both) return side;
  side.text.reset();
  side.pair.clear();
  side.inputs.clear();
  return side;
}

// One text of each side, models or dumps, compared and written as a page if that is asked for.
Status CompareOne(const DiffRequest& request, Comparison* comparison) {
  std::optional<AttentionModel> model_a, model_b;
  POZOR_TRY(const auto a, OpenOne(ForSide(request.attention, request), "diff", true, &model_a));
  POZOR_TRY(const auto b, OpenOne(ForSide(RequestOfB(request), request), "diff", true, &model_b));
  POZOR_RETURN_IF_ERROR(AsFailure(CompareText(*a, *b, request.top_k, comparison)));
  const std::string& output = request.attention.output;
  if (output.empty()) return Status();
  POZOR_TRY(const std::unique_ptr<OutputFile> file,
            OutputFile::Create(output, request.attention.encode.cancel));
  AttentionSource* const sources[] = {a.get(), b.get()};
  const PageOptions options = {request.exact ? WeightType::kF16 : WeightType::kSqrtU8,
                               request.attention.encode.threads == 1};
  POZOR_RETURN_IF_ERROR(WritePage(sources, options, *file));
  POZOR_RETURN_IF_ERROR(file->Commit());
  if (request.attention.quiet) return Status();
  const AttentionRecord& record = a->record();
  std::fprintf(stderr, "pozor: %s: A, B and B - A, %zu tokens, %zu heads\n", file->name().c_str(),
               record.text.size(), record.heads.Count());
  return Status();
}

std::string Describe(const RunRecord& run) { return run.model + " (" + run.precision + ")"; }

void PrintText(const Comparison& comparison, const DiffRequest& request) {
  const std::vector<size_t> ranked = comparison.Ranked(request.by);
  const auto pairs = comparison.heads->heads().Pairs();
  std::printf("A %s, B %s; %s text%s\n", Describe(comparison.a).c_str(),
              Describe(comparison.b).c_str(), Grouped(comparison.texts).c_str(),
              comparison.texts == 1 ? "" : "s");
  std::printf("layer head  js         mean|A-B|  max|A-B|   top-%zu overlap\n", request.top_k);
  for (size_t i = 0; i < std::min(request.top, ranked.size()); ++i) {
    const auto& [layer, head] = pairs[ranked[i]];
    std::printf("%5zu %4zu ", layer, head);
    for (const DiffMetric metric : kColumns) {
      std::printf(" %-10.4g", comparison.heads->Value(ranked[i], metric));
    }
    std::printf("\n");
  }
  if (comparison.texts == 1) return;
  std::printf("texts that moved most (js):");
  for (const TextDivergence& text : comparison.worst_texts) {
    std::printf(" %llu: %.4g", static_cast<unsigned long long>(text.text), text.mean);
  }
  std::printf("\n");
}

void PrintCsv(const Comparison& comparison, const DiffRequest& request) {
  const auto pairs = comparison.heads->heads().Pairs();
  std::printf("layer,head,js,mean,max,overlap\r\n");
  for (const size_t slot : comparison.Ranked(request.by)) {
    std::printf("%zu,%zu", pairs[slot].first, pairs[slot].second);
    for (const DiffMetric metric : kColumns) {
      std::printf(",%.9g", comparison.heads->Value(slot, metric));
    }
    std::printf("\r\n");
  }
}

void PrintJson(const Comparison& comparison, const DiffRequest& request) {
  const auto pairs = comparison.heads->heads().Pairs();
  JsonWriter json;
  json.BeginObject().Field("a", Describe(comparison.a)).Field("b", Describe(comparison.b));
  json.Field("texts", comparison.texts).Key("heads").BeginArray();
  for (const size_t slot : comparison.Ranked(request.by)) {
    json.BeginObject().Field("layer", pairs[slot].first).Field("head", pairs[slot].second);
    for (const DiffMetric metric : kColumns) {
      json.Field(DiffMetricName(metric), comparison.heads->Value(slot, metric));
    }
    json.EndObject();
  }
  json.EndArray().Key("worst_texts").BeginArray();
  for (const TextDivergence& text : comparison.worst_texts) {
    json.BeginObject().Field("text", text.text).Field("js", text.mean).EndObject();
  }
  json.EndArray().EndObject();
  std::printf("%s\n", json.text().c_str());
}

int Judge(const Comparison& comparison, const DiffRequest& request) {
  if (!request.fail_above) return 0;
  const size_t slot = comparison.Ranked(request.by)[0];
  const double value = comparison.heads->Value(slot, request.by);
  if (value <= *request.fail_above) return 0;
  const auto [layer, head] = comparison.heads->heads().Pairs()[slot];
  char number[32];
  std::snprintf(number, sizeof number, "%.4g", value);
  PrintError("layer " + std::to_string(layer) + " head " + std::to_string(head) + ": " +
             std::string(DiffMetricName(request.by)) + " " + number +
             " is above --fail-above; look at the head, or raise the limit");
  return 1;
}

}  // namespace

Result<int> RunAttentionDiff(DiffRequest request) {
  request.attention.encode.cancel = CancelOnSignals();
  request.attention.input_options.cancel = request.attention.encode.cancel;
  Comparison comparison;
  const bool dumps = IsDumpName(request.attention.model) || IsDumpName(request.other);
  const bool one = dumps || !request.attention.output.empty();
  POZOR_RETURN_IF_ERROR(one ? CompareOne(request, &comparison)
                            : CompareModels(request, &comparison));
  if (request.format == TableFormat::kText) PrintText(comparison, request);
  if (request.format == TableFormat::kCsv) PrintCsv(comparison, request);
  if (request.format == TableFormat::kJson) PrintJson(comparison, request);
  return Judge(comparison, request);
}

}  // namespace pozor::tools
