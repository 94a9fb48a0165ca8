// The public API: thin over the loaded model and the stages of a call.
#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <utility>

#include "engine/graph.h"
#include "engine/profile.h"
#include "kernels/pool.h"
#include "models/encode.h"
#include "models/model_impl.h"
#include "pozor/pozor.hpp"

namespace pozor {
namespace {

// Calls up to this size run on the caller's thread, without the outer pipeline.
constexpr size_t kInlineTexts = 64;
constexpr size_t kInlineBytes = size_t{16} << 10;

bool IsSmall(std::span<const std::string_view> texts) {
  if (texts.size() > kInlineTexts) return false;
  size_t bytes = 0;
  for (std::string_view text : texts) bytes += text.size();
  return bytes <= kInlineBytes;
}

// The first row of the last layer is all that a text's vector is made of.
bool ReadsFirstRowsOnly(const Head& head, const EncodePlan& plan) {
  return head.poolings.size() == 1 && head.poolings.front() == Pooling::kCls &&
         plan.pool_first == 0;
}

GraphOptions MakeGraphOptions(const Model::Impl& model, const EncodePlan& plan,
                              const EncodeOptions& options, Profile* profile) {
  GraphOptions graph;
  graph.longest_text = plan.tokenize.max_length;
  graph.rows = ReadsFirstRowsOnly(model.pipeline.head, plan) ? RowsRead::kFirst : RowsRead::kAll;
  graph.threads = options.threads;
  graph.batch_tokens = options.batch_tokens;
  graph.max_memory = options.max_memory == 0 ? model.options.max_memory : options.max_memory;
  graph.cancel = options.cancel;
  graph.profile = options.profile == nullptr ? nullptr : profile;
  return graph;
}

EncodeStats ToStats(const GraphStats& graph, uint64_t truncated) {
  EncodeStats stats;
  stats.texts = graph.texts;
  stats.tokens = graph.tokens;
  stats.truncated = truncated;
  stats.threads = graph.threads;
  stats.seconds = graph.seconds;
  return stats;
}

// The stages of the graph in a row on the calling thread; only the encoder may ask others for help.
Result<EncodeStats> RunInline(const Model::Impl& model, EncodeClient& client,
                              const GraphOptions& options) {
  Window window;
  POZOR_TRY(const bool any, client.Read(window, std::numeric_limits<size_t>::max()));
  if (!any) return EncodeStats();
  {
    const ZoneTimer timer(options.profile, Zone::kTokenise);
    POZOR_RETURN_IF_ERROR(client.Tokenise(window));
  }
  GraphStats stats;
  const auto pool = [&](size_t text, MatView<const float> hidden) {
    return client.Pool(window, text, hidden);
  };
  POZOR_RETURN_IF_ERROR(
      EncodeTokens(*model.encoder, window.tokens.View(), options, pool, {}, &stats));
  POZOR_RETURN_IF_ERROR(client.Write(window));
  client.ReportProgress(true);
  return ToStats(stats, client.truncated());
}

Result<EncodeStats> RunClient(const Model::Impl& model, EncodeClient& client,
                              const GraphOptions& options) {
  GraphStats stats;
  POZOR_RETURN_IF_ERROR(RunGraph(*model.encoder, client, options, &stats));
  client.ReportProgress(true);
  return ToStats(stats, client.truncated());
}

}  // namespace

Result<TokenizeResult> ToTokenizeResult(Result<Encoding> encoding) {
  if (!encoding.ok()) return encoding.status();
  TokenizeResult result;
  result.ids = std::move(encoding->ids);
  result.type_ids = std::move(encoding->type_ids);
  result.tokens = std::move(encoding->tokens);
  for (const Span& span : encoding->offsets) result.offsets.emplace_back(span.begin, span.end);
  for (const Span& span : encoding->byte_offsets) {
    result.byte_offsets.emplace_back(span.begin, span.end);
  }
  result.special = std::move(encoding->special);
  result.sequence = std::move(encoding->sequence);
  result.words = std::move(encoding->words);
  result.truncated = !encoding->overflow.empty();
  return result;
}

Status OutOfMemory() {
  return ResourceExhausted("memory: the system has too little for this call; free some");
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::Model(Model&&) noexcept = default;
Model& Model::operator=(Model&&) noexcept = default;
Model::~Model() = default;

Result<Model> Model::Load(const std::string& name, const LoadOptions& options) try {
  POZOR_TRY(std::unique_ptr<Impl> impl, LoadModelParts(name, options, {}));
  return Model(std::move(impl));
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<EncodeStats> Model::EncodeInto(std::span<const std::string_view> texts, float* out,
                                      size_t stride, const EncodeOptions& options) const try {
  POZOR_TRY(const EncodePlan plan, EncodePlan::Make(*impl_, options));
  if (stride < plan.dimensions) {
    return InvalidArgument("stride " + std::to_string(stride) + ": smaller than a vector of " +
                           std::to_string(plan.dimensions) + " numbers; use at least that");
  }
  if (texts.empty()) return EncodeStats();
  Profile profile;
  const GraphOptions graph = MakeGraphOptions(*impl_, plan, options, &profile);
  ArrayClient client(*impl_, plan, options, texts, out, stride);
  Result<EncodeStats> stats =
      IsSmall(texts) ? RunInline(*impl_, client, graph) : RunClient(*impl_, client, graph);
  if (stats.ok() && options.profile != nullptr) *options.profile = profile.Table();
  return stats;
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<EncodeStats> Model::EncodeStream(TextSource& source, VectorSink& sink,
                                        const EncodeOptions& options) const try {
  POZOR_TRY(const EncodePlan plan, EncodePlan::Make(*impl_, options));
  Profile profile;
  const GraphOptions graph = MakeGraphOptions(*impl_, plan, options, &profile);
  StreamClient client(*impl_, plan, options, source, sink);
  Result<EncodeStats> stats = RunClient(*impl_, client, graph);
  if (stats.ok() && options.profile != nullptr) *options.profile = profile.Table();
  return stats;
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<Vectors> Model::Encode(std::span<const std::string_view> texts,
                              const EncodeOptions& options) const try {
  POZOR_TRY(const VectorOptions vector, ResolveVectorOptions(*impl_, options));
  (void)vector;
  Vectors vectors(texts.size(), Dimensions(options));
  POZOR_TRY(const EncodeStats stats,
            EncodeInto(texts, vectors.data(), vectors.dimensions(), options));
  (void)stats;
  return vectors;
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<Vectors> Model::Encode(std::span<const std::string> texts,
                              const EncodeOptions& options) const try {
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  return Encode(std::span<const std::string_view>(views), options);
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<Vectors> Model::Encode(std::initializer_list<std::string_view> texts,
                              const EncodeOptions& options) const {
  return Encode(std::span<const std::string_view>(texts.begin(), texts.size()), options);
}

Result<TokenizeResult> Model::Tokenize(std::string_view text, const EncodeOptions& options) const
    try {
  POZOR_TRY(const EncodePlan plan, EncodePlan::Make(*impl_, options));
  return ToTokenizeResult(
      impl_->tokenizer->Encode(plan.prompt + std::string(text), nullptr, plan.tokenize));
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

Result<TokenizeResult> Model::TokenizePair(std::string_view first, std::string_view second,
                                           const EncodeOptions& options) const try {
  POZOR_TRY(const EncodePlan plan, EncodePlan::Make(*impl_, options));
  return ToTokenizeResult(
      impl_->tokenizer->Encode(plan.prompt + std::string(first), &second, plan.tokenize));
} catch (const std::bad_alloc&) {
  return OutOfMemory();
}

size_t Model::Dimensions(const EncodeOptions& options) const {
  const Result<VectorOptions> vector = ResolveVectorOptions(*impl_, options);
  return vector.ok() && vector->truncate_dim != 0 ? vector->truncate_dim
                                                  : impl_->pipeline.head.dimensions;
}

const ModelInfo& Model::Info() const { return impl_->info; }

float Cosine(std::span<const float> a, std::span<const float> b) {
  if (a.size() != b.size()) return 0.0f;
  const float norms =
      std::sqrt(Dot(a.data(), a.data(), a.size())) * std::sqrt(Dot(b.data(), b.data(), b.size()));
  return norms > 0 ? Dot(a.data(), b.data(), a.size()) / norms : 0.0f;
}

std::string_view Version() { return "0.1.0"; }

}  // namespace pozor
