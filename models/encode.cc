#include "models/encode.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace pozor {
namespace {

constexpr auto kReportEvery = std::chrono::milliseconds(50);

// A window is closed at this many texts, however short they are.
constexpr size_t kMostTextsInWindow = 1 << 16;

// What a text takes at least of the budget, so that empty ones count as well.
constexpr size_t kTextOverhead = 16;

bool AllFinite(const float* x, size_t n) {
  bool finite = true;
  for (size_t i = 0; i < n; ++i) finite = finite && std::isfinite(x[i]);
  return finite;
}

// Tokens that the prompt takes at the front: those of the prompt alone, without a special token at
// its end (the reference's rule).
Result<uint32_t> PromptTokens(const Model::Impl& model, const EncodePlan& plan) {
  TokenBatch batch;
  TokenizeScratch scratch;
  POZOR_TRY(const TokenizeStats stats, model.tokenizer->Append(plan.prompt, nullptr, plan.tokenize,
                                                               scratch, &batch.ids, &batch.types));
  (void)stats;
  size_t count = batch.ids.size();
  if (count > 0 && model.tokenizer->IsSpecialId(batch.ids.back())) --count;
  return static_cast<uint32_t>(count);
}

Result<size_t> ResolveMaxLength(const Model::Impl& model, const EncodeOptions& options) {
  const size_t table = model.encoder->max_tokens();
  const size_t specials = model.tokenizer->special_count(false);
  if (options.max_length == 0) return model.info.max_length;
  if (options.max_length <= specials) {
    return InvalidArgument("max length " + std::to_string(options.max_length) +
                           ": leaves no room beside " + std::to_string(specials) +
                           " special tokens; use more");
  }
  if (options.max_length > table) {
    return InvalidArgument("max length " + std::to_string(options.max_length) +
                           ": the model's position table ends at " + std::to_string(table) +
                           " tokens; use at most that");
  }
  return options.max_length;
}

}  // namespace

Result<VectorOptions> ResolveVectorOptions(const Model::Impl& model, const EncodeOptions& options) {
  const size_t all = model.pipeline.head.dimensions;
  VectorOptions vector;
  vector.truncate_dim = std::min(model.pipeline.truncate_dim, all);
  if (options.truncate_dim) {
    if (*options.truncate_dim == 0 || *options.truncate_dim > all) {
      return InvalidArgument("truncate dim " + std::to_string(*options.truncate_dim) +
                             ": the model's vectors have " + std::to_string(all) +
                             " numbers; use 1 to " + std::to_string(all));
    }
    vector.truncate_dim = *options.truncate_dim;
  }
  vector.normalize = options.normalize.value_or(false);
  vector.keep_length = !options.normalize.value_or(true);
  return vector;
}

Result<std::string> ResolvePrompt(const Model::Impl& model, const EncodeOptions& options) {
  if (options.prompt && options.prompt_name) {
    return InvalidArgument("prompt: given as text and by name; use one of them");
  }
  if (options.prompt) return *options.prompt;
  if (options.prompt_name) return FindPrompt(model.pipeline, *options.prompt_name);
  if (model.pipeline.default_prompt.empty()) return std::string();
  return FindPrompt(model.pipeline, model.pipeline.default_prompt);
}

Result<EncodePlan> EncodePlan::Make(const Model::Impl& model, const EncodeOptions& options) {
  EncodePlan plan;
  POZOR_TRY(plan.vector, ResolveVectorOptions(model, options));
  plan.dimensions =
      plan.vector.truncate_dim == 0 ? model.pipeline.head.dimensions : plan.vector.truncate_dim;
  POZOR_TRY(plan.prompt, ResolvePrompt(model, options));
  POZOR_TRY(plan.tokenize.max_length, ResolveMaxLength(model, options));
  plan.tokenize.plain_specials = options.plain_specials;
  plan.overflow = options.overflow;
  if (!plan.prompt.empty() && !model.pipeline.include_prompt) {
    POZOR_TRY(plan.pool_first, PromptTokens(model, plan));
  }
  return plan;
}

Status TextTokeniser::Append(std::string_view text, uint64_t number, TokenBatch* batch) {
  if (!plan_.prompt.empty()) {
    joined_.assign(plan_.prompt);
    joined_.append(text);
    text = joined_;
  }
  const auto stats = model_.tokenizer->Append(text, nullptr, plan_.tokenize, *scratch_, &batch->ids,
                                              &batch->types);
  const auto where = [&] { return "text " + std::to_string(number); };
  if (!stats.ok()) return stats.status().WithContext(where());
  if (stats->truncated()) {
    ++truncated_;
    if (plan_.overflow == Overflow::kError) {
      return InvalidArgument(where() + ": has " + std::to_string(stats->full_tokens) +
                             " tokens, more than the " + std::to_string(plan_.tokenize.max_length) +
                             " admitted; shorten it or allow truncation");
    }
  }
  if (stats->tokens == 0) {
    return InvalidArgument(where() + ": has no tokens at all; leave it out");
  }
  batch->EndText();
  return Status();
}

Status MakeVector(const Model::Impl& model, const EncodePlan& plan, MatView<const float> hidden,
                  uint64_t number, float* out) {
  model.pipeline.head.Apply(hidden, plan.pool_first, plan.vector, out);
  if (AllFinite(out, plan.dimensions)) return Status();
  return Corrupt("text " + std::to_string(number) +
                 ": its vector has numbers that are not finite; " +
                 "the model's weights are damaged, download them again");
}

EncodeClient::EncodeClient(const Model::Impl& model, const EncodePlan& plan,
                           const EncodeOptions& options)
    : model_(model),
      plan_(plan),
      options_(options),
      start_(std::chrono::steady_clock::now()),
      last_report_(start_) {}

Status EncodeClient::Tokenise(Window& window) {
  TextTokeniser tokeniser(model_, plan_);
  const Texts& texts = TextsOf(window);
  for (size_t i = 0; i < window.texts; ++i) {
    POZOR_RETURN_IF_ERROR(tokeniser.Append(texts.Get(i), texts.first + i + 1, &window.tokens));
  }
  truncated_.fetch_add(tokeniser.truncated(), std::memory_order_relaxed);
  return Status();
}

Status EncodeClient::Pool(Window& window, size_t text, MatView<const float> hidden) {
  Texts& texts = TextsOf(window);
  return MakeVector(model_, plan_, hidden, texts.first + text + 1, Row(texts, text));
}

Status EncodeClient::Write(Window& window) {
  POZOR_RETURN_IF_ERROR(Deliver(TextsOf(window), window.texts));
  progress_.texts += window.texts;
  progress_.tokens += window.tokens.ids.size();
  ReportProgress(false);
  return Status();
}

void EncodeClient::ReportProgress(bool always) {
  if (!options_.progress) return;
  const auto now = std::chrono::steady_clock::now();
  if (!always && now - last_report_ < kReportEvery) return;
  last_report_ = now;
  progress_.bytes = bytes_.load(std::memory_order_relaxed);
  progress_.seconds = std::chrono::duration<double>(now - start_).count();
  options_.progress(progress_);
}

Result<bool> ArrayClient::Read(Window& window, size_t text_budget) {
  if (next_ == texts_.size()) return false;
  const size_t begin = next_;
  size_t taken = 0;
  do {
    window.text_bytes += texts_[next_].size();
    taken += texts_[next_].size() + kTextOverhead;
    ++next_;
  } while (next_ < texts_.size() && taken < text_budget && next_ - begin < kMostTextsInWindow);
  auto texts = std::make_shared<Texts>();
  texts->first = begin;
  texts->views = texts_.subspan(begin, next_ - begin);
  window.texts = texts->views.size();
  window.payload = std::move(texts);
  CountBytes(window.text_bytes);
  return true;
}

Result<bool> StreamClient::Read(Window& window, size_t text_budget) {
  auto texts = std::make_shared<Texts>();
  texts->first = next_;
  size_t taken = 0;
  do {
    POZOR_TRY(std::optional<std::string> text, source_.Next());
    if (!text) break;
    window.text_bytes += text->size();
    taken += text->size() + kTextOverhead;
    texts->owned.push_back(std::move(*text));
  } while (taken < text_budget && texts->owned.size() < kMostTextsInWindow);
  if (texts->owned.empty()) return false;
  window.texts = texts->owned.size();
  next_ += window.texts;
  texts->vectors.resize(window.texts * plan_.dimensions);
  window.payload = std::move(texts);
  CountBytes(window.text_bytes);
  return true;
}

}  // namespace pozor
