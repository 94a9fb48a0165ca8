#include "tools/verify.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <vector>

#include "models/formats/folder.h"
#include "models/locate.h"
#include "models/pipeline.h"
#include "models/prepared.h"
#include "tools/bench/json_writer.h"
#include "tools/cli/report.h"
#include "tools/cli/signals.h"
#include "tools/io/npy.h"
#include "tools/io/text_files.h"
#include "tools/rank.h"

namespace pozor::tools {
namespace {

Result<std::vector<std::string>> ReadTexts(const std::string& path, const VerifyRequest& request) {
  TextFilesOptions options;
  options.format = request.input_format;
  options.text_field = request.text_field;
  options.header = request.header;
  options.cancel = CancelOnSignals();
  POZOR_TRY(const std::unique_ptr<TextFiles> files, TextFiles::Open({path}, options));
  std::vector<std::string> texts;
  while (true) {
    POZOR_TRY(std::optional<std::string> text, files->Next());
    if (!text.has_value()) return texts;
    texts.push_back(std::move(*text));
  }
}

Result<std::vector<double>> ReadScores(const std::string& path) {
  VerifyRequest lines;
  lines.input_format = InputFormat::kText;
  POZOR_TRY(const std::vector<std::string> texts, ReadTexts(path, lines));
  std::vector<double> scores;
  for (const std::string& text : texts) {
    double score = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), score);
    const bool whole = parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
    if (!whole || std::isnan(score)) {
      return Corrupt(path + ": line " + std::to_string(scores.size() + 1) +
                     ": is no number; give one score a line");
    }
    scores.push_back(score);
  }
  return scores;
}

// 0 with a vector of zeros.
double Cosine64(const float* a, const float* b, size_t n) {
  double ab = 0, aa = 0, bb = 0;
  for (size_t i = 0; i < n; ++i) {
    ab += double{a[i]} * b[i];
    aa += double{a[i]} * a[i];
    bb += double{b[i]} * b[i];
  }
  return aa > 0 && bb > 0 ? ab / std::sqrt(aa * bb) : 0;
}

// Spearman's rank correlation of gold scores with the cosines of rows i and i + n/2.
double Spearman(const std::vector<double>& scores, const float* vectors, size_t dimensions) {
  std::vector<double> cosines(scores.size());
  for (size_t i = 0; i < scores.size(); ++i) {
    cosines[i] =
        Cosine64(vectors + i * dimensions, vectors + (i + scores.size()) * dimensions, dimensions);
  }
  return SpearmanCorrelation(scores, cosines);
}

Status CompareSpearman(const std::string& path, const Vectors& got, const NpyMatrix& expected,
                       VerifyTable* table) {
  POZOR_TRY(const std::vector<double> scores, ReadScores(path));
  if (2 * scores.size() != got.rows()) {
    return Corrupt(path + ": has " + std::to_string(scores.size()) + " scores for " +
                   std::to_string(got.rows()) +
                   " texts; give one for each pair of texts i, i + n/2");
  }
  constexpr double kMostDifference = 0.01;  // of Spearman x 100
  const double here = 100 * Spearman(scores, got.data(), got.dimensions());
  const double there = 100 * Spearman(scores, expected.data.data(), got.dimensions());
  if (std::isnan(here) || std::isnan(there)) {
    table->AddNotComputable("spearman x100", {scores.size()},
                            "all scores or all cosines are the same, which is no order");
    return Status();
  }
  VerifyRow row{"spearman x100",      {scores.size()}, std::fabs(here - there),
                {kMostDifference, 0}, Outcome::kOk,    ""};
  if (!(row.largest <= kMostDifference)) row.outcome = Outcome::kDifferent;
  table->Add(row);
  table->AddNote("spearman x100: " + JsonNumber(here, 6) + " here, " + JsonNumber(there, 6) +
                 " in the reference");
  return Status();
}

void NoteCosines(const Vectors& got, const NpyMatrix& expected, VerifyTable* table) {
  double least = 1, sum = 0;
  for (size_t row = 0; row < got.rows(); ++row) {
    const float* reference = expected.data.data() + row * got.dimensions();
    const double cosine = Cosine64(got[row].data(), reference, got.dimensions());
    least = std::min(least, cosine);
    sum += cosine;
  }
  const double mean = got.rows() == 0 ? 1 : sum / static_cast<double>(got.rows());
  table->AddNote("cosine to the reference: smallest " + JsonNumber(least, 9) + ", mean " +
                 JsonNumber(mean, 9));
}

}  // namespace

Result<VerifyTable> VerifyReference(const VerifyRequest& request) {
  POZOR_TRY(const NpyMatrix expected, ReadNpy(request.reference));
  POZOR_TRY(const std::vector<std::string> texts, ReadTexts(request.texts, request));
  if (texts.size() != expected.rows) {
    return Corrupt(request.reference + ": has " + std::to_string(expected.rows) + " rows, " +
                   request.texts + " has " + std::to_string(texts.size()) +
                   " texts; give the texts that the vectors are of");
  }
  const Result<Model> model = Model::Load(request.model, request.load);
  if (!model.ok()) return AsFailure(model.status());
  EncodeOptions options = request.options;
  options.cancel = CancelOnSignals();
  const Result<Vectors> got = model->Encode(std::span<const std::string>(texts), options);
  if (!got.ok()) return AsFailure(got.status());

  VerifyTable table;
  const std::vector<size_t> shape = {expected.rows, expected.columns};
  table.Compare("vectors", shape, {got->data(), got->rows() * got->dimensions()}, expected.data,
                {request.tolerance, 0});
  if (got->dimensions() != expected.columns) return table;
  NoteCosines(*got, expected, &table);
  if (!request.scores.empty()) {
    POZOR_RETURN_IF_ERROR(CompareSpearman(request.scores, *got, expected, &table));
  }
  return table;
}

Status VerifyPrepared(const VerifyRequest& request) {
  POZOR_TRY(const std::string path, LocateModel(request.model));
  POZOR_TRY(const ModelFolder folder, ModelFolder::Open(path));
  std::vector<std::string> warnings;
  POZOR_TRY(const Pipeline pipeline, ReadPipeline(folder, &warnings));
  const ModelFolder transformer = folder.Sub(pipeline.transformer_path);
  if (!transformer.Has(kPreparedName)) {
    return InvalidArgument("verify: no results to compare with, and " + request.model +
                           " has no prepared weights with checksums; give --golden DIR, or "
                           "--reference V.npy and --texts FILE");
  }
  POZOR_TRY(const std::string weights, transformer.Resolve(kPreparedName));
  const auto file = PreparedFile::Open(weights);
  if (!file.ok()) return AsFailure(file.status());
  POZOR_RETURN_IF_ERROR((*file)->Verify());
  const auto model = Model::Load(request.model, request.load);  // config, tokenizer, head
  if (!model.ok()) return AsFailure(model.status());
  std::printf("%s: every tensor has its checksum\n", weights.c_str());
  return Status();
}

Result<int> RunVerify(const VerifyRequest& request) {
  POZOR_TRY(const VerifyTable table,
            request.golden.empty() ? VerifyReference(request) : VerifyGolden(request));
  std::printf("%s", (request.json ? table.Json() : table.Text()).c_str());
  return table.ExitCode();
}

}  // namespace pozor::tools
